package layout

import (
	"context"

	"fairlane/views"
)

// Shell is what the engine knows of a request when the page is rendered.
type Shell struct {
	User     string // name of who is signed in; "" for nobody
	Roles    string
	Nav      []Group
	Policy   int64 // version in force in this process
	Wanted   int64 // newest published version
	Banners  []Banner
	Digest   string // changes when Policy, Wanted or Banners do
	SearchOK bool
}

// Group is a titled part of the navigation.
type Group struct {
	Title views.Key
	Items []Item
}

// Item is a link of the navigation; Key is compared with Head.Active.
type Item struct {
	Key   string
	Label views.Key
	Href  string
}

// Banner is shown on every page for as long as its cause lasts. Kind is "warn" or "bad".
type Banner struct {
	Kind string
	Text views.Message
	Href string
}

// Head names a page.
type Head struct {
	Title   string   // already in the reader's language
	Active  string   // key of the navigation item
	Form    string   // id of the page's form; "" when there is none
	Again   string   // address that shows the form again with what was typed
	Modules []string // names of modules under js/, such as "live.js"
	Styles  []string // names of more style sheets under css/
	Bare    bool     // without top bar and navigation: sign-in, wall
}

type shellKey struct{}

// With returns ctx carrying the shell of the request.
func With(ctx context.Context, s Shell) context.Context {
	return context.WithValue(ctx, shellKey{}, s)
}

// Of returns the shell of ctx.
func Of(ctx context.Context) Shell {
	s, _ := ctx.Value(shellKey{}).(Shell)
	return s
}

// styles are the sheets of every page, in order.
var styles = []string{"css/tokens.css", "css/base.css", "css/shell.css", "css/parts.css", "css/page.css"}

const htmxConfig = `{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"historyCacheSize":0,"timeout":10000}`
