package simulated

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairlane/control/provider"
)

// Launch says where a server lives and how one is started.
type Launch struct {
	Dir    string   // config, journal, control file and log
	Exe    string   // the program
	Args   []string // default: simulated-provider --dir Dir
	Env    []string // default: PATH and HOME of this process
	Config Config   // empty secrets are made once and kept in Dir
}

// Instance is a server that answers.
type Instance struct {
	URL     string
	Config  Config // with its secrets
	Started bool   // by this call; false: it ran already
}

const (
	startBound  = 10 * time.Second
	healthBound = time.Second
	stopBound   = 2 * time.Second // for a server that neither answers nor lets go of its journal
)

// Ensure finds the server of l.Dir, or starts one as a process of its own that this one's end does not
// end. One that runs with another config, or hangs, is replaced; its jobs go on.
func Ensure(ctx context.Context, l Launch) (*Instance, error) {
	dir, err := filepath.Abs(l.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("simulated provider: %w", err)
	}
	cfg := l.Config
	if err := cfg.fillSecrets(dir); err != nil {
		return nil, err
	}
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("simulated provider: %w", err)
	}
	if c, err := readControl(dir); err == nil {
		if answers(ctx, c, dir) && c.Digest == cfg.digest() {
			return &Instance{URL: c.URL, Config: cfg}, nil
		}
		if err := Stop(ctx, dir); err != nil {
			return nil, err
		}
	}
	if err := writeFile(configPath(dir), cfg); err != nil {
		return nil, fmt.Errorf("simulated provider: %w", err)
	}
	exited, err := l.start(dir)
	if err != nil {
		return nil, fmt.Errorf("simulated provider: %w", err)
	}
	url, err := awaitHealth(ctx, dir, cfg.digest(), exited)
	if err != nil {
		return nil, err
	}
	return &Instance{URL: url, Config: cfg, Started: true}, nil
}

// Stop ends the server of dir and waits until it is gone, at most two seconds before it is killed. That
// none runs is no error.
func Stop(ctx context.Context, dir string) error {
	c, err := readControl(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	patience := 100 // of 20 ms, before it is killed
	bound, cancel := context.WithTimeout(ctx, stopBound)
	defer cancel()
	for !healthy(bound, c) {
		if released(dir) {
			return nil
		}
		if holds(c.PID, dir) { // it hangs
			patience = 25
			break
		}
		select { // a process that was killed holds its files for a moment longer
		case <-bound.Done(): // the pid is somebody else's by now, and the journal is held all the same
			return fmt.Errorf("simulated provider: process %d does not answer", c.PID)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := syscall.Kill(c.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("simulated provider: %w", err)
	}
	for n := range 150 { // 3 s
		if released(dir) && gone(c.PID) {
			return nil
		}
		if n == patience {
			_ = syscall.Kill(c.PID, syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("simulated provider: process %d does not stop", c.PID)
}

// Keep looks after the server of l until ctx ends, and starts it again when it no longer answers.
func Keep(ctx context.Context, l Launch, log *slog.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Second):
		}
		c, err := readControl(l.Dir)
		if (err == nil && healthy(ctx, c)) || ctx.Err() != nil {
			continue
		}
		if !released(l.Dir) { // it lives: the machine is busy, or it is stopping
			log.Warn("simulated provider does not answer")
			continue
		}
		if _, err := Ensure(ctx, l); err != nil && ctx.Err() == nil {
			log.Error("simulated provider cannot be started", "error", err)
		} else if err == nil {
			log.Warn("simulated provider was started again")
		}
	}
}

// Providers makes the adapters of every profile of the instance, over one client each. close drops
// their connections.
func (i *Instance) Providers() (list []provider.Provider, closeAll func(), err error) {
	var clients []*provider.Client
	closeAll = func() {
		for _, c := range clients {
			c.Close()
		}
	}
	for _, p := range i.Config.Profiles {
		client := provider.NewClient(provider.ClientConfig{Allow: provider.Loopback(), Secrets: []string{i.Config.APIKey, i.Config.WebhookSecret}})
		clients = append(clients, client)
		adapter, err := NewAdapter(i.URL, i.Config, p, client)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		list = append(list, provider.Provider{Code: p.Code, Capabilities: i.Config.Capabilities(p), Adapter: adapter})
	}
	return list, closeAll, nil
}

func (c *Config) digest() string {
	raw, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// fillSecrets takes over the secrets of the run before, or makes them.
func (c *Config) fillSecrets(dir string) error {
	var before Config
	raw, err := os.ReadFile(configPath(dir))
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &before); err != nil {
			return fmt.Errorf("%s: %w", configPath(dir), err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if c.APIKey == "" {
		if c.APIKey = before.APIKey; c.APIKey == "" {
			c.APIKey = randomText()
		}
	}
	if c.WebhookSecret == "" {
		if c.WebhookSecret = before.WebhookSecret; c.WebhookSecret == "" {
			var key [32]byte
			_, _ = rand.Read(key[:]) // never fails
			c.WebhookSecret = "whsec_" + base64.StdEncoding.EncodeToString(key[:])
		}
	}
	return nil
}

// start starts the program in a session of its own: neither a signal to our terminal nor our end
// reaches it.
func (l Launch) start(dir string) (exited <-chan struct{}, err error) {
	args := l.Args
	if args == nil {
		args = []string{"simulated-provider", "--dir", dir}
	}
	env := l.Env
	if env == nil {
		env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	}
	log, err := os.OpenFile(filepath.Join(dir, "provider.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(l.Exe, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() { // reaps it, should it end before we do
		_ = cmd.Wait()
		close(gone)
	}()
	return gone, nil
}

func awaitHealth(ctx context.Context, dir, digest string, exited <-chan struct{}) (string, error) {
	bound, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		if c, err := readControl(dir); err == nil && c.Digest == digest && healthy(bound, c) {
			return c.URL, nil
		}
		select {
		case <-exited:
			return "", fmt.Errorf("simulated provider ended at its start: %s", lastLine(dir))
		case <-bound.Done():
			return "", fmt.Errorf("simulated provider did not answer within %v: %s", startBound, lastLine(dir))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func lastLine(dir string) string {
	raw, err := os.ReadFile(filepath.Join(dir, "provider.log"))
	if err != nil || len(raw) == 0 {
		return "it said nothing"
	}
	return provider.Clean(string(raw[max(0, len(raw)-400):]), 400)
}

// healthy reports whether the server that wrote c answers at its address.
func healthy(ctx context.Context, c beacon) bool {
	ctx, cancel := context.WithTimeout(ctx, healthBound)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	var body struct {
		ID string `json:"id"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 4096)).Decode(&body)
	return err == nil && c.ID != "" && body.ID == c.ID
}

// answers asks a server that lives up to three times: on a busy machine it may be slow.
func answers(ctx context.Context, c beacon, dir string) bool {
	for range 3 {
		if healthy(ctx, c) {
			return true
		}
		if released(dir) {
			return false
		}
	}
	return false
}

// holds reports whether that process has the journal of dir open, which is to say that it is its server;
// false also where the system does not tell.
func holds(pid int, dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && to == JournalPath(abs) {
			return true
		}
	}
	return false
}

// gone reports whether a process has ended; one that only waits to be reaped has.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && strings.HasPrefix(rest, "Z")
}

// released reports whether nobody holds the journal any more.
func released(dir string) bool {
	file, err := os.OpenFile(JournalPath(dir), os.O_RDWR, 0o600)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	defer func() { _ = file.Close() }()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
