package speed

// Small makes an index whose queues hold as little as they can, so that they read on all the time.
func Small(x *QueueIndex) *QueueIndex {
	x.sizes = sizes{first: 1, more: 1, keep: 1}
	return x
}
