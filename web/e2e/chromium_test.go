package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// chromium is the one browser of the package.
var chromium struct {
	sync.Mutex
	ctx    context.Context
	cancel []context.CancelFunc
	err    error
}

// browserNames are what distributions call it.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// startedChromium returns the context under which tabs are opened.
func startedChromium(t testing.TB) context.Context {
	t.Helper()
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx == nil && chromium.err == nil {
		chromium.err = startChromium()
	}
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.ctx
}

func startChromium() error {
	path := ""
	for _, name := range browserNames {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return fmt.Errorf("no Chromium in PATH (looked for %v): `make test` installs it", browserNames)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-US"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	chromium.cancel = []context.CancelFunc{cancel, stop}
	// The first call starts the browser and binds its life to the context: it must not have a deadline.
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(ctx) }()
	select {
	case err := <-started:
		if err != nil {
			return fmt.Errorf("chromium (%s) does not start: %w", path, err)
		}
	case <-time.After(time.Minute):
		cancel()
		stop()
		return fmt.Errorf("chromium (%s) does not start within a minute: %w", path, <-started)
	}
	chromium.ctx = ctx
	return nil
}

func closeChromium() error {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx == nil {
		return nil
	}
	err := chromedp.Cancel(chromium.ctx)
	for _, cancel := range chromium.cancel {
		cancel()
	}
	return err
}
