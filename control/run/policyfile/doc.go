// Package policyfile reads policy documents that people keep in files, YAML or JSON, and writes them. It
// adds nothing to the document's rules: the text becomes the one form that policy.Decode takes, and what
// policy says is wrong is told with the line on which it stands.
package policyfile
