package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/page"
)

// preview is the page that shows what the change does and asks for the reason.
func (ch *change) preview(ctx context.Context, wrongReason []control.FieldError, mayPublish bool) page.Preview {
	return page.Preview{
		Title: ch.object.title, Active: ch.object.active, Address: ch.object.address, Publish: ch.object.address + "/publish",
		Base: ch.base.Number, Rows: diffRows(ctx, ch.rows), Arithmetic: ch.arithmetic(ctx), Raw: rawRows(ch.rows),
		Hidden: ch.typed.hidden(ch.object.fields), Reason: ch.typed.reason,
		ReasonError: strings.Join(sayRules(ctx, wrongReason), " "), MayPublish: mayPublish,
	}
}

// arithmetic says how the shares and sums that the change moves come about.
func (ch *change) arithmetic(ctx context.Context) []string {
	var lines []string
	groups := map[string]bool{}
	for _, c := range ch.rows {
		switch {
		case c.Object == policy.ObjectTenant && c.Shares:
			lines = append(lines, ch.tenantShare(ctx, c)...)
		case c.Object == policy.ObjectLane && c.Shares:
			lines = append(lines, laneShare(ctx, ch.base.Document, c.ID, "arithmetic.before"), laneShare(ctx, ch.next, c.ID, "arithmetic.after"))
		case c.Object == policy.ObjectLaneAccount:
			_, group, _ := strings.Cut(c.ID, "/")
			groups[group] = true
		case c.Object == policy.ObjectPool:
			if p, ok := ch.next.Pool(c.ID); ok {
				groups[p.Group] = true
			}
		}
	}
	for _, g := range ch.next.PoolGroups {
		if groups[g.Code] {
			reserved, capacity := ch.next.GroupReserved(g.Code), ch.next.GroupCapacity(g.Code)
			lines = append(lines, views.T(ctx, "arithmetic.group", "Group", g.Code, "Reserved", reserved, "Capacity", capacity, "Common", max(0, capacity-reserved)))
		}
	}
	return lines
}

// tenantShare writes weight ÷ sum of the weights of the lane's active tenants, before and after.
func (ch *change) tenantShare(ctx context.Context, c policy.Change) []string {
	var lines []string
	for _, side := range []struct {
		doc   *policy.Document
		when  views.Key
		share int64
	}{{ch.base.Document, "arithmetic.before", c.ShareBefore}, {ch.next, "arithmetic.after", c.ShareAfter}} {
		resolver := policy.NewResolver(side.doc)
		var lane string
		var weight, sum int64
		for _, t := range ch.tenants {
			if s, ok := resolver.Effective(t); ok && t.Code == c.ID {
				lane, weight = s.Lane, s.Weight
			}
		}
		for _, t := range ch.tenants {
			if s, ok := resolver.Effective(t); ok && t.Active() && s.Lane == lane {
				sum += s.Weight
			}
		}
		lines = append(lines, views.T(ctx, "arithmetic.share", "When", views.T(ctx, side.when), "Name", c.Name,
			"Weight", weight, "Sum", sum, "Of", lane, "Share", views.Percent(float64(side.share)/1000)))
	}
	return lines
}

func laneShare(ctx context.Context, doc *policy.Document, code string, when views.Key) string {
	var weight, sum int64
	for i := range doc.Lanes {
		if sum += doc.Lanes[i].Weight; doc.Lanes[i].Code == code {
			weight = doc.Lanes[i].Weight
		}
	}
	return views.T(ctx, "arithmetic.share", "When", views.T(ctx, when), "Name", code, "Weight", weight, "Sum", sum,
		"Of", views.T(ctx, "arithmetic.all_lanes"), "Share", views.Percent(float64(policy.LaneShares(doc)[code])/1000))
}

// conflict shows both changes side by side, keeps what was typed, and offers to apply it onto the head.
func (s *Console) conflict(c *gin.Context, ch *change, head policy.Version) {
	ctx := c.Request.Context()
	theirs := policy.Diff(ch.base.Document, head.Document, ch.tenants)
	show(c, http.StatusConflict, page.ConflictPage(page.Conflict{
		Title: ch.object.title, Active: ch.object.active, Address: ch.object.address,
		Base: ch.base.Number, Head: head.Number, HeadActor: head.ActorName, HeadReason: head.Reason, HeadAt: views.Time(head.CreatedAt),
		Rows: threeWay(ctx, ch.rows, theirs), Hidden: ch.typed.hidden(ch.object.fields), Reason: ch.typed.reason,
	}))
}

// threeWay joins two differences of the same base by place: mine first, then what only the others changed.
func threeWay(ctx context.Context, mine, theirs []policy.Change) []page.ThreeWay {
	other := map[string]policy.Change{}
	for _, c := range theirs {
		other[c.Path] = c
	}
	row := func(c policy.Change) page.ThreeWay {
		before := value(ctx, c.Before, c.Unit)
		return page.ThreeWay{Object: c.Name, ObjectKind: objectWord(ctx, c.Object), Field: fieldWord(ctx, c), Base: before, Theirs: before, Mine: before}
	}
	var rows []page.ThreeWay
	for _, m := range mine {
		r := row(m)
		r.Mine = value(ctx, m.After, m.Unit)
		if t, both := other[m.Path]; both {
			r.Theirs = value(ctx, t.After, t.Unit)
			r.Both = r.Theirs != r.Mine
			delete(other, m.Path)
		}
		rows = append(rows, r)
	}
	for _, t := range theirs {
		if _, left := other[t.Path]; left {
			r := row(t)
			r.Theirs = value(ctx, t.After, t.Unit)
			rows = append(rows, r)
		}
	}
	return rows
}

// fieldsOf returns the broken rules of an error, if it tells any.
func fieldsOf(err error) []control.FieldError {
	var told *control.Error
	if errors.As(err, &told) && told.Code == control.CodeInvalid {
		return told.Fields
	}
	return nil
}
