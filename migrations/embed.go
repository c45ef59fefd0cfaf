// Package migrations holds the numbered SQL that builds the database, forward and back.
// It is data only: store/facts applies it, store/storetest makes a template of it.
package migrations

import "embed"

// FS holds every migration in goose's annotated SQL form.
//
//go:embed *.sql
var FS embed.FS
