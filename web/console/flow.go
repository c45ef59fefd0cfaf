package console

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy"
	"fairlane/policy/access"
	"fairlane/views/page"
)

// showObject answers the page of an object as the newest version has it, with what goes on there now.
func (s *Console) showObject(c *gin.Context, read access.Permission, load loader, now ...nowPart) {
	ctx := c.Request.Context()
	head, err := s.cfg.Versions.Head(ctx)
	if err != nil {
		_ = c.Error(err)
		return
	}
	o, err := load(ctx, head.Document)
	if err == nil && o.scope.Tenant != uuid.Nil { // lanes, pools and switches are sums that every reader may see
		err = access.Require(ctx, read, o.scope)
	}
	if err != nil {
		_ = c.Error(err)
		return
	}
	e := o.form(ctx, head.Number, nil, nil, may(c, access.PolicyEdit, o.scope))
	for _, part := range now {
		if e.Now, err = part(c, o); err != nil {
			_ = c.Error(err)
			return
		}
	}
	show(c, http.StatusOK, page.EditPage(e))
}

// change is a form that was read and applied to the version that it came from.
type change struct {
	object  object // as the base has it
	typed   typed
	base    policy.Version
	next    *policy.Document // nil when wrong is not empty
	tenants []policy.Tenant
	rows    []policy.Change
	wrong   []control.FieldError
}

// read makes a change out of the form. Errors are answers of their own; broken rules are in change.wrong.
func (s *Console) read(c *gin.Context, need access.Permission, load loader) (*change, error) {
	ctx := c.Request.Context()
	head, err := s.cfg.Versions.Head(ctx)
	if err != nil {
		return nil, err
	}
	o, err := load(ctx, head.Document)
	if err != nil {
		return nil, err
	}
	if err := access.Require(ctx, need, o.scope); err != nil {
		return nil, err
	}
	ch := &change{object: o, base: head}
	ch.typed, ch.wrong = readTyped(c.Request.PostForm, o.fields)
	if ch.typed.base != head.Number && len(ch.wrong) == 0 {
		base, err := s.cfg.Versions.Version(ctx, ch.typed.base)
		if control.CodeOf(err) == control.CodeNotFound {
			ch.wrong = []control.FieldError{{Field: "base", Key: policy.KeyUnknown, Args: map[string]any{"value": ch.typed.base}}}
			return ch, nil
		}
		if err != nil {
			return nil, err
		}
		ch.base = base
		if ch.object, err = load(ctx, ch.base.Document); err != nil {
			return nil, err
		}
	}
	if len(ch.wrong) > 0 {
		return ch, nil
	}
	return ch, s.apply(ctx, ch)
}

// apply does the edits on the base and holds the result to every rule.
func (s *Console) apply(ctx context.Context, ch *change) error {
	next, wrong := policy.Apply(ch.base.Document, ch.typed.edits(ch.object.fields))
	if ch.wrong = wrong; len(wrong) > 0 {
		return nil
	}
	tenants, err := s.cfg.Tenants.PlanList(ctx)
	if err != nil {
		return err
	}
	ch.tenants = tenants
	if ch.wrong = policy.Validate(next, tenants); len(ch.wrong) > 0 {
		return nil
	}
	ch.next, ch.rows = next, policy.Diff(ch.base.Document, next, tenants)
	if len(ch.rows) == 0 {
		ch.wrong = []control.FieldError{{Field: "document", Key: policy.KeyNothingChanged}}
	}
	return nil
}

// previewObject answers the posted form: the form again where something is wrong or the reader went back,
// the conflict where the base has moved, else the preview.
func (s *Console) previewObject(c *gin.Context, load loader) {
	ctx := c.Request.Context()
	ch, err := s.read(c, access.PolicyEdit, load)
	if err != nil {
		_ = c.Error(err)
		return
	}
	if ch.typed.edit || ch.typed.again && ch.typed.from != "preview" {
		show(c, http.StatusOK, page.EditPage(ch.object.form(ctx, ch.base.Number, &ch.typed, nil, true)))
		return
	}
	if len(ch.wrong) > 0 {
		s.formAgain(c, ch)
		return
	}
	head, err := s.cfg.Versions.Head(ctx)
	if err != nil {
		_ = c.Error(err)
		return
	}
	if head.Number != ch.base.Number {
		s.conflict(c, ch, head)
		return
	}
	show(c, http.StatusOK, page.PreviewPage(ch.preview(ctx, nil, s.mayPublish(c, ch))))
}

func (s *Console) mayPublish(c *gin.Context, ch *change) bool {
	return may(c, access.PolicyPub, ch.object.scope)
}

// formAgain shows the form with everything that was typed and what is wrong beside its field.
func (s *Console) formAgain(c *gin.Context, ch *change) {
	show(c, http.StatusUnprocessableEntity,
		page.EditPage(ch.object.form(c.Request.Context(), ch.base.Number, &ch.typed, ch.wrong, true)))
}

// publishObject answers the second step: it publishes by compare-and-set and leads to the new version.
func (s *Console) publishObject(c *gin.Context, load loader) {
	ctx := c.Request.Context()
	ch, err := s.read(c, access.PolicyPub, load)
	if err != nil {
		_ = c.Error(err)
		return
	}
	if len(ch.wrong) > 0 {
		s.formAgain(c, ch)
		return
	}
	if _, wrong := policy.CleanReason(ch.typed.reason); len(wrong) > 0 {
		show(c, http.StatusUnprocessableEntity, page.PreviewPage(ch.preview(ctx, wrong, true)))
		return
	}
	version, err := s.cfg.Publisher.Publish(ctx, policy.Publication{
		Base: ch.base.Number, Document: ch.next, Reason: ch.typed.reason, Actor: access.ActorOf(ctx),
	})
	if err != nil {
		s.refused(c, ch, err)
		return
	}
	s.await(ctx, version.Number)
	seeOther(c, "/versions/"+decimal(version.Number))
}

// await gives the version a moment to be in force here, so that the next page already shows it.
func (s *Console) await(ctx context.Context, number int64) {
	if s.cfg.Await == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitAtMost)
	defer cancel()
	if err := s.cfg.Await(ctx, number); err != nil {
		s.cfg.Log.WarnContext(ctx, "published version not yet in force here", "version", number, "error", err)
	}
}

// refused answers a publish that did not happen, with everything that was typed.
func (s *Console) refused(c *gin.Context, ch *change, err error) {
	ctx := c.Request.Context()
	if _, moved := policy.Moved(err); moved {
		head, headErr := s.cfg.Versions.Head(ctx)
		if headErr != nil {
			_ = c.Error(headErr)
			return
		}
		s.conflict(c, ch, head)
		return
	}
	if wrong := fieldsOf(err); len(wrong) > 0 {
		ch.wrong = wrong
		s.formAgain(c, ch)
		return
	}
	_ = c.Error(err)
}
