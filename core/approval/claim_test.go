package approval

import (
	"context"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approved"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

func moneyOf(micros int64) effect.Money { return effect.Money{Micros: micros, Currency: "EUR"} }

func (f *fixture) claim(id string) approved.Effect {
	f.Helper()
	e, err := f.s.Claim(f.Context(), id, "host", time.Minute)
	f.ok(err)
	return e
}

func (f *fixture) policy(doc string) {
	f.Helper()
	f.ok(f.db.InTx(f.Context(), func(ctx context.Context, tx *store.Tx) error {
		w, err := tx.Workspace(ctx, ws)
		if err != nil {
			return err
		}
		w.Policy = store.JSON(doc)
		return tx.UpdateWorkspace(ctx, w)
	}))
}

func TestClaimHandsOutExactlyWhatWasApproved(t *testing.T) {
	onBoth(t, func(f *fixture) {
		a := f.pending("hello")[0]
		f.approve(a.ID)
		e := f.claim(a.ID)
		step := e.Steps()[0]
		if string(step.HTTP.Body) != `{"text":"hello"}` || step.HTTP.URL != "https://hook.example/in" || step.HTTP.Method != "POST" {
			t.Errorf("step %+v", step.HTTP)
		}
		if e.IdempotencyKey() != a.ID || e.ContentSHA256()[0] != a.ContentSha256[0] || e.Connection().ID != "con_1" || e.Generation() != 1 {
			t.Errorf("effect %+v", e)
		}
		_, err := f.s.Claim(f.Context(), a.ID, "other host", time.Minute)
		f.refused(err, core.KindConflict, "not_claimable")
		f.ok(f.s.MarkSending(f.Context(), e, "host"))
		f.refused(f.s.MarkSending(f.Context(), e, "host"), core.KindConflict, "lost")
		done, err := f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeSucceeded, ExternalID: "x1", StepsDone: 1})
		f.ok(err)
		if done.Status != core.ActionStatusSucceeded || *done.Execution.ExternalID != "x1" || done.Execution.ContentSha256[0] != a.ContentSha256[0] {
			t.Errorf("recorded %+v", done.Execution)
		}
		r, err := f.runs.Get(f.Context(), f.viewer, f.run)
		f.ok(err)
		if r.Status != core.RunStatusMeasuring {
			t.Errorf("run is %s", r.Status)
		}
	})
}

func TestWrongHandsAreRefused(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("hello")[0]
	f.approve(a.ID)
	e := f.claim(a.ID)
	if err := f.s.MarkSending(f.Context(), e, "thief"); err == nil {
		t.Error("another executor marked it")
	}
	if err := f.s.MarkSending(f.Context(), approved.Effect{}, "host"); err == nil {
		t.Error("an empty effect was marked")
	}
	f.clock.turn(2 * time.Minute)
	f.refused(f.s.MarkSending(f.Context(), e, "host"), core.KindConflict, "lost") // the lease is over
	n, err := f.s.SweepLeases(f.Context())
	f.ok(err)
	if n != 1 || f.queue.of(a.ID) != 2 {
		t.Errorf("swept %d, jobs %d", n, f.queue.of(a.ID))
	}
	f.is(a.ID, core.ActionStatusApproved)
	later := f.claim(a.ID)
	f.refused(f.s.MarkSending(f.Context(), e, "host"), core.KindConflict, "lost") // an older generation
	f.ok(f.s.MarkSending(f.Context(), later, "host"))
	_, err = f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeSucceeded})
	f.refused(err, core.KindConflict, "lost")
}

func TestUndoWindowAndExecute(t *testing.T) {
	f := onSQLite(t)
	f.s.d.UndoWindow = core.DefaultUndoWindow
	a := f.pending("hello")[0]
	f.refused(second(f.s.Execute(f.Context(), f.owner, a.ID)), core.KindConflict, "wrong_state")
	f.approve(a.ID)
	_, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute)
	if e := f.refused(err, core.KindConflict, "not_due"); e.RetryAfter != core.DefaultUndoWindow {
		t.Errorf("retry after %s", e.RetryAfter)
	}
	f.refused(second(f.s.Execute(f.Context(), f.member, a.ID)), core.KindForbidden, "missing_scope")
	_, err = f.s.Execute(f.Context(), f.owner, a.ID)
	f.ok(err)
	f.claim(a.ID)
	_, err = f.s.Execute(f.Context(), f.owner, a.ID) // on its way: nothing to do
	f.ok(err)
}

