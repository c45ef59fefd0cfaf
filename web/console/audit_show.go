package console

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/audit"
	"fairlane/views"
	"fairlane/views/page"
)

func (s *Console) auditShow(c *gin.Context) {
	number, err := numbered(c.Param("sequence"))
	if err != nil {
		_ = c.Error(err)
		return
	}
	row, err := s.cfg.Audit.Get(c.Request.Context(), number)
	if err != nil {
		_ = c.Error(err)
		return
	}
	model := page.AuditEntry{
		AuditRow: auditRow(c, row), SourceAddress: dash(row.Actor.SourceAddress), RequestID: dash(row.Actor.RequestID),
		ActionKey: string(row.Action), Params: params(c, row), Old: indented(row.Old), New: indented(row.New),
		Approvers: dash(strings.Join(row.Approvers, ", ")), Hash: hex.EncodeToString(row.Hash[:]), Record: row.Record,
	}
	model.Reason = dash(model.Reason)
	for i, t := range row.Touched {
		if i == maxRows {
			model.MoreTouched = int64(len(row.Touched) - i)
			break
		}
		ctx := c.Request.Context()
		model.Touched = append(model.Touched, page.Touched{Kind: views.Word(ctx, "object", t.Kind), Object: t.ID, Field: views.Word(ctx, "field", t.Field)})
	}
	show(c, http.StatusOK, page.AuditEntryPage(model))
}

func auditRow(c *gin.Context, r audit.Row) page.AuditRow {
	ctx := c.Request.Context()
	return page.AuditRow{
		Sequence: r.Sequence, At: moment(c, r.At), Actor: r.Actor.Name, Action: views.Word(ctx, "action", string(r.Action)),
		Object: views.Word(ctx, "object", r.ObjectKind) + " " + r.ObjectID, Result: views.Word(ctx, "result", string(r.Result)),
		ResultKind: resultKind(r.Result), Reason: r.Reason, Version: r.PolicyVersion,
	}
}

func resultKind(r audit.Result) string {
	switch r {
	case audit.OK:
		return "good"
	case audit.Denied, audit.Failed:
		return "bad"
	}
	return "warn"
}

// params lists the action's parameters by name, in a steady order.
func params(c *gin.Context, r audit.Row) []page.Fact {
	names := make([]string, 0, len(r.Params))
	for name := range r.Params {
		names = append(names, name)
	}
	slices.Sort(names)
	facts := make([]page.Fact, 0, len(names))
	for _, name := range names {
		facts = append(facts, page.Fact{Label: views.Word(c.Request.Context(), "param", name), Value: plain(r.Params[name])})
	}
	return facts
}

func plain(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return raw(v)
}

// indented writes what JSON can say for people to read; nothing is a dash.
func indented(v any) string {
	if v == nil {
		return "—"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return raw(v)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return string(data)
	}
	return out.String()
}

func dash(text string) string {
	if text == "" {
		return "—"
	}
	return text
}
