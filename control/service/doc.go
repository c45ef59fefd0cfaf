// Package service is the contract by which long-running parts of the process start, say that they have
// started, and stop: a Service owns one goroutine and waits for it, a Group starts services in order and
// stops them in reverse. It restarts nothing: a part that ends by itself ends the process, whose next
// start goes on from the facts. control/run composes with it; parts only offer a Run function.
package service
