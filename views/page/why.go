package page

// Why tells why a task waits, ready to be shown: every gate in the order in which they are tried, the one
// that holds, and the smallest change that would start the task now.
type Why struct {
	Gates  []WhyGate
	Place  string // as a range; "" when it is not known
	Change string // "" when none is known
	Href   string // where the change can be made; "" when nowhere
	As     string // when it was looked up
	None   string // in place of all that, where there is nothing to explain
}

// The states of a gate.
const (
	GateOpen  = "open"  // passed
	GateHolds = "holds" // this one holds the task
	GateLater = "later" // not reached
)

// WhyGate is one gate.
type WhyGate struct {
	Title, State string
	Text         string // why it holds, or what it found
	Numbers      []Fact
	Options      []WhyOption // what was tried inside it: accounts, pools
}

// WhyOption is one account or pool that was tried, and why it has nothing to give. Open: it has.
type WhyOption struct {
	Name, Text string
	Href       string
	Open       bool
	Numbers    []Fact
}
