//go:build unix

package testdb

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// asUser runs commands as an ordinary user. Postgres refuses to run as root.
type asUser struct {
	credential *syscall.Credential // nil: as ourselves
}

func ordinaryUser() (asUser, error) {
	if os.Geteuid() != 0 {
		return asUser{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return asUser{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return asUser{}, errors.New("Postgres does not run as root, and neither the user postgres nor nobody exists here")
}

func (a asUser) own(dir string) error {
	if a.credential == nil {
		return nil
	}
	if err := os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
		return fmt.Errorf("directory for Postgres: %w", err)
	}
	return nil
}

func (a asUser) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	return cmd
}

func detach(cmd *exec.Cmd) { cmd.SysProcAttr.Setsid = true }
