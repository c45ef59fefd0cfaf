package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/audit"
	"fairlane/control"
	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/page"
	"fairlane/views/part"
)

func (s *Console) auditList(c *gin.Context) {
	ctx := c.Request.Context()
	zone := views.Of(ctx).Zone
	if zone == nil {
		zone = time.UTC
	}
	query := c.Request.URL.Query()
	filter, wrong := audit.ParseFilter(query, zone)
	before, fault := int64(0), (*control.FieldError)(nil)
	if query.Has("before") {
		if before, fault = policy.ParseInt("before", query.Get("before")); fault != nil {
			wrong = append(wrong, *fault)
		}
	}
	beside, general := besideFilter(wrong)
	model := page.AuditList{Fields: filterFields(ctx, query, beside), Errors: sayAll(ctx, general)}
	if len(wrong) > 0 {
		show(c, http.StatusUnprocessableEntity, page.AuditListPage(model))
		return
	}
	rows, err := s.cfg.Audit.List(ctx, filter, before, listRows+1)
	if err != nil {
		_ = c.Error(err)
		return
	}
	next := ""
	if len(rows) > listRows {
		rows = rows[:listRows]
		next = auditAddress(query, rows[listRows-1].Sequence)
	}
	for _, r := range rows {
		model.Rows = append(model.Rows, auditRow(c, r))
	}
	model.Pager = pager(next, before, auditAddress(query, 0), len(rows))
	show(c, http.StatusOK, page.AuditListPage(model))
}

// filterNames are the fields of the filter's form, in its order.
var filterNames = []string{"text", "actor", "action", "object_kind", "object_id", "field", "result", "version", "request_id", "from", "to"}

// auditAddress is the address of the same filter from a place on; what was typed stays as it was typed.
func auditAddress(query url.Values, before int64) string {
	kept := url.Values{}
	for _, name := range filterNames {
		if v := query.Get(name); v != "" {
			kept.Set(name, v)
		}
	}
	if before > 0 {
		kept.Set("before", decimal(before))
	}
	if len(kept) == 0 {
		return "/audit"
	}
	return "/audit?" + kept.Encode()
}

func besideFilter(wrong []control.FieldError) (beside map[string]control.FieldError, general []control.FieldError) {
	beside = map[string]control.FieldError{}
	for _, w := range wrong {
		if slices.Contains(filterNames, w.Field) {
			beside[w.Field] = w
		} else {
			general = append(general, w)
		}
	}
	return beside, general
}

func filterFields(ctx context.Context, query url.Values, beside map[string]control.FieldError) []part.Field {
	fields := make([]part.Field, 0, len(filterNames))
	for _, name := range filterNames {
		f := part.Field{Name: name, Kind: "text", Label: views.T(ctx, views.Key("audit.filter_"+name)), Value: query.Get(name)}
		switch name {
		case "action":
			f.Kind, f.Options = "select", actionOptions(ctx)
		case "object_kind":
			f.Kind, f.Options = "select", options(ctx, "object", audit.Kinds)
		case "result":
			f.Kind = "select"
			f.Options = options(ctx, "result", []string{string(audit.OK), string(audit.Denied), string(audit.Refused), string(audit.Failed)})
		case "from", "to":
			f.Hint = views.T(ctx, "audit.filter_time_hint")
		}
		if w, wrong := beside[name]; wrong {
			f.Error = strings.Join(sayRules(ctx, []control.FieldError{w}), " ")
		}
		fields = append(fields, f)
	}
	return part.FocusFirst(fields)
}

func actionOptions(ctx context.Context) []part.Option {
	names := make([]string, 0, len(audit.Actions))
	for a := range audit.Actions {
		names = append(names, string(a))
	}
	slices.Sort(names)
	return options(ctx, "action", names)
}

func options(ctx context.Context, family string, values []string) []part.Option {
	list := []part.Option{{Value: "", Label: views.T(ctx, "audit.any")}}
	for _, v := range values {
		list = append(list, part.Option{Value: v, Label: views.Word(ctx, family, v)})
	}
	return list
}
