package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const (
	minPostgres = 15
	minRedis    = 7

	needPostgres = "install the Debian package postgresql, or set FAIRLANE_DATABASE_URL"
	needRedis    = "install the Debian package redis-server, or set FAIRLANE_REDIS_URL"
)

// usualDirs are PATH and the places in which distributions hide the server's programs.
func usualDirs() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, found...)
	}
	return append(dirs, "/usr/bin", "/usr/local/bin", "/usr/sbin")
}

type program struct {
	path  string
	major int
}

// sibling is a program of the same installation. Only here are links followed: redis-server may itself
// be a link to a program that looks at the name under which it was called.
func (p program) sibling(name string) string {
	if real, err := filepath.EvalSymlinks(p.path); err == nil {
		return filepath.Join(filepath.Dir(real), name)
	}
	return filepath.Join(filepath.Dir(p.path), name)
}

// findPostgres returns the newest server of at least minPostgres, or exactly of major when that is not 0.
func findPostgres(ctx context.Context, dirs []string, major int) (program, error) {
	all := find(ctx, dirs, "postgres", regexp.MustCompile(`\(PostgreSQL\) (\d+)`))
	var best, any program
	for _, p := range all {
		if !executable(p.sibling("initdb")) {
			continue
		}
		if p.major > any.major {
			any = p
		}
		if p.major >= minPostgres && (major == 0 || p.major == major) && p.major > best.major {
			best = p
		}
	}
	switch {
	case best.path != "":
		return best, nil
	case any.path == "":
		return best, fmt.Errorf("PostgreSQL %d or later is not on this machine: %s", minPostgres, needPostgres)
	case any.major < minPostgres:
		return best, fmt.Errorf("%s is PostgreSQL %d, %d or later is needed: %s", any.path, any.major, minPostgres, needPostgres)
	}
	return best, fmt.Errorf("the cluster was made by PostgreSQL %d, found is %d (%s): install the Debian package postgresql-%d", major, any.major, any.path, major)
}

func findRedis(ctx context.Context, dirs []string) (program, error) {
	var best program
	for _, p := range find(ctx, dirs, "redis-server", regexp.MustCompile(`v=(\d+)`)) {
		if p.major > best.major {
			best = p
		}
	}
	if best.path == "" {
		return best, fmt.Errorf("redis-server %d or later is not on this machine: %s", minRedis, needRedis)
	}
	if best.major < minRedis {
		return best, fmt.Errorf("%s is version %d, %d or later is needed: %s", best.path, best.major, minRedis, needRedis)
	}
	return best, nil
}

// find asks every program of that name for its version; one that does not answer is passed over.
func find(ctx context.Context, dirs []string, name string, version *regexp.Regexp) []program {
	var found []program
	seen := map[string]bool{}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] || !filepath.IsAbs(path) || !executable(path) {
			continue
		}
		seen[real] = true
		ask, cancel := context.WithTimeout(ctx, 5*time.Second)
		out, err := exec.CommandContext(ask, path, "--version").Output() //nolint:gosec // a program of that name in a folder of PATH
		cancel()
		match := version.FindSubmatch(out)
		if err != nil || match == nil {
			continue
		}
		major, err := strconv.Atoi(string(match[1]))
		if err != nil {
			continue
		}
		found = append(found, program{path: path, major: major})
	}
	return found
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
