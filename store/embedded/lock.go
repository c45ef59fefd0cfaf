package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// ErrInUse says that another process runs the private store of this data directory.
var ErrInUse = errors.New("data directory is in use")

// dirLock keeps a second process out. The kernel drops it with the process; children do not inherit it.
type dirLock struct{ file *os.File }

func lock(path, dataDir string) (*dirLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", dataDir, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 32))
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is held by process %s; stop it or set FAIRLANE_DATA_DIR to another folder", ErrInUse, dataDir, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("data directory %s cannot be locked: %w", dataDir, err)
	}
	if err := file.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(file, "%d\n", os.Getpid()) // for the message above only
	}
	return &dirLock{file: file}, nil
}

// release gives the lock back also for the copies that a process has which is about to become another
// program.
func (l *dirLock) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}

// held tells whether some process has the lock.
func held(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
