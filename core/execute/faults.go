//go:build faults

package execute

import (
	"os"
	"strings"
	"syscall"
)

// Hit ends or stalls the process at a named point when SALLYPORT_FAULT says so, for
// example after_sending=kill. Builds without the tag faults have no such thing.
func Hit(name string) {
	what, ok := strings.CutPrefix(os.Getenv("SALLYPORT_FAULT"), name+"=")
	if !ok {
		return
	}
	switch what {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal arrives before anything else happens
	case "stall":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}
