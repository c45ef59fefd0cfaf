package console

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views/layout"
	"fairlane/views/page"
)

const (
	maxRows     = 500     // of a difference on a page
	maxDocument = 200_000 // bytes of a document on a page
)

func (s *Console) versionShow(c *gin.Context) {
	ctx := c.Request.Context()
	number, err := numbered(c.Param("version"))
	if err != nil {
		_ = c.Error(err)
		return
	}
	v, err := s.cfg.Versions.Version(ctx, number)
	if err != nil {
		_ = c.Error(err)
		return
	}
	model := page.Version{
		Number: v.Number, InForce: layout.Of(ctx).Policy, Actor: v.ActorName, At: moment(c, v.CreatedAt), Reason: v.Reason,
		Restored: v.RestoredFrom, Digest: hex.EncodeToString(v.Digest[:]), HasNext: v.Number < layout.Of(ctx).Wanted,
	}
	if may(c, access.AuditRead, access.Object{}) {
		model.AuditHref = "/audit?action=policy.publish&version=" + decimal(v.Number)
	}
	if v.Number > 1 {
		changes, err := s.between(c, v.Number-1, v)
		if err != nil {
			_ = c.Error(err)
			return
		}
		model.Rows, model.Raw, model.More = cut(c, changes)
	}
	if model.Document, err = document(v.Document); err != nil {
		_ = c.Error(err)
		return
	}
	if size := len(model.Document); size > maxDocument {
		model.Document, model.DocumentKB = "", int64(size/1000)
	}
	show(c, http.StatusOK, page.VersionPage(model))
}

// between lists what tells the version from an earlier one.
func (s *Console) between(c *gin.Context, from int64, to policy.Version) ([]policy.Change, error) {
	ctx := c.Request.Context()
	old, err := s.cfg.Versions.Version(ctx, from)
	if err != nil {
		return nil, err
	}
	tenants, err := s.cfg.Tenants.PlanList(ctx)
	if err != nil {
		return nil, err
	}
	return policy.Diff(old.Document, to.Document, tenants), nil
}

func document(d *policy.Document) (string, error) {
	data, err := policy.Encode(d)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return "", err
	}
	return out.String(), nil
}
