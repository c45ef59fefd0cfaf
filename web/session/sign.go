package session

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
	"fairlane/views"
	"fairlane/views/page"
)

const maxLogin = 64

// Handlers returns the handlers by their names in the route table.
func (s *Sessions) Handlers() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{"session.form": s.form, "session.start": s.start, "session.end": s.stop}
}

// form shows the sign-in page, or leads on whoever is signed in already.
func (s *Sessions) form(c *gin.Context) {
	next := views.LocalPath(c.Query("next"))
	if _, ok := access.SubjectOf(c.Request.Context()); ok {
		c.Redirect(http.StatusSeeOther, next)
		return
	}
	s.show(c, http.StatusOK, page.SignIn{Next: next})
}

// start checks login and password. Whatever is wrong, the answer and its time are the same.
func (s *Sessions) start(c *gin.Context) {
	form := c.Request.PostForm
	login, password := strings.TrimSpace(form.Get("login")), form.Get("password")
	model := page.SignIn{Login: shown(login), Next: views.LocalPath(form.Get("next"))}
	if form.Has("set_lang") || form.Has("set_theme") {
		s.show(c, http.StatusOK, model)
		return
	}
	if login == "" {
		model.LoginError = views.Say("sign_in.login_missing")
	}
	if password == "" {
		model.PasswordError = views.Say("sign_in.password_missing")
	}
	if login == "" || password == "" {
		s.show(c, http.StatusUnprocessableEntity, model)
		return
	}
	account, address := "account:"+login, "address:"+access.ActorOf(c.Request.Context()).SourceAddress
	if wait, ok := s.take(account, address); !ok {
		minutes := int64(math.Ceil(wait.Minutes()))
		c.Header("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		model.Failure = views.Say("sign_in.too_many", "Minutes", minutes)
		s.show(c, http.StatusTooManyRequests, model)
		return
	}
	op, err := s.check(c, login, password)
	if err != nil {
		s.giveBack(account, address) // nothing was learnt about the password
		_ = c.Error(err)
		return
	}
	if op.ID == uuid.Nil {
		s.cfg.Denials.Denied(c.Request.Context(), actorOf(c, uuid.Nil, shown(login)), "session.start", "POST /sign-in")
		model.Failure = views.Say("sign_in.wrong")
		s.show(c, http.StatusUnauthorized, model)
		return
	}
	s.tries.forget(account)
	s.tries.giveBack(address)
	s.welcome(c, op, model.Next)
}

// check returns the operator whose password it is, or a zero one.
func (s *Sessions) check(c *gin.Context, login, password string) (access.Account, error) {
	ctx := c.Request.Context()
	if utf8.RuneCountInString(login) > maxLogin || utf8.RuneCountInString(password) > MaxPassword || !utf8.ValidString(login) || strings.ContainsRune(login, 0) {
		_, err := verify(ctx, "", nobody)
		return access.Account{}, err
	}
	op, err := s.cfg.Operators.OperatorByLogin(ctx, login)
	known := err == nil && op.Active
	if err != nil && control.CodeOf(err) != control.CodeNotFound {
		return access.Account{}, err
	}
	hash := op.PasswordHash
	if !known {
		hash = nobody
	}
	right, err := verify(ctx, password, hash)
	if err != nil || !right || !known {
		return access.Account{}, err
	}
	return op, nil
}

// welcome ends the session that the browser came with, opens a new one and leads on.
func (s *Sessions) welcome(c *gin.Context, op access.Account, next string) {
	ctx := access.WithActor(c.Request.Context(), actorOf(c, op.ID, op.Login))
	if old, err := c.Request.Cookie(cookieName); err == nil && old.Value != "" {
		if err := s.end(ctx, old.Value); err != nil {
			_ = c.Error(err)
			return
		}
	}
	token, expires, err := s.begin(ctx, op)
	if err != nil {
		_ = c.Error(err)
		return
	}
	s.setCookie(c, token, expires)
	s.restoreChoice(c, "fl_lang", op.Language)
	s.restoreChoice(c, "fl_theme", op.Theme)
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, next)
}

// restoreChoice brings a stored choice of language or theme to a browser that has none.
func (s *Sessions) restoreChoice(c *gin.Context, name, value string) {
	if _, err := c.Request.Cookie(name); err == nil || value == "" || c.Request.PostForm.Get("set_lang") != "" {
		return
	}
	http.SetCookie(c.Writer, &http.Cookie{Name: name, Value: url.QueryEscape(value), Path: "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.cfg.Secure || c.Request.TLS != nil})
}

// stop ends the session for good.
func (s *Sessions) stop(c *gin.Context) {
	if token, err := c.Request.Cookie(cookieName); err == nil {
		if err := s.end(c.Request.Context(), token.Value); err != nil {
			_ = c.Error(err)
			return
		}
	}
	s.setCookie(c, "", time.Unix(1, 0))
	c.Header("Cache-Control", "no-store")
	c.Header("Clear-Site-Data", `"cache", "storage"`)
	c.Redirect(http.StatusSeeOther, "/sign-in")
}

func (s *Sessions) show(c *gin.Context, status int, model page.SignIn) {
	if err := views.Render(c.Writer, c.Request, status, page.SignInPage(model)); err != nil {
		_ = c.Error(err)
	}
}

// take counts the try under both keys, or under none.
func (s *Sessions) take(account, address string) (time.Duration, bool) {
	now := s.cfg.Now()
	if wait, ok := s.tries.take(address, now); !ok {
		return wait, false
	}
	if wait, ok := s.tries.take(account, now); !ok {
		s.tries.giveBack(address)
		return wait, false
	}
	return 0, true
}

func (s *Sessions) giveBack(keys ...string) {
	for _, key := range keys {
		s.tries.giveBack(key)
	}
}

// shown bounds what is repeated of a typed login.
func shown(login string) string {
	if runes := []rune(login); len(runes) > maxLogin {
		return string(runes[:maxLogin]) + "…"
	}
	return login
}
