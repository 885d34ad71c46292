package e2e

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the test locks the host's own database file

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/e2e/harness"
)

func scene(t *testing.T, hooks ...string) (*harness.Scene, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	s, err := harness.NewScene(ctx, bin, "", nil, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, ctx
}

func TestASecondHostOnTheSameFileRefusesToStart(t *testing.T) {
	s, ctx := scene(t)
	second, err := harness.NewHost(bin, s.Host.Data, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(ctx); err == nil {
		_ = second.Kill()
		t.Fatal("a second host started on the same database")
	} else if !strings.Contains(err.Error(), "host_running") {
		t.Errorf("the second host does not say why: %v", err)
	}
	if r, err := s.Host.Do(ctx, "GET", "/readyz", nil); err != nil || r.Status != 200 {
		t.Errorf("the first host suffered: %v %v", r, err)
	}
}

func TestAKilledPluginComesBackAndHurtsNobody(t *testing.T) {
	s, ctx := scene(t)
	pid := func(name string) (int, core.PluginStatus) {
		var page struct{ Plugins []core.Plugin }
		if err := s.Host.JSON(ctx, s.Token, "GET", "/api/plugins", nil, &page); err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Plugins {
			if p.Name == name && p.Pid != nil {
				return *p.Pid, p.Status
			} else if p.Name == name {
				return 0, p.Status
			}
		}
		t.Fatalf("no plugin %s", name)
		return 0, ""
	}
	victim, _ := pid("socialposts")
	other, _ := pid("landingcopy")
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Host.Tool(ctx, s.Key, "platform_list_operators", map[string]any{}, nil); err != nil {
		t.Errorf("another tool suffered: %v", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, status := pid("socialposts"); now != 0 && now != victim && status == core.PluginStatusRunning {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("the plugin did not come back")
		case <-tick.C:
		}
	}
	if now, _ := pid("landingcopy"); now != other {
		t.Error("another plugin was restarted")
	}
	args := map[string]any{"topic": "CSV export of all invoices of a month in under 10 seconds, for freelancers"}
	if _, err := s.Host.Tool(ctx, s.Key, "mkt_generate_social_posts", args, nil); err != nil && strings.Contains(err.Error(), "unavailable") {
		t.Errorf("its tool is still unavailable: %v", err)
	}
}

// TestNothingIsSentWhileTheDatabaseCannotBeWritten holds the database's write lock from
// outside, longer than the host waits for it, while a decision comes in.
func TestNothingIsSentWhileTheDatabaseCannotBeWritten(t *testing.T) {
	s, ctx := scene(t, "changelog")
	runID, err := s.Launch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	act, err := s.Action(ctx, runID, "webhook.post")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(s.Host.Data, "sallyport.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout=10000"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Host.Do(ctx, "POST", "/api/actions/"+act.ID+"/approve", map[string]string{"expectedDigest": act.Digest}, "Authorization", "Bearer "+s.Token)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status < 500 || s.Ledger() != 0 {
		t.Errorf("with a database that cannot be written: status %d, ledger %d; want a 5xx and 0\n%s", r.Status, s.Ledger(), r.Body)
	}
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := s.Approve(ctx, act); err != nil {
		t.Fatalf("after the lock was given back: %v", err)
	}
	if _, err := harness.Settled(ctx, s.Host, s.Token, runID); err != nil {
		t.Fatal(err)
	}
	if s.Ledger() != 1 {
		t.Errorf("the ledger has %d entries, want 1", s.Ledger())
	}
}
