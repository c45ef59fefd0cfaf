package run

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Whatever is wrong with a setting ends the start with one line that names it.
func TestWrongSettingsEndTheStartWithOneLineThatNamesThem(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"busy port":            {[]string{"serve", "--listen", busy.Addr().String()}, 2, []string{"FAIRLANE_LISTEN", "in use"}},
		"no port":              {[]string{"serve", "--listen", "localhost"}, 2, []string{"FAIRLANE_LISTEN", "host:port"}},
		"port out of range":    {[]string{"serve", "--listen", "127.0.0.1:99999"}, 2, []string{"FAIRLANE_LISTEN", "99999"}},
		"data dir is a file":   {[]string{"serve", "--data-dir", file}, 2, []string{"FAIRLANE_DATA_DIR"}},
		"data dir in a file":   {[]string{"check", "--data-dir", filepath.Join(file, "x")}, 2, []string{"FAIRLANE_DATA_DIR"}},
		"database of another":  {[]string{"serve", "--database-url", "mysql://x"}, 2, []string{"FAIRLANE_DATABASE_URL", "postgres://"}},
		"database not a URL":   {[]string{"serve", "--database-url", "postgres://user:secret@[::1"}, 2, []string{"FAIRLANE_DATABASE_URL"}},
		"database unreachable": {[]string{"check", "--database-url", "postgres://127.0.0.1:1/none?connect_timeout=2"}, 1, []string{"127.0.0.1"}},
		"redis of another":     {[]string{"serve", "--redis-url", "http://x"}, 2, []string{"FAIRLANE_REDIS_URL"}},
		"public url":           {[]string{"serve", "--public-url", "ftp://x"}, 2, []string{"FAIRLANE_PUBLIC_URL"}},
		"unknown role":         {[]string{"user", "add", "lin", "--role", "king"}, 2, []string{"role", "king"}},
		"negative validity":    {[]string{"token", "add", "acme", "--valid=-1h"}, 2, []string{"--valid", "-1h"}},
		"log level":            {[]string{"serve", "--log-level", "loud"}, 2, []string{"log-level"}},
		"speed too high":       {[]string{"demo", "--speed", "1000"}, 2, []string{"FAIRLANE_DEMO_SPEED", "100"}},
		"speed not a number":   {[]string{"demo", "--speed", "fast"}, 2, []string{"speed"}},
		"unknown command":      {[]string{"fly"}, 2, []string{"fly"}},
		"unknown flag":         {[]string{"serve", "--fly"}, 2, []string{"--fly"}},
		"bench out of range":   {[]string{"bench", "page", "--runs", "1"}, 2, []string{"runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if args[0] != "fly" && args[0] != "bench" && !strings.HasPrefix(name, "data dir") {
				args = append(args, "--data-dir", filepath.Join(dir, strings.ReplaceAll(name, " ", "-")))
			}
			var out, errOut bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			code := MainContext(ctx, args, &out, &errOut)
			if ctx.Err() != nil {
				t.Fatal("it went on as if nothing were wrong")
			}
			said := strings.TrimSpace(errOut.String())
			if code != c.code {
				t.Errorf("code %d, want %d; said %q", code, c.code, said)
			}
			lines := strings.Split(said, "\n")
			last := lines[len(lines)-1]
			for _, want := range c.says {
				if !strings.Contains(last, want) {
					t.Errorf("the last line %q does not name %q", last, want)
				}
			}
			if strings.Contains(said, "secret") {
				t.Errorf("a password was printed: %q", said)
			}
		})
	}
}
