package page

import "fairlane/views/part"

// VersionList is a page of published versions, the newest first.
type VersionList struct {
	Rows    []VersionRow
	InForce int64
	Pager   part.Pager
	From    string // of the form that compares
	To      string
	Error   string
}

// VersionRow is one version in the list.
type VersionRow struct {
	Number int64
	Actor  string
	At     Moment
	Reason string
}

// Moment is an instant as pages write it.
type Moment struct{ UTC, Local, Machine string }

// Version is one published version with what it changed.
type Version struct {
	Number     int64
	InForce    int64
	Actor      string
	At         Moment
	Reason     string
	Restored   int64
	Digest     string
	Rows       []part.DiffRow
	Raw        []RawRow
	More       int64 // rows left out
	Document   string
	DocumentKB int64 // size of a document that is too large to be shown; 0: it is shown
	HasNext    bool
	AuditHref  string
}

// Compare is the difference of any two versions.
type Compare struct {
	From, To int64
	Rows     []part.DiffRow
	Raw      []RawRow
	More     int64
}
