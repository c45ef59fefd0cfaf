package facts

// Inner steps of transactions, for tests that make each statement fail.
var (
	ClaimIn  = claimIn
	EndIn    = endIn
	CancelIn = cancelIn
)
