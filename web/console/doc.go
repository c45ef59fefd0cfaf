// Package console holds the pages in which operators change the policy and auditors read what happened:
// tenant, lane, pool and switches with their forms, versions and their differences, the audit record. One
// file per action; each parses, checks, acts and redirects.
//
// A change goes in steps that work without scripts: form → preview (validated, with its diff, asks for the
// reason) → publish by compare-and-set on the version that the form showed → the new version. Every step
// carries what was typed; nothing is kept on the server in between.
package console
