//go:build faults

// Package crash kills the host at its fault points. The oracle is the ledger of a mail
// server and a webhook receiver outside the host, never the host's own record.
package crash

import (
	"context"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/e2e/harness"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

// TestKillNine kills the host at one point of one send, starts it again and looks at
// the ledger: no point may lead to a second send, and none may lose an action.
func TestKillNine(t *testing.T) {
	ctx := t.Context()
	bin, err := harness.Build(ctx, t.TempDir(), "faults")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		point  string
		want   core.ActionStatus
		ledger int
		why    string
	}{
		{"after_claim", core.ActionStatusSucceeded, 1, "certainly not sent: the lease ends and it is sent once"},
		{"after_sending", core.ActionStatusUnknown, 0, "marked but not written: core cannot know, so it says so"},
		{"after_sent", core.ActionStatusUnknown, 1, "the provider has the bytes and the record is missing"},
		{"after_reply", core.ActionStatusUnknown, 1, "the reply came and was not recorded"},
	} {
		for _, kind := range []string{"email.send", "webhook.post"} {
			t.Run(c.point+"/"+kind, func(t *testing.T) {
				testdb.EachURL(t, func(t *testing.T, url string) {
					if len(url) > 7 && url[:7] == "sqlite:" {
						url = "" // the host's own, in its data directory
					}
					oneKill(t, ctx, bin, url, c.point, kind, c.want, c.ledger, c.why)
				})
			})
		}
	}
}

func oneKill(t *testing.T, ctx context.Context, bin harness.Binaries, databaseURL, point, kind string, want core.ActionStatus, ledger int, why string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	s, err := harness.NewScene(ctx, bin, databaseURL, []string{"SALLYPORT_FAULT=" + point + "=kill", "SALLYPORT_EXECUTION_LEASE_SECONDS=5"}, "changelog")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runID, err := s.Launch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	act, err := s.Action(ctx, runID, kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Approve(ctx, act); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Host.Done():
	case <-ctx.Done():
		t.Fatalf("the host did not die at %s\n%s", point, s.Host.Log())
	}
	s.Host.Env = s.Host.Env[:1:1] // no fault this time
	s.Host.Env = append(s.Host.Env, "SALLYPORT_EXECUTION_LEASE_SECONDS=5")
	if err := s.Host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := s.Get(ctx, act.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.Status == want {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: the action is %s, want %s (%s)", point, now.Status, want, why)
		case <-tick.C:
		}
	}
	if got := s.Ledger(); got != ledger {
		t.Errorf("%s: the ledger has %d entries, want %d (%s)", point, got, ledger, why)
	}
	out, err := s.Host.Command(ctx, "", "audit", "verify", "--json")
	if err != nil {
		t.Errorf("%s: the audit log does not verify: %v %s", point, err, out)
	}
}
