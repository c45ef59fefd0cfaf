package page

import (
	"fairlane/views/part"
)

// AuditList is a page of the audit record, the newest first, with its filter.
type AuditList struct {
	Fields []part.Field
	Rows   []AuditRow
	Pager  part.Pager
	Errors []string
}

// AuditRow is one event in the list.
type AuditRow struct {
	Sequence   int64
	At         Moment
	Actor      string
	Action     string
	Object     string
	Result     string
	ResultKind string // of the badge
	Reason     string
	Version    int64
}

// AuditEntry is one event with every field.
type AuditEntry struct {
	AuditRow
	SourceAddress string
	RequestID     string
	ActionKey     string
	Params        []Fact
	Touched       []Touched
	MoreTouched   int64
	Old, New      string
	Approvers     string
	Hash          string
	Record        string
}

// Touched is an object, and a field of it, that an event changed.
type Touched struct{ Kind, Object, Field string }
