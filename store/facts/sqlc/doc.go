// Package sqlc holds plain reads of facts whose Go is generated from SQL: one statement, no decision in
// it. Statements that lock, write or work on sets are written by hand in store/facts, which alone calls
// this package.
//
// To add one: write it in queries/ with a line `-- name: VerbNoun :one|:many|:exec` above it, run
// `make generate`, commit what changed. `make lint` compares a sum over queries, migrations, settings and
// generated code with inputs.sha256 and fails when somebody forgot.
package sqlc
