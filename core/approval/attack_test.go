package approval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// harmless are columns of an action that carry no content and no permission: they
// steer when it is tried or tell what happened, and changing them cannot change what
// is sent. For these the test demands that what is sent is still what was approved.
var harmless = []string{"version", "status_reason", "credits", "created_at", "updated_at", "approved_at", "execute_at", "next_try_at", "connect_tries", "attempt",
	"generation", "claimed_once", "lease_owner", "lease_until", "steps_done", "steps", "started_at", "sending_at", "finished_at", "outcome", "external_id",
	"external_url", "sent_sha256", "exec_error", "superseded_by", "created_by", "created_by_id", "edited_by", "edited_by_id"}

// columns reads the names and the values of the only row that is selected.
func (f *fixture) columns(query string, args ...any) (names []string, values []any) {
	f.Helper()
	rows, err := f.db.WriterSQL().Query(query, args...)
	f.ok(err)
	defer func() { _ = rows.Close() }()
	names, err = rows.Columns()
	f.ok(err)
	if !rows.Next() {
		f.Fatal("no row")
	}
	values = make([]any, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	f.ok(rows.Scan(into...))
	return names, values
}

// flip is another value of the same kind that still reads as what the column holds.
func flip(column string, v any) any {
	switch x := v.(type) {
	case nil:
		return int64(1)
	case int64:
		if x == 0 || x == 1 { // perhaps a truth value
			return 1 - x
		}
		return x + 1_000_000
	case float64:
		return x + 1
	case []byte:
		y := slices.Clone(x)
		y[len(y)/2] ^= 1
		return y
	case string:
		switch {
		case column == "proof":
			return "P1"
		case column == "executor":
			return "manual"
		case column == "reversibility":
			return "reversible"
		case column == "decision":
			return "reject"
		case len(x) > 0 && (x[0] == '{' || x[0] == '['):
			return swapLetter(x)
		}
		return x + "x"
	}
	panic(fmt.Sprintf("%s holds a %T", column, v))
}

// swapLetter changes one letter inside the last JSON string, or empties a list.
func swapLetter(doc string) string {
	b := []byte(doc)
	for i := len(b) - 1; i > 0; i-- {
		if b[i] >= 'a' && b[i] < 'z' && b[i-1] != '\\' {
			b[i]++
			return string(b)
		}
	}
	if doc == "[]" {
		return `["x"]`
	}
	return doc + " "
}

// Somebody who can write to the database, but has no key, changes one stored value of
// an approved action: nothing is sent that was not approved.
func TestChangedColumnIsNotSent(t *testing.T) {
	probe := onSQLite(t)
	probe.approve(probe.pending("x")[0].ID)
	actions, _ := probe.columns("SELECT * FROM actions")
	decisions, _ := probe.columns("SELECT * FROM decisions")
	for table, names := range map[string][]string{"actions": actions, "decisions": decisions} {
		for _, column := range names {
			t.Run(table+"."+column, func(t *testing.T) {
				f := onSQLite(t)
				a := f.pending("hello")[0]
				f.approve(a.ID)
				_, values := f.columns("SELECT " + column + " FROM " + table)
				_, err := f.db.WriterSQL().Exec("UPDATE "+table+" SET "+column+" = ?", flip(column, values[0]))
				f.ok(err)
				e, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute)
				if err == nil && (table == "decisions" || !slices.Contains(harmless, column)) {
					t.Fatalf("claimed although %s was %v", column, values[0])
				}
				if err == nil && string(e.Steps()[0].HTTP.Body) != `{"text":"hello"}` {
					t.Fatal("other content than the approved one would be sent")
				}
			})
		}
	}
}

func TestForgedApprovalIsNotSent(t *testing.T) {
	exec := func(f *fixture, query string, args ...any) {
		f.Helper()
		r, err := f.db.WriterSQL().Exec(query, args...)
		f.ok(err)
		if n, _ := r.RowsAffected(); n == 0 {
			f.Fatal("nothing was changed")
		}
	}
	t.Run("state set by hand", func(t *testing.T) {
		f := onSQLite(t)
		a := f.pending("hello")[0]
		exec(f, "UPDATE actions SET status = 'approved', execute_at = 0")
		_, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute)
		f.refused(err, core.KindConflict, "recheck_failed")
		f.is(a.ID, core.ActionStatusFailed)
	})
	t.Run("decision of another action", func(t *testing.T) {
		f := onSQLite(t)
		acts := f.pending("hello", "other")
		f.approve(acts[0].ID)
		exec(f, "UPDATE decisions SET action_id = ?, digest = ?", acts[1].ID, acts[1].Digest)
		exec(f, "UPDATE actions SET status = 'approved', execute_at = 0 WHERE id = ?", acts[1].ID)
		_, err := f.s.Claim(f.Context(), acts[1].ID, "host", time.Minute)
		f.refused(err, core.KindConflict, "recheck_failed")
	})
	t.Run("void decision revived", func(t *testing.T) {
		f := onSQLite(t)
		a := f.pending("hello")[0]
		f.approve(a.ID)
		_, err := f.s.Revise(f.Context(), f.agent, a.ID, "", f.proposal(a.ID, "unseen"))
		f.ok(err)
		exec(f, "UPDATE decisions SET void = ?", false)
		exec(f, "UPDATE actions SET status = 'approved', execute_at = 0")
		_, err = f.s.Claim(f.Context(), a.ID, "host", time.Minute)
		f.refused(err, core.KindConflict, "recheck_failed")
	})
	t.Run("fewer people needed", func(t *testing.T) {
		f := onSQLite(t)
		f.policy(`{"needed":2}`)
		a := f.pending("hello")[0]
		f.approve(a.ID)
		exec(f, "UPDATE actions SET status = 'approved', execute_at = 0, needed = 1")
		_, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute)
		f.refused(err, core.KindConflict, "recheck_failed")
	})
	t.Run("rejected set to approved", func(t *testing.T) {
		f := onSQLite(t)
		a := f.pending("hello")[0]
		f.approve(a.ID)
		_, err := f.s.Revoke(f.Context(), f.owner, Decide{ActionID: a.ID, Channel: "rest"})
		f.ok(err)
		exec(f, "UPDATE actions SET status = 'approved'")
		_, err = f.s.Claim(f.Context(), a.ID, "host", time.Minute)
		f.refused(err, core.KindConflict, "recheck_failed")
	})
	t.Run("bytes changed after the claim", func(t *testing.T) {
		f := onSQLite(t)
		a := f.pending("hello")[0]
		f.approve(a.ID)
		e := f.claim(a.ID)
		var sealed string
		f.ok(f.db.WriterSQL().QueryRow("SELECT sealed FROM actions").Scan(&sealed))
		exec(f, "UPDATE actions SET sealed = ?", swapLetter(sealed))
		f.refused(f.s.MarkSending(f.Context(), e, "host"), core.KindConflict, "recheck_failed")
	})
}