func TestConnectBackOff(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("hello")[0]
	f.approve(a.ID)
	for i := range core.MaxConnectTries {
		e := f.claim(a.ID)
		at, err := f.s.ReturnToApproved(f.Context(), e, "host", "connection refused")
		f.ok(err)
		if i == core.MaxConnectTries-1 {
			if !at.IsZero() {
				t.Errorf("a sixth try at %s", at)
			}
			break
		}
		if at.Sub(f.clock.Now()) != backOff[i] {
			t.Errorf("try %d again in %s", i, at.Sub(f.clock.Now()))
		}
		_, err = f.s.Claim(f.Context(), a.ID, "host", time.Minute)
		f.refused(err, core.KindConflict, "not_due")
		f.clock.turn(backOff[i])
	}
	got := f.get(a.ID)
	if got.Status != core.ActionStatusFailed || got.Execution.Error.Code != "connect_failed" || !got.Execution.Error.Retryable {
		t.Errorf("after five tries: %s %+v", got.Status, got.Execution.Error)
	}
}

func TestSilentSenderIsUnknownAndStaysSo(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("hello")[0]
	f.approve(a.ID)
	e := f.claim(a.ID)
	f.ok(f.s.MarkSending(f.Context(), e, "host"))
	f.clock.turn(time.Minute)
	_, err := f.s.SweepLeases(f.Context())
	f.ok(err)
	f.is(a.ID, core.ActionStatusUnknown)
	_, err = f.s.Claim(f.Context(), a.ID, "host", time.Minute)
	f.refused(err, core.KindConflict, "not_claimable")

	again := f.proposal(f.newID(), "hello")
	again.Supersedes = a.ID
	_, err = f.s.Propose(f.Context(), f.agent, again)
	f.refused(err, core.KindConflict, "sender_alive")
	f.owner.AuthTime = f.clock.Now()
	f.refused(second(f.s.Reconcile(f.Context(), f.owner, a.ID, false, "not there")), core.KindConflict, "sender_alive")
	f.clock.turn(SendMargin)
	made, err := f.s.Propose(f.Context(), f.agent, again)
	f.ok(err)
	if made.Status != core.ActionStatusPending || *made.Supersedes != a.ID {
		t.Errorf("the new action needs its own approval: %+v", made)
	}
	f.is(a.ID, core.ActionStatusSuperseded)
	row, err := f.db.Action(f.Context(), ws, made.ID)
	f.ok(err)
	if row.IdempotencyKey != a.ID {
		t.Errorf("the same bytes again have the key %s, not %s", row.IdempotencyKey, a.ID)
	}
	// The stalled host wakes up and reports: noted, nothing else.
	_, err = f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeSucceeded, ExternalID: "late"})
	f.ok(err)
	if got := f.get(a.ID); got.Status != core.ActionStatusSuperseded || *got.Execution.ExternalID != "late" {
		t.Errorf("late reply: %+v", got)
	}
	f.approve(made.ID)
	if got := f.claim(made.ID); got.IdempotencyKey() != a.ID {
		t.Errorf("sent with key %s", got.IdempotencyKey())
	}
}

func TestOutcomes(t *testing.T) {
	for outcome, want := range map[core.ActionExecutionOutcome]core.ActionStatus{
		core.ActionExecutionOutcomeSucceeded: core.ActionStatusSucceeded, core.ActionExecutionOutcomeFailed: core.ActionStatusFailed, core.ActionExecutionOutcomeUnknown: core.ActionStatusUnknown,
	} {
		f := onSQLite(t)
		a := f.pending("hello")[0]
		f.approve(a.ID)
		e := f.claim(a.ID)
		_, err := f.s.Record(f.Context(), e, "host", Sent{Outcome: outcome})
		f.refused(err, core.KindConflict, "lost") // not marked
		f.ok(f.s.MarkSending(f.Context(), e, "host"))
		_, err = f.s.Record(f.Context(), e, "host", Sent{Outcome: outcome, Error: &core.ExecutionError{Code: "c", Message: "said so"}})
		f.ok(err)
		f.is(a.ID, want)
		if want != core.ActionStatusUnknown {
			continue
		}
		f.refused(second(f.s.Reconcile(f.Context(), f.member, a.ID, true, "seen")), core.KindForbidden, "missing_scope")
		f.refused(second(f.s.Reconcile(f.Context(), f.owner, a.ID, true, " ")), core.KindInvalid, "invalid")
		weak := f.owner
		weak.AuthTime = time.Time{}
		f.refused(second(f.s.Reconcile(f.Context(), weak, a.ID, true, "seen")), core.KindForbidden, "weak_proof")
		_, err = f.s.Reconcile(f.Context(), f.owner, a.ID, true, "seen at the provider")
		f.ok(err)
		f.is(a.ID, core.ActionStatusSucceeded)
	}
}

