package console

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/control/monitor"
	"fairlane/policy/access"
	"fairlane/views/page"
)

// tenants answers GET /tenants?q=&lane=&after=.
func (r *Reading) tenants(c *gin.Context) {
	s := r.state()
	text, lane := searchText(c.Query("q")), searchText(c.Query("lane"))
	q := monitor.TenantQuery{Text: text, Lane: lane, Reach: reach(c, access.TenantRead), Limit: monitor.PageRows + 1}
	after := c.Query("after")
	if after != "" {
		var err error
		if q.AfterName, q.AfterID, err = readCursor(after); err != nil {
			_ = c.Error(err)
			return
		}
	}
	rows, err := r.cfg.Lists.Tenants(c.Request.Context(), q)
	if err != nil {
		_ = c.Error(err)
		return
	}
	p := page.Tenants{Text: text, Lane: lane, Lanes: laneCodes(r.document()), Window: s.TenantSum.Window}
	if seesEveryTenant(c) {
		p.Live = live(s, monitor.TopicTenants)
	}
	if len(rows) > monitor.PageRows {
		rows = rows[:monitor.PageRows]
		last := rows[len(rows)-1]
		p.Pager.Next = address("/tenants", "q", text, "lane", lane, "after", writeCursor(last.SortName, last.ID))
	}
	if after != "" {
		p.Pager.First = address("/tenants", "q", text, "lane", lane)
	}
	p.Pager.Shown = len(rows)
	liveRows := make(map[uuid.UUID]monitor.TenantRow, len(s.Tenants))
	for _, t := range s.Tenants {
		liveRows[t.ID] = t
	}
	for _, e := range rows {
		p.Rows = append(p.Rows, entryLine(e, liveRows))
	}
	show(c, http.StatusOK, page.TenantsPage(p))
}

// entryLine shows the tenant as it is listed, with the share and the wait that only the monitor knows.
func entryLine(e monitor.TenantEntry, rows map[uuid.UUID]monitor.TenantRow) page.TenantLine {
	t := page.TenantLine{ID: e.ID.String(), Code: e.Code, Name: e.Name, Plan: e.Plan, Lane: e.Lane, Suspended: e.Status == "SUSPENDED",
		Weight: e.Weight, Running: e.Running, RunningUnits: e.RunningUnits, QueuedTasks: e.QueuedTasks, QueuedMilli: e.QueuedMilli, Share: -1, Entitled: -1}
	if row, ok := rows[e.ID]; ok {
		t.OldestAt, t.Share, t.Entitled = row.OldestAt, row.Share, row.Entitled
	}
	return t
}

// searchText makes what was typed fit to be searched for: valid, without control characters, bounded.
func searchText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if runes := []rune(s); len(runes) > 200 {
		s = string(runes[:200])
	}
	return s
}

// A cursor is the sort key of the last row, so that pages go on from it whatever came or went before.
func writeCursor(name string, id uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(append(id[:], name...))
}

func readCursor(text string) (string, uuid.UUID, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < 16 || len(raw) > 1000 || !utf8.Valid(raw[16:]) || strings.ContainsRune(string(raw[16:]), 0) {
		return "", uuid.Nil, control.Invalid([]control.FieldError{{Field: "after", Key: "rule.unknown", Args: map[string]any{"value": searchText(text)}}})
	}
	return string(raw[16:]), uuid.UUID(raw[:16]), nil
}
