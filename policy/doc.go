// Package policy is the governed document: what it says, whether it is allowed, how two versions
// differ, and the life of a change. It is pure but for its ports; the stores write what it decides,
// and every room of control reads the version in force through it.
package policy
