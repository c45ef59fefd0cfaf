// Package run is the composition root: the commands, their settings, and the wiring of every room.
// Only main imports it. Nothing here decides anything about scheduling, money or policy.
package run
