// Package demo is the platform that `fairlane demo` shows: 60 tenants with their users, twelve models,
// provider pools, plans and lanes as a policy document, and requests that arrive as in a published trace.
// It makes data only: control/run stores the document, submits the requests and starts the simulated
// providers. Times of the trace are virtual; a speed of 20 lets twenty of its seconds pass in one.
package demo
