package page

// Lanes is the list of lanes with their accounts.
type Lanes struct {
	Live     Live
	Lanes    []LaneLine
	Accounts []AccountLine
}
