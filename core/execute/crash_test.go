//go:build faults

package execute

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

const (
	childEnv   = "SALLYPORT_CRASH_CHILD"
	crashLease = 3 * time.Second
)

// child is what a host process of its own is told.
type child struct {
	URL, Keys, Allow, ActionID, Owner string
	Principal                         core.Principal
}

// TestCrashChild is the host that dies or stalls; it does nothing by itself.
func TestCrashChild(t *testing.T) {
	text := os.Getenv(childEnv)
	if text == "" {
		t.Skip("only run as a process of its own")
	}
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(context.Background(), store.Options{URL: c.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := newRig(t, db, c.Keys, c.Allow)
	x := New(Deps{DB: db, Approval: r.approval, Connectors: r.connectors, Egress: r.egress, Owner: c.Owner, Lease: crashLease})
	if err := x.Run(context.Background(), c.ActionID); err != nil {
		t.Fatal(err)
	}
}

// scene is a host with one approved action, and a second host about to send it.
type scene struct {
	*rig
	p        *provider
	url      string
	keys     string
	actionID string
}

func newScene(t *testing.T, url string) *scene {
	t.Helper()
	p, keys := newProvider(t), t.TempDir()
	r := newRig(t, testdb.Open(t, url, nil), keys, p.Listener.Addr().String())
	r.settle()
	r.connect(p.URL + "/hook")
	runID, ids := r.propose(1)
	r.approve(runID)
	return &scene{rig: r, p: p, url: url, keys: keys, actionID: ids[0]}
}

// start runs the action in a process of its own that meets a fault.
func (s *scene) start(fault string) *exec.Cmd {
	s.t.Helper()
	raw, err := json.Marshal(child{URL: s.url, Keys: s.keys, Allow: s.p.Listener.Addr().String(), ActionID: s.actionID, Owner: "host-that-fails"})
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw), "SALLYPORT_FAULT="+fault)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd
}

// awaitSweep sweeps until the lease is over and the action has left its state.
func (s *scene) awaitSweep(x *Executor, from core.ActionStatus) core.ActionStatus {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := x.Sweep(ctx); err != nil {
			s.t.Fatal(err)
		}
		if status := s.action(s.actionID).Status; status != from {
			return status
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("the action stays %s", from)
		}
	}
}

func TestKillAtEachPoint(t *testing.T) {
	for _, c := range []struct {
		point         string
		left, settled core.ActionStatus
		sends, after  int // right after the kill, and once another host looked at it
		final         core.ActionStatus
	}{
		{"after_claim", core.ActionStatusClaimed, core.ActionStatusApproved, 0, 1, core.ActionStatusSucceeded},
		{"after_sending", core.ActionStatusSending, core.ActionStatusUnknown, 0, 0, core.ActionStatusUnknown},
		{"after_sent", core.ActionStatusSending, core.ActionStatusUnknown, 1, 1, core.ActionStatusUnknown},
		{"after_reply", core.ActionStatusSending, core.ActionStatusUnknown, 1, 1, core.ActionStatusUnknown},
	} {
		t.Run(c.point, func(t *testing.T) {
			testdb.EachURL(t, func(t *testing.T, url string) {
				s := newScene(t, url)
				cmd := s.start(c.point + "=kill")
				err := cmd.Wait()
				if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
					t.Fatalf("the host was not killed: %v", err)
				}
				if c.sends > 0 {
					s.awaitArrival()
				}
				if a := s.action(s.actionID); a.Status != c.left || len(s.p.got(s.actionID)) != c.sends {
					t.Fatalf("after the kill: %s, %d sends", a.Status, len(s.p.got(s.actionID)))
				}
				x := s.executor("host-that-lives")
				run1(t, x, s.actionID) // before the lease is over nobody else touches it
				if status := s.awaitSweep(x, c.left); status != c.settled {
					t.Fatalf("swept to %s, want %s", status, c.settled)
				}
				run1(t, x, s.actionID)
				run1(t, x, s.actionID)
				if a := s.action(s.actionID); a.Status != c.final || len(s.p.got(s.actionID)) != c.after {
					t.Errorf("in the end: %s after %d sends, want %s after %d", a.Status, len(s.p.got(s.actionID)), c.final, c.after)
				}
			})
		})
	}
}

func (s *scene) awaitArrival() {
	s.t.Helper()
	select {
	case <-s.p.arrived:
	case <-time.After(10 * time.Second):
		s.t.Fatal("nothing arrived at the provider")
	}
}

// TestStalledHost stops a host for longer than its lease and lets it go on.
func TestStalledHost(t *testing.T) {
	for _, c := range []struct {
		point         string
		left, settled core.ActionStatus
		final         []core.ActionStatus
	}{
		// The other host sends; the late one is refused its mark.
		{"after_claim", core.ActionStatusClaimed, core.ActionStatusApproved, []core.ActionStatus{core.ActionStatusSucceeded}},
		// The late host either still finds the reply, which settles it, or has run out of time.
		{"after_sent", core.ActionStatusSending, core.ActionStatusUnknown, []core.ActionStatus{core.ActionStatusSucceeded, core.ActionStatusUnknown}},
	} {
		t.Run(c.point, func(t *testing.T) {
			testdb.EachURL(t, func(t *testing.T, url string) {
				s := newScene(t, url)
				cmd := s.start(c.point + "=stall")
				var ws syscall.WaitStatus
				if _, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
					t.Fatalf("the host did not stop: %v, %v", err, ws)
				}
				x := s.executor("host-that-lives")
				if status := s.awaitSweep(x, c.left); status != c.settled {
					t.Fatalf("swept to %s, want %s", status, c.settled)
				}
				run1(t, x, s.actionID)
				if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("the late host: %v", err)
				}
				if a := s.action(s.actionID); !slices.Contains(c.final, a.Status) || len(s.p.got(s.actionID)) != 1 {
					t.Errorf("%s after %d sends, want %v after one", a.Status, len(s.p.got(s.actionID)), c.final)
				}
			})
		})
	}
}
