// Package transporttest is the conformance suite of dispatch transports: whatever carries the messages
// must come through redelivery, reordering, poison messages and slow consumers as told here. Only tests
// import it.
package transporttest
