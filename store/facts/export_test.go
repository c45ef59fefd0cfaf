package facts

// Inner steps of transactions, for tests that make each statement fail.
var (
	ClaimIn  = claimIn
	EndIn    = endIn
	CancelIn = cancelIn
)

// What makes texts and results fit for PostgreSQL.
var (
	StorableText = storableText
	StorableJSON = storableJSON
)
