package page

import (
	"github.com/a-h/templ"

	"fairlane/views/part"
)

// Fact is one line of what is known about an object.
type Fact struct {
	Label string
	Value string
	Href  string
}

// Edit is the page of an object with its form. Without MayEdit there is no form, and WhyNot says why.
type Edit struct {
	Title   string
	Kind    string // "Tenant", in the reader's language
	Active  string
	Address string // of this page; the form is previewed by posting to it
	Base    int64
	Facts   []Fact
	Fields  []EditField
	Errors  []string
	MayEdit bool
	WhyNot  string
	Reason  string          // carried along when the form comes back from a later step
	Now     templ.Component // live part above the form; nil: none
}

// EditField is a field of the form, or only its value when there is no form.
type EditField struct {
	part.Field
	Plan    string // what the plan grants, "" where there is no plan
	Own     bool   // the object has a value of its own that can be given back to the plan
	Resets  bool   // giving it back was chosen
	Current string // value in force, formatted
}

// Hidden is a field that is carried from step to step.
type Hidden struct{ Name, Value string }

// RawRow is one changed place of the document as it is written.
type RawRow struct{ Path, Before, After string }

// Preview shows what a change would do and asks for the reason.
type Preview struct {
	Title       string
	Active      string
	Address     string // of the object
	Publish     string
	Base        int64
	Rows        []part.DiffRow
	Arithmetic  []string
	Raw         []RawRow
	Hidden      []Hidden
	Reason      string
	ReasonError string
	MayPublish  bool
}

// Conflict shows a change whose base has moved: what was there, what somebody else made of it, and mine.
type Conflict struct {
	Title      string
	Active     string
	Address    string
	Base, Head int64
	HeadActor  string
	HeadReason string
	HeadAt     string
	Rows       []ThreeWay
	Hidden     []Hidden
	Reason     string
}

// ThreeWay is one field that either side changed.
type ThreeWay struct {
	Object, ObjectKind, Field string
	Base, Theirs, Mine        string
	Both                      bool // changed on both sides, to different values
}
