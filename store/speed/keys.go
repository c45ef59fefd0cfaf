package speed

// channelPrefix begins the channel of each topic: fl:<topic>. What is published there is a hint without
// a payload: look at the facts.
const channelPrefix = "fl:"

func channel(topic string) string { return channelPrefix + topic }
