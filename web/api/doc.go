// Package api is the JSON interface for programs: submit, follow, list and cancel tasks with a
// tenant's token. openapi.yaml comes first and is embedded; the tests hold every answer to it. It is
// not the console's: nothing here reads a session or a cookie. It decides nothing: control/admit does.
package api