func TestManualAction(t *testing.T) {
	f := onSQLite(t)
	made, err := f.s.Propose(f.Context(), f.agent, f.manual(f.newID()))
	f.ok(err)
	f.ok(f.s.Ready(f.Context(), ws, f.run))
	f.refused(second(f.s.DoneByHand(f.Context(), f.member, made.ID, "https://x.example/1", "")), core.KindConflict, "wrong_state")
	f.approve(made.ID)
	if f.queue.of(made.ID) != 0 {
		t.Error("a manual action was enqueued")
	}
	_, err = f.s.Claim(f.Context(), made.ID, "host", time.Minute)
	f.refused(err, core.KindConflict, "not_claimable")
	f.refused(second(f.s.Execute(f.Context(), f.owner, made.ID)), core.KindConflict, "manual")
	f.refused(second(f.s.DoneByHand(f.Context(), f.member, made.ID, "javascript:alert(1)", "")), core.KindInvalid, "invalid")
	f.refused(second(f.s.DoneByHand(f.Context(), f.agent, made.ID, "https://x.example/1", "")), core.KindForbidden, "person_required")
	a, err := f.s.DoneByHand(f.Context(), f.member, made.ID, "https://x.example/1", "posted")
	f.ok(err)
	if a.Status != core.ActionStatusSucceeded || *a.Execution.ExternalURL != "https://x.example/1" || a.Decisions[1].Decision != core.VerdictDoneByHand {
		t.Errorf("done: %+v", a)
	}
}

func TestWhatItRestsOnChanged(t *testing.T) {
	cases := map[string]struct {
		change func(f *fixture)
		code   string
		status core.ActionStatus
	}{
		"manifest": {func(f *fixture) { f.plugins.manifest = "other" }, "void", core.ActionStatusCancelled},
		"tool":     {func(f *fixture) { f.plugins.tool = "other" }, "void", core.ActionStatusCancelled},
		"account":  {func(f *fixture) { f.connection(func(c *store.Connection) { c.BindingDigest = "elsewhere" }) }, "void", core.ActionStatusCancelled},
		"unloaded": {func(f *fixture) { f.plugins.manifest = "" }, "not_due", core.ActionStatusApproved},
		"reauth": {func(f *fixture) {
			f.connection(func(c *store.Connection) { c.Status = core.ConnectorStatusNeedsReauth })
		}, "not_due", core.ActionStatusApproved},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := onSQLite(t)
			a := f.pending("hello")[0]
			f.approve(a.ID)
			c.change(f)
			_, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute)
			f.refused(err, core.KindConflict, c.code)
			f.is(a.ID, c.status)
		})
		t.Run(name+" after the claim", func(t *testing.T) {
			f := onSQLite(t)
			a := f.pending("hello")[0]
			f.approve(a.ID)
			e := f.claim(a.ID)
			c.change(f)
			if err := f.s.MarkSending(f.Context(), e, "host"); err == nil {
				t.Fatal("marked as sending")
			}
			want := core.ActionStatusFailed
			if c.status == core.ActionStatusApproved {
				want = core.ActionStatusApproved
			}
			f.is(a.ID, want)
		})
	}
}

func (f *fixture) connection(change func(*store.Connection)) {
	f.Helper()
	f.ok(f.db.InTx(f.Context(), func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.Connection(ctx, ws, "con_1")
		if err != nil {
			return err
		}
		change(c)
		return tx.UpdateConnection(ctx, c)
	}))
}

func TestExpiryByDatabaseTime(t *testing.T) {
	f := onSQLite(t)
	acts := f.pending("waits", "approved", "claimed")
	f.approve(acts[1].ID)
	f.approve(acts[2].ID)
	e, err := f.s.Claim(f.Context(), acts[2].ID, "host", 15*time.Minute)
	f.ok(err)
	f.clock.turn(core.DefaultActionTTL)
	if err := f.s.MarkSending(f.Context(), e, "host"); err == nil {
		t.Error("sent after the deadline")
	}
	_, err = f.s.Claim(f.Context(), acts[1].ID, "host", time.Minute)
	f.refused(err, core.KindGone, "expired")
	_, err = f.s.ExpireDue(f.Context())
	f.ok(err)
	_, err = f.s.SweepLeases(f.Context())
	f.ok(err)
	_, err = f.s.ExpireDue(f.Context())
	f.ok(err)
	for _, a := range acts {
		f.is(a.ID, core.ActionStatusExpired)
	}
	r, err := f.runs.Get(f.Context(), f.viewer, f.run)
	f.ok(err)
	if r.Status != core.RunStatusExpired {
		t.Errorf("run is %s", r.Status)
	}
}
