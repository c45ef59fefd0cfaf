package page

import "fairlane/views/part"

// Tenants is one page of the list of tenants.
type Tenants struct {
	Live   Live // no topics for those who may not see every tenant
	Text   string
	Lane   string
	Lanes  []string
	Rows   []TenantLine
	Pager  part.Pager
	Window int64 // of the shares, seconds
	Errors []string
}

func (t Tenants) laneOptions(all string) []part.Option {
	options := []part.Option{{Value: "", Label: all}}
	for _, l := range t.Lanes {
		options = append(options, part.Option{Value: l, Label: l})
	}
	return options
}
