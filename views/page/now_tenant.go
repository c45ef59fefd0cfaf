package page

// TenantNow is the live part of a tenant's page.
type TenantNow struct {
	Live   Live
	Topic  string // tenant:<id>
	Tenant TenantLine
	Past   TenantPast
}

// TenantPast is what of a tenant's page is made anew as samples come.
type TenantPast struct {
	Past
	Lane     string // home lane, of the charts
	Waits    []WaitLine
	Places   []PlaceLine
	Starving []StarvedLine
}

// WaitLine sums the waits of a span up, ready to be shown.
type WaitLine struct{ Span, Starts, P50, P95, Share, Entitled string }

// PlaceLine is a tenant's place in a lane, ready to be shown.
type PlaceLine struct {
	Lane, Deficit, Debt string
	Owes                bool // it pays a debt back
	Credit              bool
	At                  string // when the scheduler said so; "": it did not
}
