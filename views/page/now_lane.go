package page

// LaneNow is the live part of a lane's page.
type LaneNow struct {
	Live Live
	Lane LaneLine
	Past LanePast
}

// LanePast is what of a lane's page is made anew as samples come: its past, its promise, its loans.
type LanePast struct {
	Past
	Lane     string
	Lends    []LendLine // by pool group
	Hour     PromiseLine
	Day      PromiseLine
	Misses   []MissLine
	Borrows  []LoanLine // who runs on its units
	Lenders  []LoanLine // on whose units it runs
	Starving []StarvedLine
	Hidden   int64 // starved tenants that the reader may not see
}

// LendLine is what a lane lends in one pool group, ready to be shown.
type LendLine struct {
	Group, Lendable, Lent, LendsTo, Within, Cooldown string
	Stopped                                          string // since when it lends nothing; "": it does
}

// PromiseLine is how a promise was kept over a span. Level is "good", "bad" or "" when nothing fell due.
type PromiseLine struct {
	Part, Level string
	Kept, Loans string
}

// MissLine is a loan that was not back in time, ready to be shown.
type MissLine struct {
	Task, TaskHref      string // "" for those who may not see the task
	Tenant, Lane, Units string
	Due, Late           string
	Out, Unknown        bool
}

// LoanLine sums open loans, ready to be shown. Others are tenants that the reader may not see.
type LoanLine struct {
	Lane, Tenant, TenantHref, Group, Loans, Units, Due string
	Others                                             bool
}

// StarvedLine is a tenant that waits longer than its bound, ready to be shown.
type StarvedLine struct {
	Tenant, TenantHref, Lane, Wait, Bound, Over, Turns string
	Task                                               string
	Capped                                             bool
}
