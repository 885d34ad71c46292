package plugin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes make a child its own process group that dies with the host.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pin opens the socket itself, not what a later change of the path may lead to, and
// returns a path through the open descriptor.
func pin(address string) (*os.File, string, error) {
	fd, err := unix.Open(address, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", fmt.Errorf("the socket that the plugin named cannot be opened: %w", err)
	}
	f := os.NewFile(uintptr(fd), "plugin-socket")
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, "", errors.Join(errors.New("what the plugin named is no socket"), f.Close())
	}
	return f, fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// checkPeer requires that the other end was opened by our child.
func checkPeer(conn net.Conn, pid int) error {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if credErr != nil {
		return credErr
	}
	if int(cred.Pid) != pid {
		return fmt.Errorf("the socket belongs to process %d, the plugin is process %d", cred.Pid, pid)
	}
	return nil
}
