// Package queuetest is the conformance suite of the queue port: every adapter runs it. Imported by
// tests only.
package queuetest