// Two hundred people and keys approve, edit and execute one action at once: what is
// sent is sent once, and is exactly what somebody approved after seeing it.
func TestRaceOfApprovalsAndEdits(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a := f.pending("start")[0]
		approvedDigests, sends := sync.Map{}, atomic.Int32{}
		var sent atomic.Value
		var wg sync.WaitGroup
		start := make(chan struct{})
		run := func(n int, fn func(i int)) {
			for i := range n {
				wg.Go(func() {
					<-start
					fn(i)
				})
			}
		}
		run(80, func(i int) {
			seen, err := f.s.Get(f.Context(), f.owner, a.ID)
			if err != nil {
				t.Error(err)
				return
			}
			p := f.owner
			p.ID = fmt.Sprintf("usr_%03d", i)
			out, err := f.s.Approve(f.Context(), p, Decide{ActionID: a.ID, ExpectedDigest: seen.Digest, Channel: "rest"})
			if err == nil {
				for _, d := range out.Actions[0].Decisions {
					if d.By.ID == p.ID && d.Digest != seen.Digest {
						t.Errorf("a yes to %s was taken for %s", seen.Digest, d.Digest)
					}
				}
				approvedDigests.Store(seen.Digest, true)
			} else if k := core.AsError(err).Kind; k != core.KindPrecondition && k != core.KindConflict && k != core.KindUnavailable {
				t.Errorf("approve: %v", err)
			}
		})
		run(80, func(i int) {
			_, err := f.s.Revise(f.Context(), f.agent, a.ID, "", f.proposal(a.ID, fmt.Sprint("edit ", i)))
			if err != nil && !core.IsKind(err, core.KindConflict) && !core.IsKind(err, core.KindUnavailable) {
				t.Errorf("revise: %v", err)
			}
		})
		run(40, func(i int) {
			for range 3 {
				if digest := f.trySend(a.ID, fmt.Sprint("host ", i), i%3 == 0); digest != "" {
					sends.Add(1)
					sent.Store(digest)
				}
			}
		})
		close(start)
		wg.Wait()
		if n := sends.Load(); n > 1 {
			t.Fatalf("sent %d times", n)
		}
		if d, ok := sent.Load().(string); ok {
			if _, yes := approvedDigests.Load(d); !yes {
				t.Errorf("sent %s, which nobody approved", d)
			}
		}
		f.consistent(a.ID)
	})
}

// trySend does what an executor does, or gives the claim back before the mark. It
// returns the digest of what was sent, if anything was.
func (f *fixture) trySend(id, host string, giveBack bool) string {
	e, err := f.s.Claim(f.Context(), id, host, time.Minute)
	if err != nil {
		return ""
	}
	if giveBack {
		if _, err := f.s.ReturnToApproved(f.Context(), e, host, "refused"); err != nil && !core.IsKind(err, core.KindConflict) {
			f.Errorf("return: %v", err)
		}
		return ""
	}
	if f.s.MarkSending(f.Context(), e, host) != nil {
		return ""
	}
	if _, err := f.s.Record(f.Context(), e, host, Sent{Outcome: core.ActionExecutionOutcomeSucceeded}); err != nil {
		f.Errorf("record: %v", err)
	}
	return fmt.Sprintf("%x", e.Digest())
}

// consistent checks that the digest in force is the digest of what is stored, and that
// an approved state has its decision.
func (f *fixture) consistent(id string) {
	f.Helper()
	f.ok(f.db.InTx(f.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Action(ctx, ws, id)
		if err != nil {
			return err
		}
		installation, err := tx.InstallationID(ctx)
		if err != nil {
			return err
		}
		if _, err := check(a, installation); err != nil {
			return err
		}
		revisions, err := tx.ActionRevisions(ctx, ws, id)
		if err != nil {
			return err
		}
		if len(revisions) != a.Revision || revisions[len(revisions)-1].Digest != a.Digest {
			return fmt.Errorf("%d revisions are kept, the action is at %d", len(revisions), a.Revision)
		}
		decisions, err := tx.DecisionsOf(ctx, ws, id)
		if err != nil {
			return err
		}
		if a.Status == core.ActionStatusApproved || a.Status == core.ActionStatusSucceeded {
			if problem := f.s.proven(a, decisions); problem != "" {
				return fmt.Errorf("%s without proof: %s", a.Status, problem)
			}
		}
		return nil
	}))
}
