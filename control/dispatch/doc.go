// Package dispatch carries claimed attempts to providers and back: outbox and transports, submitting,
// polling, callbacks, and the endings that release what an attempt held. It never submits an attempt
// that is not committed, never submits one twice, and never frees anything on a guess.
package dispatch
