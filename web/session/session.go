package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"fairlane/control"
	"fairlane/policy/access"
)

const (
	cookieName = "fl_session"
	touchEvery = time.Minute

	keyOperator = "operator"
	keyLogin    = "login"
	keyName     = "name"
)

// Config is what sessions need.
type Config struct {
	Operators Operators
	Store     Store
	Rights    Rights
	Denials   access.Denials // hears of failed sign-ins
	Log       *slog.Logger
	Idle      time.Duration // without use; default 12 h
	Absolute  time.Duration // in any case; default 7 days
	Secure    bool          // mark the cookie Secure although this process does not speak TLS itself
	Now       func() time.Time
}

// Sessions signs people in and out and knows them again.
type Sessions struct {
	cfg     Config
	scs     *scs.SessionManager
	tries   *tries
	touched *tokenTimes
}

// New checks the configuration.
func New(cfg Config) (*Sessions, error) {
	if cfg.Operators == nil || cfg.Store == nil || cfg.Rights == nil || cfg.Denials == nil || cfg.Log == nil {
		return nil, errors.New("session: operators, store, rights, denials and log are all needed")
	}
	if cfg.Idle == 0 {
		cfg.Idle = 12 * time.Hour
	}
	if cfg.Absolute == 0 {
		cfg.Absolute = 7 * 24 * time.Hour
	}
	if cfg.Idle < time.Minute || cfg.Absolute < cfg.Idle {
		return nil, errors.New("session: idle must be a minute at least, and absolute no shorter than idle")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	// Not scs.New: it starts a goroutine for a store in memory that nothing here uses.
	m := &scs.SessionManager{Store: cfg.Store, Codec: scs.GobCodec{}, IdleTimeout: cfg.Idle, Lifetime: cfg.Absolute}
	return &Sessions{cfg: cfg, scs: m, tries: newTries(), touched: newTokenTimes()}, nil
}

// Load is the engine's session step: it finds who is signed in. A store that does not answer is an error,
// not a stranger. The answer is never wrapped, so that sockets can be opened behind it.
func (s *Sessions) Load(c *gin.Context) {
	token, err := c.Request.Cookie(cookieName)
	if err != nil || token.Value == "" || len(token.Value) > 128 || !wanted(c) {
		return
	}
	ctx, err := s.scs.Load(c.Request.Context(), token.Value)
	if err != nil {
		_ = c.Error(err)
		c.Abort()
		return
	}
	c.Request = c.Request.WithContext(ctx)
	operator, err := uuid.Parse(s.scs.GetString(ctx, keyOperator))
	if err != nil {
		return // no such session, or one that ended
	}
	rights, err := s.cfg.Rights.Rights(operator)
	if err != nil {
		_ = c.Error(err)
		c.Abort()
		return
	}
	c.Request = c.Request.WithContext(access.WithSubject(ctx, access.Subject{
		Operator: operator, Login: s.scs.GetString(ctx, keyLogin), Name: s.scs.GetString(ctx, keyName),
		Session: Hash(token.Value), Rights: rights,
	}))
	if c.FullPath() != "/banners" { // a page that is merely left open does not keep its session
		s.touch(c.Request.Context(), token.Value)
	}
}

// wanted spares assets and probes the look-up.
func wanted(c *gin.Context) bool {
	switch c.FullPath() {
	case "/static/*file", "/livez", "/readyz", "/metrics":
		return false
	}
	return true
}

func (s *Sessions) touch(ctx context.Context, token string) {
	now := s.cfg.Now()
	if !s.touched.due(Hash(token), now, touchEvery) {
		return
	}
	if err := s.cfg.Store.Touch(ctx, token, s.cfg.Idle, s.cfg.Absolute); err != nil {
		s.cfg.Log.WarnContext(ctx, "session not extended", "error", err)
	}
}

// Alive reports which of the token hashes are those of living sessions of active operators.
func (s *Sessions) Alive(ctx context.Context, tokenHashes []string) (map[string]bool, error) {
	return s.cfg.Store.Alive(ctx, tokenHashes)
}

// Hash is under what a session's token is kept.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// begin opens a new session for the operator, whatever id the browser came with, and returns its token.
func (s *Sessions) begin(ctx context.Context, op access.Account) (string, time.Time, error) {
	ctx, err := s.scs.Load(ctx, "") // the session of the request, if there is one
	if err != nil {
		return "", time.Time{}, err
	}
	if err := s.scs.Clear(ctx); err != nil {
		return "", time.Time{}, err
	}
	if err := s.scs.RenewToken(ctx); err != nil {
		return "", time.Time{}, err
	}
	s.scs.Put(ctx, keyOperator, op.ID.String())
	s.scs.Put(ctx, keyLogin, op.Login)
	s.scs.Put(ctx, keyName, op.Name)
	ctx = access.WithSubject(ctx, access.Subject{Operator: op.ID, Login: op.Login, Name: op.Name})
	return s.scs.Commit(ctx)
}

// end destroys the session of the token; one that does not exist is no error.
func (s *Sessions) end(ctx context.Context, token string) error {
	return s.cfg.Store.DeleteCtx(ctx, token)
}

func (s *Sessions) setCookie(c *gin.Context, token string, expires time.Time) {
	cookie := &http.Cookie{
		Name: cookieName, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.cfg.Secure || c.Request.TLS != nil, Expires: expires,
	}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.Writer, cookie)
}

// actorOf is who acts, named by what was typed as long as nobody is known.
func actorOf(c *gin.Context, id uuid.UUID, login string) control.Actor {
	actor := access.ActorOf(c.Request.Context())
	actor.ID, actor.Name = id, login
	return actor
}
