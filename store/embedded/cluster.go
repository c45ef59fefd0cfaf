package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// farRoot is where root's cluster goes when its account cannot reach the data directory.
var farRoot = "/var/lib/fairlane"

const (
	clusterName = "postgres"
	// madeName is written, and synced, after initdb has ended well: a cluster without it is half made.
	madeName = "fairlane.made"
	// pointerName in the data directory names a cluster that lies elsewhere.
	pointerName = "cluster.path"
)

// locate returns the folder that holds (or will hold) the cluster, its lock and its endpoint.
func locate(ctx context.Context, dataDir string, acc account) (string, error) {
	pointer, err := os.ReadFile(filepath.Join(dataDir, pointerName))
	if err == nil {
		return strings.TrimSpace(string(pointer)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("data directory %s: %w", dataDir, err)
	}
	if acc.reaches(ctx, dataDir, "-x") {
		return dataDir, nil
	}
	if made(filepath.Join(dataDir, clusterName)) {
		return "", fmt.Errorf("the account %s cannot reach the cluster in %s: allow it to pass through the folders above", acc.name, dataDir)
	}
	if acc.credential == nil {
		return "", fmt.Errorf("data directory %s cannot be entered by %s", dataDir, acc.name)
	}
	sum := sha256.Sum256([]byte(dataDir))
	return filepath.Join(farRoot, hex.EncodeToString(sum[:8])), nil
}

// claimHome makes the far folder and leaves a pointer to it in the data directory.
func claimHome(ctx context.Context, home, dataDir string, acc account) error {
	if home == dataDir {
		return nil
	}
	if err := os.MkdirAll(home, 0o711); err != nil {
		return fmt.Errorf("folder %s cannot be made: %w", home, err)
	}
	if !acc.reaches(ctx, home, "-x") {
		return fmt.Errorf("the account %s can reach neither %s nor %s", acc.name, dataDir, home)
	}
	return replaceFile(filepath.Join(dataDir, pointerName), []byte(home+"\n"))
}

func made(cluster string) bool {
	_, err := os.Stat(filepath.Join(cluster, madeName))
	return err == nil
}

func clusterMajor(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("cluster %s: PG_VERSION: %w", cluster, err)
	}
	return major, nil
}

// makeCluster runs initdb in a folder of its own and moves the whole into place only when it is done, so
// that a crash at any moment leaves nothing that a later start would trust. A folder in that place that
// lacks the mark is not ours to delete: it is moved aside and named in the note.
func makeCluster(ctx context.Context, cfg Config, home string, server program, acc account) (note string, err error) {
	leftovers, _ := filepath.Glob(filepath.Join(home, clusterName+".new-*"))
	for _, dir := range leftovers {
		_ = os.RemoveAll(dir)
	}
	target := filepath.Join(home, clusterName)
	if _, err := os.Lstat(target); err == nil {
		aside, err := os.MkdirTemp(home, clusterName+".half-made-")
		if err != nil {
			return "", fmt.Errorf("data directory %s cannot be written: %w", home, err)
		}
		if err := os.Rename(target, filepath.Join(aside, clusterName)); err != nil {
			return "", fmt.Errorf("half-made cluster: %w", err)
		}
		note = fmt.Sprintf("A half-made database was found and moved to %s; a new one was made.", aside)
	}
	fresh, err := os.MkdirTemp(home, clusterName+".new-")
	if err != nil {
		return "", fmt.Errorf("data directory %s cannot be written: %w", home, err)
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // moved away when all went well
	if err := acc.take(fresh); err != nil {
		return "", err
	}
	logPath := filepath.Join(home, "initdb.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	args := []string{
		"--pgdata=" + fresh, "--encoding=UTF8", "--locale=C.UTF-8", "--username=" + role,
		"--auth-local=trust", "--auth-host=reject", "--data-checksums",
	}
	if cfg.UnsafeNoFsync {
		args = append(args, "--no-sync")
	}
	cmd := exec.Command(server.sibling("initdb"), args...) //nolint:gosec // found by findPostgres
	cmd.Stdout, cmd.Stderr = log, log
	initdb, err := startChild(cmd, "initdb", acc, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	select {
	case <-initdb.done:
	case <-ctx.Done():
		return "", initdb.stop(ctx, syscall.SIGKILL, syscall.SIGKILL, 0)
	}
	if initdb.err != nil {
		return "", fmt.Errorf("initdb failed (%w): %s", initdb.err, lastLine(logPath))
	}
	mark := filepath.Join(fresh, madeName)
	if err := replaceFile(mark, []byte(strconv.Itoa(server.major)+"\n")); err != nil {
		return "", fmt.Errorf("mark of the cluster: %w", err)
	}
	if err := acc.take(mark); err != nil {
		return "", fmt.Errorf("mark of the cluster: %w", err)
	}
	if err := os.Rename(fresh, target); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return note, syncDir(home)
}
