package views

import (
	"context"
	"time"
)

// Lang is a language of the console.
type Lang string

// The languages of the console.
const (
	EN Lang = "en"
	ZH Lang = "zh"
)

// Langs lists the languages in the order of the switch.
var Langs = []Lang{ZH, EN}

// Reader is who reads the page: everything of a request that formatting and the shell depend on.
type Reader struct {
	Lang      Lang
	Theme     string         // "light", "dark" or "" for the system's choice
	Zone      *time.Location // the reader's own zone; nil when unknown
	Nonce     string         // of the Content-Security-Policy
	RequestID string
	Path      string    // path and query of the page, for the switches that come back to it
	Now       time.Time // when the request came in
	Currency  string    // sign of the platform's currency
	Asset     func(name string) string
}

type readerKey struct{}

// With returns ctx carrying r.
func With(ctx context.Context, r Reader) context.Context {
	return context.WithValue(ctx, readerKey{}, r)
}

// Of returns the reader of ctx; one who reads English when there is none.
func Of(ctx context.Context) Reader {
	r, ok := ctx.Value(readerKey{}).(Reader)
	if !ok || r.Lang == "" {
		r.Lang = EN
	}
	if r.Asset == nil {
		r.Asset = func(name string) string { return "/static/" + name }
	}
	return r
}

// Asset returns the address of an embedded asset such as "css/shell.css".
func Asset(ctx context.Context, name string) string { return Of(ctx).Asset(name) }
