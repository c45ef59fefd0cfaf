package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/control/plan"
	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/page"
)

// poolLive makes the live part of a pool's page.
func (s *Console) poolLive(c *gin.Context, o object) (templ.Component, error) {
	state := s.state()
	p := page.PoolNow{Live: live(state, monitor.TopicPools), Pool: page.PoolLine{Key: o.title, Title: o.title, Limit: -1}}
	for _, row := range state.Pools {
		if row.Key == o.title {
			p.Pool = poolLine(row)
		}
	}
	var err error
	p.Part, err = s.poolPart(c, state, o.title)
	return page.PoolNowPart(p), err
}

// poolNow answers GET /pools/:pool/now.
func (s *Console) poolNow(c *gin.Context) {
	state := s.state()
	key := c.Param("pool")
	doc, _ := s.cfg.Active()
	_, known := documentOf(doc).Pool(key)
	if !known && !slices.ContainsFunc(state.Pools, func(p monitor.PoolRow) bool { return p.Key == key }) {
		_ = c.Error(control.Errorf(control.CodeNotFound, "there is no such pool"))
		return
	}
	p, err := s.poolPart(c, state, key)
	fragment(c, page.PoolPartPart(p), err)
}

func documentOf(doc *policy.Document) *policy.Document {
	if doc == nil {
		return &policy.Document{}
	}
	return doc
}

func (s *Console) poolPart(c *gin.Context, state *monitor.State, key string) (page.PoolPart, error) {
	ctx := c.Request.Context()
	p := page.PoolPart{Address: "/pools/" + url.PathEscape(key) + "/now"}
	doc, _ := s.cfg.Active()
	rule, _ := documentOf(doc).Pool(key)
	if rule == nil {
		rule = &policy.Pool{Key: key}
	}
	for _, row := range state.Pools {
		switch {
		case row.Key == key:
			p.Seen = poolSeen(row)
		case slices.Contains(rule.Parents, row.Key):
			p.Groups = append(p.Groups, poolLine(row))
		case slices.Contains(row.Parents, key):
			p.Members = append(p.Members, poolLine(row))
		}
	}
	shards, err := s.cfg.Present.Shards(ctx, key)
	if err != nil {
		return p, err
	}
	for _, x := range shards {
		p.Shards = append(p.Shards, page.ShardLine{No: x.No, Used: x.Used, Capacity: x.Capacity})
	}
	held, err := s.cfg.Present.PoolLanes(ctx, key)
	if err != nil {
		return p, err
	}
	p.Lanes = poolLanes(rule, held)
	p.OnlyLanes = strings.Join(rule.DedicatedLanes, ", ")
	p.OnlyTenants = s.tenantNames(c, rule)
	p.Earmark, err = s.earmark(c, state, rule.Group, key)
	return p, err
}

// poolSeen are the fields whose change makes the part anew, as js/rows.js puts them together.
func poolSeen(p monitor.PoolRow) string {
	open, ends := "", ""
	if !p.OpenUntil.IsZero() {
		open = jsonTime(p.OpenUntil)
	}
	if !p.EarmarkEnds.IsZero() {
		ends = jsonTime(p.EarmarkEnds)
	}
	return fmt.Sprint(p.Used, " ", p.Limit, " ", open, " ", p.Earmarked, " ", ends, " ", p.Capacity)
}

// poolLanes are the lanes that hold units of the pool or have some kept for them.
func poolLanes(rule *policy.Pool, held []monitor.PoolLane) []page.PoolLaneLine {
	var out []page.PoolLaneLine
	find := func(lane string) *page.PoolLaneLine {
		for i := range out {
			if out[i].Lane == lane {
				return &out[i]
			}
		}
		out = append(out, page.PoolLaneLine{Lane: lane})
		return &out[len(out)-1]
	}
	for _, m := range rule.LaneMinimums {
		find(m.Lane).Minimum = m.Units
	}
	for _, h := range held {
		line := find(h.Lane)
		line.Used, line.BorrowedOfThat = h.Used, h.Borrowed
	}
	for i := range out {
		for k := range out {
			if k != i {
				out[i].KeptForOthers += max(out[k].Minimum-out[k].Used, 0)
			}
		}
	}
	return out
}

// tenantNames lists the tenants that a pool is dedicated to; those whom the operator may not see are counted.
func (s *Console) tenantNames(c *gin.Context, rule *policy.Pool) string {
	var names []string
	hidden := int64(0)
	for _, id := range rule.DedicatedTenants {
		card, err := s.cfg.Cards.TenantCard(c.Request.Context(), id.String())
		if err != nil || !seesTenant(c, card.Lane, card.ID) {
			hidden++
			continue
		}
		names = append(names, card.Name)
	}
	if hidden > 0 {
		names = append(names, views.N(c.Request.Context(), "count.tenants", hidden))
	}
	return strings.Join(names, ", ")
}

// earmark is what the scheduler keeps in the pool; whose it is stays with those who may see the tenant.
func (s *Console) earmark(c *gin.Context, state *monitor.State, group, key string) (*page.EarmarkLine, error) {
	var found *plan.Earmark
	for _, status := range []plan.Status{state.Schedulers[group]} {
		for i := range status.Earmarks {
			if status.Earmarks[i].Pool == key {
				found = &status.Earmarks[i]
			}
		}
	}
	if found == nil {
		return nil, nil //nolint:nilnil // most pools have none
	}
	line := &page.EarmarkLine{Units: views.Int(found.Units), Lane: found.Lane, Ends: views.Time(found.Until)}
	card, err := s.cfg.Cards.TenantCard(c.Request.Context(), found.Tenant.String())
	if err != nil {
		return line, err
	}
	if seesTenant(c, card.Lane, card.ID) {
		line.Tenant, line.Task = card.Name, found.Task.String()
	}
	return line, nil
}
