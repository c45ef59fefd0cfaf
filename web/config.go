package web

import (
	"errors"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"

	"fairlane/policy/access"
)

// Config is what the engine needs beside its handlers.
type Config struct {
	Log        *slog.Logger
	Conditions Conditions
	Denials    access.Denials
	Session    gin.HandlerFunc          // puts the signed-in access.Subject into the request's context, if there is one
	Token      gin.HandlerFunc          // checks a tenant's API token; aborts with an answer when it is wrong
	Display    gin.HandlerFunc          // checks a wall's display token; nil: walls use sessions only
	Asset      func(name string) string // address of an embedded asset
	Preference Preferences              // keeps signed-in operators' choices beside the cookie; may be nil
	Secure     bool                     // mark cookies Secure although this process does not speak TLS itself
	Currency   string                   // sign of the platform's currency; default ¥
	MaxBody    int64                    // bytes; default 1 MB
	Now        func() time.Time
	// Served is told of every answer by the template of its route ("" for none), for metrics; may be nil.
	Served func(route, method string, status int, took time.Duration)
}

const defaultMaxBody = 1 << 20

func (cfg *Config) complete() error {
	if cfg.Log == nil || cfg.Conditions == nil || cfg.Denials == nil || cfg.Session == nil || cfg.Token == nil || cfg.Asset == nil {
		return errors.New("web: log, conditions, denials, session, token and asset are all needed")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.MaxBody < 0 {
		return errors.New("web: the largest body must be positive")
	}
	if cfg.Currency == "" {
		cfg.Currency = "¥"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return nil
}
