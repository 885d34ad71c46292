package approval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
)

func TestFreezeAndDependence(t *testing.T) {
	f := onSQLite(t)
	first, err := f.s.Propose(f.Context(), f.agent, f.proposal(f.newID(), "first"))
	f.ok(err)
	in := f.proposal(f.newID(), "second")
	in.DependsOn = []string{first.ID}
	then, err := f.s.Propose(f.Context(), f.agent, in)
	f.ok(err)
	f.ok(f.s.Ready(f.Context(), ws, f.run))
	f.approve(then.ID)
	_, err = f.s.Claim(f.Context(), then.ID, "host", time.Minute)
	f.refused(err, core.KindConflict, "not_due")
	f.approve(first.ID)
	freeze := func(on bool) {
		f.ok(f.db.InTx(f.Context(), func(ctx context.Context, tx *store.Tx) error {
			w, err := tx.Workspace(ctx, ws)
			if err != nil {
				return err
			}
			w.Frozen = on
			return tx.UpdateWorkspace(ctx, w)
		}))
	}
	freeze(true)
	_, err = f.s.Claim(f.Context(), first.ID, "host", time.Minute)
	f.refused(err, core.KindConflict, "frozen")
	freeze(false)
	e := f.claim(first.ID)
	f.ok(f.s.MarkSending(f.Context(), e, "host"))
	_, err = f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeSucceeded})
	f.ok(err)
	if f.queue.of(then.ID) != 2 {
		t.Errorf("what waited was not woken: %d jobs", f.queue.of(then.ID))
	}
	f.claim(then.ID)
}

func TestRecoverySendsNothing(t *testing.T) {
	f := onSQLite(t)
	acts := f.pending("waits", "approved", "claimed", "sending")
	for _, a := range acts[1:] {
		f.approve(a.ID)
	}
	e := f.claim(acts[2].ID)
	f.ok(f.s.MarkSending(f.Context(), f.claim(acts[3].ID), "host"))
	n, err := f.s.Recover(f.Context(), "older than the anchor")
	f.ok(err)
	if n != 3 {
		t.Errorf("%d actions", n)
	}
	for _, a := range acts[1:] {
		f.is(a.ID, core.ActionStatusUnknown)
	}
	if a := f.get(acts[0].ID); a.Status != core.ActionStatusPending || !strings.Contains(a.StatusReason, "restored") {
		t.Errorf("what waits carries no warning: %s", a.StatusReason)
	}
	f.refused(f.s.MarkSending(f.Context(), e, "host"), core.KindConflict, "lost")
}

func TestCancelRun(t *testing.T) {
	f := onSQLite(t)
	acts := f.pending("waits", "approved", "claimed")
	f.approve(acts[1].ID)
	f.approve(acts[2].ID)
	e := f.claim(acts[2].ID)
	r, err := f.s.CancelRun(f.Context(), f.agent, f.run)
	f.ok(err)
	if r.Status != core.RunStatusCancelled {
		t.Errorf("run is %s", r.Status)
	}
	for _, a := range acts {
		f.is(a.ID, core.ActionStatusCancelled)
	}
	f.refused(f.s.MarkSending(f.Context(), e, "host"), core.KindConflict, "lost")
	_, err = f.s.Propose(f.Context(), f.agent, f.proposal(f.newID(), "late"))
	f.refused(err, core.KindConflict, "run_ended")
}

func TestNothingIsSentWhenTheLogCannotBeWritten(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("hello")[0]
	f.approve(a.ID)
	f.ok(f.db.Close())
	if _, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("claimed on a closed database: %v", err)
	}
}

func TestSubscribersHearWhatHappened(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("hello")[0]
	f.approve(a.ID)
	e := f.claim(a.ID)
	f.ok(f.s.MarkSending(f.Context(), e, "host"))
	_, err := f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeSucceeded})
	f.ok(err)
	events, err := f.db.EventsAfter(f.Context(), ws, f.run, 0, 100)
	f.ok(err)
	got := []string{}
	for _, e := range events {
		got = append(got, e.Type)
	}
	heard := " " + strings.Join(got, " ") + " "
	for _, want := range []string{"run.created", "run.awaiting_approval", "action.approved", "action.succeeded"} {
		if strings.Count(heard, " "+want+" ") != 1 {
			t.Errorf("%s was not told exactly once: %s", want, heard)
		}
	}
	for _, entry := range []string{"action.proposed", "action.pending", "action.approved", "action.claimed", "action.sending", "action.succeeded"} {
		if f.audited(entry, a.ID, "ok") != 1 {
			t.Errorf("%s stands not exactly once in the log", entry)
		}
	}
}

// What callers get is what the schemas promise, in every stage of an action.
func TestResourcesFitTheirSchemas(t *testing.T) {
	f := onSQLite(t)
	fits := func(name string, v any) {
		t.Helper()
		raw, err := json.Marshal(v)
		f.ok(err)
		schema, err := schemas.Resource(name)
		f.ok(err)
		if err := schema.Validate(raw); err != nil {
			t.Errorf("%s: %v\n%s", name, err, raw)
		}
	}
	manual, err := f.s.Propose(f.Context(), f.agent, f.manual(f.newID()))
	f.ok(err)
	fits("action", manual)
	a := f.pending("hello")[0]
	fits("action", f.get(a.ID))
	out, err := f.s.Approve(f.Context(), f.owner, Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"})
	f.ok(err)
	fits("run", out.Run)
	fits("action", out.Actions[0])
	e := f.claim(a.ID)
	f.ok(f.s.MarkSending(f.Context(), e, "host"))
	failed, err := f.s.Record(f.Context(), e, "host", Sent{Outcome: core.ActionExecutionOutcomeFailed, Error: &core.ExecutionError{Code: "c", Message: "m"}})
	f.ok(err)
	fits("action", failed)
	r, err := f.runs.Get(f.Context(), f.viewer, f.run)
	f.ok(err)
	fits("run", r)
}
