package console

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/policy"
	"fairlane/views"
	"fairlane/views/layout"
	"fairlane/views/page"
	"fairlane/views/part"
)

const listRows = 50

func (s *Console) versionList(c *gin.Context) {
	ctx := c.Request.Context()
	before, err := cursor(c)
	if err != nil {
		_ = c.Error(err)
		return
	}
	list, err := s.cfg.Versions.List(ctx, before, listRows+1)
	if err != nil {
		_ = c.Error(err)
		return
	}
	model := page.VersionList{InForce: layout.Of(ctx).Policy}
	for i, v := range list {
		if i == listRows {
			model.Pager.Next = "/versions?before=" + decimal(list[i-1].Number)
			break
		}
		model.Rows = append(model.Rows, versionRow(c, v))
	}
	model.Pager = pager(model.Pager.Next, before, "/versions", len(model.Rows))
	show(c, http.StatusOK, page.VersionListPage(model))
}

func versionRow(c *gin.Context, v policy.Summary) page.VersionRow {
	return page.VersionRow{Number: v.Number, Actor: v.ActorName, At: moment(c, v.CreatedAt), Reason: v.Reason}
}

func pager(next string, before int64, first string, shown int) part.Pager {
	p := part.Pager{Next: next, Shown: shown}
	if before > 0 {
		p.First = first
	}
	return p
}

// moment writes an instant in UTC, in the reader's zone and for machines.
func moment(c *gin.Context, t time.Time) page.Moment {
	return page.Moment{UTC: views.Time(t), Local: views.LocalTime(c.Request.Context(), t), Machine: t.UTC().Format(time.RFC3339Nano)}
}
