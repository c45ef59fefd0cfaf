package console

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
)

const maxSearch = 200

// searchGo leads from the search box to what was meant: a version (v37), a tenant by code or id, a task by
// id, else the list of tenants that have the text in their name.
func (s *Console) searchGo(c *gin.Context) {
	text := strings.TrimSpace(c.Query("q"))
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxSearch {
		_ = c.Error(control.Invalid([]control.FieldError{{Field: "q", Key: "rule." + policy.KeyTooLong, Args: map[string]any{"length": utf8.RuneCountInString(text), "max": maxSearch}}}))
		return
	}
	if digits, isVersion := strings.CutPrefix(strings.ToLower(text), "v"); isVersion {
		if n, err := numbered(digits); err == nil {
			seeOther(c, "/versions/"+decimal(n))
			return
		}
	}
	if text != "" {
		card, err := s.cfg.Cards.TenantCard(c.Request.Context(), text)
		if err == nil {
			seeOther(c, "/tenants/"+card.Code)
			return
		}
		if control.CodeOf(err) != control.CodeNotFound {
			_ = c.Error(err)
			return
		}
	}
	if id, err := uuid.Parse(text); err == nil {
		seeOther(c, "/tasks/"+id.String())
		return
	}
	seeOther(c, "/tenants?q="+url.QueryEscape(text))
}
