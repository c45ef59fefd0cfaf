package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketDir leaves room for the socket's name in the 107 bytes that the kernel allows.
const maxSocketDir = 80

const socketPrefix = "fairlane-"

// socketDir makes a short folder that only the account may enter, and writes it down at path before it is
// used, so that a kill at any moment leaves none that the next start does not know of.
func socketDir(ctx context.Context, acc account, path string) (string, error) {
	parent := os.TempDir()
	if len(parent)+len(socketPrefix)+12 > maxSocketDir || !acc.reaches(ctx, parent, "-x") {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, socketPrefix)
	if err != nil {
		return "", fmt.Errorf("folder for sockets: %w", err)
	}
	if err = (endpoint{SocketDir: dir}).write(path); err == nil {
		err = acc.take(dir)
	}
	if err != nil {
		_ = os.Remove(dir)
		return "", fmt.Errorf("folder for sockets: %w", err)
	}
	return dir, nil
}

// endpoint is what is kept beside the lock while a store runs, so that other commands find it and the
// next start can clear what a kill left behind.
type endpoint struct {
	URL       string `json:"url"`
	SocketDir string `json:"socket_dir"`
	PID       int    `json:"pid"`
}

func (e endpoint) write(path string) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

func readEndpoint(path string) (endpoint, error) {
	var e endpoint
	text, err := os.ReadFile(path)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(text, &e)
}

// clearStale removes the socket folder of a store that did not stop by itself. The caller holds the lock.
func clearStale(path string) {
	old, err := readEndpoint(path)
	if err == nil && strings.HasPrefix(filepath.Base(old.SocketDir), socketPrefix) {
		_ = os.RemoveAll(old.SocketDir)
	}
	_ = os.Remove(path)
}

// replaceFile writes a file so that a crash leaves the old or the new content, never a part.
func replaceFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // gone after the rename
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
