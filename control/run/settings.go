package run

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// storeSettings say where the facts lie. Without URLs private stores run under the data directory.
type storeSettings struct {
	DataDir     string `name:"data-dir" env:"FAIRLANE_DATA_DIR" default:".fairlane" help:"Folder of the private database, its keys and the demo's journal."`
	DatabaseURL string `name:"database-url" env:"FAIRLANE_DATABASE_URL" help:"PostgreSQL 15 or later; a private one is started when empty."`
	RedisURL    string `name:"redis-url" env:"FAIRLANE_REDIS_URL" help:"Redis 7 or later; a private one is started when empty."`
	Queue       string `name:"queue" env:"FAIRLANE_QUEUE" enum:"redis,memory" default:"redis" help:"Where the scheduler keeps its queue: redis (shared, read from PostgreSQL while Redis is away) or memory (of the process that plans)."`
	LogLevel    string `name:"log-level" env:"FAIRLANE_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

// serveSettings are those of a serving process.
type serveSettings struct {
	storeSettings
	Listen    string `env:"FAIRLANE_LISTEN" default:"127.0.0.1:8080" help:"Address of the console and the API."`
	PublicURL string `name:"public-url" env:"FAIRLANE_PUBLIC_URL" help:"Address under which browsers and providers reach this process; http://<listen> when empty."`
}

// check names the first setting that cannot be used, before anything is started.
func (s *storeSettings) check() error {
	if strings.TrimSpace(s.DataDir) == "" {
		return settingError{"FAIRLANE_DATA_DIR", "a folder is needed"}
	}
	dir, err := filepath.Abs(s.DataDir)
	if err != nil {
		return settingError{"FAIRLANE_DATA_DIR", err.Error()}
	}
	s.DataDir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return settingError{"FAIRLANE_DATA_DIR", err.Error()}
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return settingError{"FAIRLANE_DATA_DIR", fmt.Sprintf("%s cannot be written to: %v", dir, err)}
	}
	_ = probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return settingError{"FAIRLANE_DATA_DIR", err.Error()}
	}
	if err := checkURL("FAIRLANE_DATABASE_URL", s.DatabaseURL, "postgres", "postgresql"); err != nil {
		return err
	}
	return checkURL("FAIRLANE_REDIS_URL", s.RedisURL, "redis", "rediss", "unix")
}

func (s *serveSettings) check() error {
	_, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return settingError{"FAIRLANE_LISTEN", fmt.Sprintf("%q is not host:port", s.Listen)}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return settingError{"FAIRLANE_LISTEN", fmt.Sprintf("port %q is not a number from 0 to 65535", port)}
	}
	if err := checkURL("FAIRLANE_PUBLIC_URL", s.PublicURL, "http", "https"); err != nil {
		return err
	}
	s.PublicURL = strings.TrimRight(s.PublicURL, "/")
	return s.storeSettings.check()
}

// publish names the address under which the process is reached where no setting does: the one that it
// listens on, which is known only once it does (port 0 takes any).
func (s *serveSettings) publish(addr net.Addr) {
	if s.PublicURL != "" {
		return
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	s.PublicURL = "http://" + net.JoinHostPort(host, port)
}

func checkURL(name, value string, schemes ...string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil {
		return settingError{name, "is not a URL"} // the value may hold a password
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme {
			return nil
		}
	}
	return settingError{name, fmt.Sprintf("must begin with %s://, not with %q", strings.Join(schemes, ":// or "), u.Scheme)}
}

func (s *storeSettings) level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return slog.LevelInfo // the flag's enum lets nothing else through
	}
	return level
}
