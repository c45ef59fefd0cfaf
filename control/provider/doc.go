// Package provider is the contract with those who make the media: what an adapter must do, what a
// provider can do (Capabilities), and how an answer to a submit is told apart: accepted, surely not
// accepted, unknown. It also holds the HTTP client that adapters share: it never sends a submit twice
// by itself, knows whether anything may have left, and checks every address when it dials.
//
// One folder per adapter. Adapters keep no state of tasks; control/dispatch calls them.
package provider
