package page

import "fairlane/views"

// ErrorPage is any answer that is not the page that was asked for.
type ErrorPage struct {
	Status    int
	Text      views.Message
	RequestID string
	Fields    []FieldText
}

// FieldText is what is wrong with one field.
type FieldText struct {
	Field string
	Key   string // of the broken rule
	Args  map[string]any
}
