package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/layout"
)

// shell prepares what the page around a handler's content needs, and applies a choice of language or
// theme that came with its form.
func (e *engine) shell(c *gin.Context) {
	if isForm(c.Request) {
		if err := c.Request.ParseForm(); err != nil {
			var told error = control.Errorf(control.CodeInvalid, "the form could not be read")
			if f, known := failureOf(err); known && f.status == http.StatusRequestEntityTooLarge {
				told = err
			}
			e.refuse(c, told)
			return
		}
		e.preference(c)
	}
	route, ok := e.route(c)
	if !ok || route.Auth == Session || route.Auth == Display || strings.HasPrefix(route.Name, "session.") {
		c.Request = c.Request.WithContext(layout.With(c.Request.Context(), e.shellOf(c)))
	}
	c.Next()
}

func isForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && r.Method == http.MethodPost && kind == "application/x-www-form-urlencoded"
}

func (e *engine) shellOf(c *gin.Context) layout.Shell {
	var s layout.Shell
	subject, signedIn := access.SubjectOf(c.Request.Context())
	if !signedIn {
		return s
	}
	s.User, s.SearchOK = subject.Name, subject.Rights.May(access.SelfUse)
	for i, role := range subject.Rights.Roles {
		if i > 0 {
			s.Roles += ", "
		}
		s.Roles += string(role)
	}
	s.Nav = navigation(subject.Rights)
	condition, err := e.cfg.Conditions.Condition(c.Request.Context())
	if err != nil {
		e.cfg.Log.WarnContext(c.Request.Context(), "condition unknown", "error", err)
		s.Banners = []layout.Banner{{Kind: "bad", Text: views.Say("banner.unknown")}}
	}
	s.Policy, s.Wanted = condition.InForce, condition.Wanted
	s.Banners = append(s.Banners, banners(c.Request.Context(), condition)...)
	s.Digest = digest(s)
	return s
}

// banners says what is switched off, paused or degraded, the gravest first.
func banners(ctx context.Context, k Condition) []layout.Banner {
	var out []layout.Banner
	add := func(kind, href string, text views.Message) {
		out = append(out, layout.Banner{Kind: kind, Href: href, Text: text})
	}
	if k.SchedulingStopped {
		add("bad", "/switches", views.Say("banner.scheduling_stopped"))
	}
	if k.AdmissionClosed {
		add("bad", "/switches", views.Say("banner.admission_closed"))
	}
	for _, m := range k.Degraded {
		add("bad", "/health", views.Say("banner.degraded", "Mode", views.Word(ctx, "mode", m.Name), "Since", views.Time(m.Since)))
	}
	for _, lane := range k.PausedLanes {
		add("warn", "/lanes", views.Say("banner.lane_paused", "Lane", lane))
	}
	for _, lane := range k.ClosedLanes {
		add("warn", "/lanes", views.Say("banner.lane_closed", "Lane", lane))
	}
	for _, pool := range k.PausedPools {
		add("warn", "/pools", views.Say("banner.pool_paused", "Pool", pool))
	}
	return out
}

func digest(s layout.Shell) string {
	sum := sha256.New()
	fmt.Fprintln(sum, s.Policy, s.Wanted, s.Banners)
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Banners answers the polled fragment: nothing when the page shows what is true, else both parts anew.
func Banners(c *gin.Context) {
	if c.Query("seen") == layout.Of(c.Request.Context()).Digest {
		c.Header("Cache-Control", "no-store")
		c.Status(http.StatusNoContent)
		return
	}
	if err := views.Render(c.Writer, c.Request, http.StatusOK, layout.BannerUpdate()); err != nil {
		_ = c.Error(err)
	}
}

// SetPreference answers POST /preference: the choice itself was applied on the way here.
func SetPreference(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, views.LocalPath(c.Request.PostFormValue("return")))
}

type menuItem struct {
	key, href  string
	label      views.Key
	permission access.Permission
}

var menu = []struct {
	title views.Key
	items []menuItem
}{
	{"nav.live", []menuItem{
		{"overview", "/", "nav.overview", access.OverviewRead},
		{"lanes", "/lanes", "nav.lanes", access.LaneRead},
		{"pools", "/pools", "nav.pools", access.PoolRead},
		{"tenants", "/tenants", "nav.tenants", access.TenantRead},
		{"tasks", "/tasks", "nav.tasks", access.TaskRead},
	}},
	{"nav.govern", []menuItem{
		{"switches", "/switches", "nav.switches", access.PolicyRead},
		{"scheduling", "/scheduling", "nav.scheduling", access.PolicyRead},
		{"versions", "/versions", "nav.versions", access.PolicyRead},
		{"audit", "/audit", "nav.audit", access.AuditRead},
	}},
	{"nav.operate", []menuItem{
		{"health", "/health", "nav.health", access.HealthRead},
		{"wall", "/wall", "nav.wall", access.WallRead},
	}},
}

// navigation shows what the rights lead to and nothing else.
func navigation(rights access.Rights) []layout.Group {
	var groups []layout.Group
	for _, g := range menu {
		group := layout.Group{Title: g.title}
		for _, item := range g.items {
			if rights.May(item.permission) {
				group.Items = append(group.Items, layout.Item{Key: item.key, Label: item.label, Href: item.href})
			}
		}
		if len(group.Items) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}
