package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// account is who the children run as; the zero credential is the process's own.
type account struct {
	name       string
	uid, gid   int
	credential *syscall.Credential
}

// childAccount is oneself, or as root the first account that exists of those fit to own a cluster.
func childAccount() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		own, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			return account{}, fmt.Errorf("user id %d has no entry in /etc/passwd, which PostgreSQL asks for: add one or set FAIRLANE_DATABASE_URL", uid)
		}
		return account{name: own.Username, uid: uid, gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody", "daemon"} {
		entry, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(entry.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(entry.Gid, 10, 32)
		if uidErr != nil || gidErr != nil || uid == 0 {
			continue
		}
		return account{
			name: name, uid: int(uid), gid: int(gid),
			credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and neither of the accounts postgres, nobody, daemon exists: add one or set FAIRLANE_DATABASE_URL")
}

// reaches tells whether the account may use dir for the given shell test: -x to pass, -w to write.
// The kernel is asked, because modes alone do not tell (access lists, read-only mounts).
func (a account) reaches(ctx context.Context, dir, test string) bool {
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ask, "/bin/sh", "-c", `test "$1" "$2"`, "sh", test, dir)
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	return cmd.Run() == nil
}

// take gives a file or folder to the account.
func (a account) take(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}
