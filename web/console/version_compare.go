package console

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/views/page"
	"fairlane/views/part"
)

func (s *Console) versionCompare(c *gin.Context) {
	ctx := c.Request.Context()
	from, wrongFrom := policy.ParseInt("from", strings.TrimPrefix(c.Query("from"), "v"))
	to, wrongTo := policy.ParseInt("to", strings.TrimPrefix(c.Query("to"), "v"))
	var wrong []control.FieldError
	for _, w := range []*control.FieldError{wrongFrom, wrongTo} {
		if w != nil {
			wrong = append(wrong, *w)
		}
	}
	if len(wrong) > 0 {
		s.compareAgain(c, wrong)
		return
	}
	v, err := s.cfg.Versions.Version(ctx, to)
	if err != nil {
		_ = c.Error(err)
		return
	}
	changes, err := s.between(c, from, v)
	if err != nil {
		_ = c.Error(err)
		return
	}
	model := page.Compare{From: from, To: to}
	model.Rows, model.Raw, model.More = cut(c, changes)
	show(c, http.StatusOK, page.ComparePage(model))
}

// compareAgain shows the list with what was typed and what is wrong with it.
func (s *Console) compareAgain(c *gin.Context, wrong []control.FieldError) {
	list, err := s.cfg.Versions.List(c.Request.Context(), 0, listRows)
	if err != nil {
		_ = c.Error(err)
		return
	}
	model := page.VersionList{From: c.Query("from"), To: c.Query("to"), Error: strings.Join(sayAll(c.Request.Context(), wrong), " ")}
	for _, v := range list {
		model.Rows = append(model.Rows, versionRow(c, v))
	}
	model.Pager.Shown = len(model.Rows)
	show(c, http.StatusUnprocessableEntity, page.VersionListPage(model))
}

// cut bounds a difference to what a page shows, and says how many rows it left out.
func cut(c *gin.Context, changes []policy.Change) (rows []part.DiffRow, raws []page.RawRow, more int64) {
	if len(changes) > maxRows {
		more = int64(len(changes) - maxRows)
		changes = changes[:maxRows]
	}
	return diffRows(c.Request.Context(), changes), rawRows(changes), more
}
