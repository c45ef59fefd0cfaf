// Package speed is Redis: hints, and later the queue index and limiters. Nothing here is ever the only
// copy of anything that matters; with Redis away every caller goes on without it. Keys are declared in
// keys.go. It implements ports of control and is called by nobody but control/run.
package speed
