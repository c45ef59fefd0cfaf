// Package web is the engine: the route table with the permission of every route and socket topic, the
// order of the middleware, and the mapping of errors to answers. It decides nothing about the domain and
// knows no handler: the rooms web/console, web/api, web/live and web/session hand theirs to control/run,
// which gives them to New by the names of the table.
//
// A handler answers with views.Render, or records what went wrong with c.Error and returns: the engine
// turns control.Error into a status and a page (problem+json under /v1), and everything else into
// "internal" with the request id.
package web
