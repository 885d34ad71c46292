package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

func TestApproveRunOnWhatWasShown(t *testing.T) {
	onBoth(t, func(f *fixture) {
		acts := f.pending("one", "two")
		body := Decide{RunID: f.run, Channel: "rest"}

		e := f.refused(second(f.s.Approve(f.Context(), f.owner, body)), core.KindUnseen, "not_seen")
		if !strings.Contains(e.Detail, "review page") {
			t.Errorf("the cure is missing: %s", e.Detail)
		}
		_, err := f.s.Deliver(f.Context(), f.owner, f.run)
		f.ok(err)
		_, err = f.s.Revise(f.Context(), f.agent, acts[0].ID, acts[0].Digest, f.proposal(acts[0].ID, "one, changed"))
		f.ok(err)
		e = f.refused(second(f.s.Approve(f.Context(), f.owner, body)), core.KindConflict, "stale_review")
		if e.CurrentDigest != f.get(acts[0].ID).Digest {
			t.Errorf("current digest %q", e.CurrentDigest)
		}
		f.is(acts[1].ID, core.ActionStatusPending) // all or none

		_, err = f.s.Deliver(f.Context(), f.owner, f.run)
		f.ok(err)
		first, err := f.s.Approve(f.Context(), f.owner, body)
		f.ok(err)
		if len(first.Actions) != 2 || first.Run.Status != core.RunStatusApproved || first.Receipt.TreeSize == 0 || first.Receipt.Root == "" {
			t.Fatalf("outcome %+v", first)
		}
		again, err := f.s.Approve(f.Context(), f.owner, body)
		f.ok(err)
		for i := range first.Actions {
			if again.Actions[i].Decisions[0].ID != first.Actions[i].Decisions[0].ID || len(again.Actions[i].Decisions) != 1 {
				t.Errorf("the same yes again made another decision: %+v", again.Actions[i].Decisions)
			}
		}
		if f.queue.of(acts[0].ID) != 1 || f.queue.of(acts[1].ID) != 1 {
			t.Errorf("jobs %v", f.queue.jobs)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestNewActionAfterLookIsStale(t *testing.T) {
	f := onSQLite(t)
	f.pending("one")
	_, err := f.s.Deliver(f.Context(), f.owner, f.run)
	f.ok(err)
	f.pending("added")
	f.refused(second(f.s.Approve(f.Context(), f.owner, Decide{RunID: f.run, Channel: "mcp"})), core.KindConflict, "stale_review")
}

func TestLookGrowsOld(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("one")[0]
	f.ok(f.s.DeliverAction(f.Context(), f.owner, a.ID))
	f.clock.turn(core.SeenWithin + time.Second)
	f.owner.AuthTime = f.clock.Now()
	f.refused(second(f.s.Approve(f.Context(), f.owner, Decide{ActionID: a.ID, Channel: "web"})), core.KindUnseen, "not_seen")
	f.ok(f.s.DeliverAction(f.Context(), f.owner, a.ID))
	_, err := f.s.Approve(f.Context(), f.owner, Decide{ActionID: a.ID, Channel: "web"})
	f.ok(err)
}

func TestNamedDigestIsJudgedAlone(t *testing.T) {
	f := onSQLite(t)
	acts := f.pending("one", "two")
	pack, err := f.s.Deliver(f.Context(), f.owner, f.run)
	f.ok(err)
	wrong := strings.Repeat("0", 64)
	e := f.refused(second(f.s.Approve(f.Context(), f.owner, Decide{RunID: f.run, ExpectedDigest: wrong, Channel: "rest"})), core.KindPrecondition, "digest_mismatch")
	if e.CurrentDigest != pack {
		t.Errorf("current digest %s, want the pack's %s", e.CurrentDigest, pack)
	}
	e = f.refused(second(f.s.Approve(f.Context(), f.owner, Decide{ActionID: acts[0].ID, ExpectedDigest: acts[1].Digest, Channel: "rest"})), core.KindPrecondition, "digest_mismatch")
	if e.CurrentDigest != acts[0].Digest {
		t.Errorf("current digest %s", e.CurrentDigest)
	}
	for range 2 { // the pack no longer waits at the second time; it is the same yes
		out, err := f.s.Approve(f.Context(), f.owner, Decide{RunID: f.run, ExpectedDigest: pack, Channel: "rest"})
		f.ok(err)
		if len(out.Actions) != 2 {
			t.Fatalf("%d actions", len(out.Actions))
		}
	}
}

func TestAgentKeyNeverApproves(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("one")[0]
	for _, d := range []Decide{{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "mcp"}, {RunID: f.run, Channel: "mcp"}, {RunID: f.run, ActionIDs: []string{a.ID}, Channel: "rest"}} {
		e := f.refused(second(f.s.Approve(f.Context(), f.agent, d)), core.KindForbidden, "approval_required")
		if e.ReviewURL != "http://localhost:8080/review/"+f.run || e.Next == nil {
			t.Errorf("no way to a person: %+v", e)
		}
		if f.audited("action.approve", d.target(), "refused") == 0 {
			t.Errorf("the refusal of %+v is not in the log", d)
		}
	}
	f.is(a.ID, core.ActionStatusPending)
	out, err := f.s.Reject(f.Context(), f.agent, Decide{ActionID: a.ID, Reason: "my mistake", Channel: "mcp"})
	f.ok(err)
	if out.Actions[0].Status != core.ActionStatusRejected || !strings.Contains(out.Actions[0].StatusReason, "my mistake") {
		t.Errorf("its own proposal: %+v", out.Actions[0])
	}
	stranger := f.agent
	stranger.ID = "key_other"
	b := f.pending("two")[0]
	f.refused(second(f.s.Reject(f.Context(), stranger, Decide{ActionID: b.ID, Channel: "mcp"})), core.KindForbidden, "not_your_run")
}

func TestForeignWorkspaceSeesNothing(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("one")[0]
	other := f.owner
	other.WorkspaceID = "ws_01ARZ3NDEKTSV4RRFFQ69G5FAA"
	agent := f.agent
	agent.WorkspaceID = other.WorkspaceID
	f.refused(second(f.s.Approve(f.Context(), other, Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"})), core.KindNotFound, "not_found")
	f.refused(second(f.s.Approve(f.Context(), other, Decide{RunID: f.run, Channel: "rest"})), core.KindNotFound, "not_found")
	f.refused(second(f.s.Approve(f.Context(), agent, Decide{RunID: f.run, Channel: "rest"})), core.KindNotFound, "not_found")
	f.refused(second(f.s.Reject(f.Context(), other, Decide{RunID: f.run, Channel: "rest"})), core.KindNotFound, "not_found")
	f.refused(second(f.s.Deliver(f.Context(), other, f.run)), core.KindNotFound, "not_found")
	f.refused(second(f.s.Get(f.Context(), other, a.ID)), core.KindNotFound, "not_found")
	f.refused(second(f.s.Execute(f.Context(), other, a.ID)), core.KindNotFound, "not_found")
	f.refused(second(f.s.Revise(f.Context(), other, a.ID, "", f.proposal(a.ID, "x"))), core.KindNotFound, "not_found")
}

func TestProofAndDuties(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("one")[0]
	yes := Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"}

	old := f.owner
	old.AuthTime = f.clock.Now().Add(-6 * time.Minute)
	e := f.refused(second(f.s.Approve(f.Context(), old, yes)), core.KindForbidden, "weak_proof")
	if !strings.Contains(e.Detail, "Sign in again") || e.ReviewURL == "" {
		t.Errorf("no cure: %+v", e)
	}
	service := core.Principal{Kind: core.ActorKindKey, KeyKind: core.APIKeyKindService, ID: "key_svc", OnBehalfOf: "usr_someone", WorkspaceID: ws, Scopes: []string{core.ScopeRunsRead, core.ScopeActionsApprove}}
	f.refused(second(f.s.Approve(f.Context(), service, yes)), core.KindForbidden, "weak_proof")

	// The agent's key belongs to the owner: with one approver the rule rests, with two it holds.
	other := f.person("other", core.UserRoleApprover)
	f.addApprover(other, core.UserRoleApprover)
	f.refused(second(f.s.Approve(f.Context(), f.owner, yes)), core.KindForbidden, "self_approval")
	owned := service
	owned.OnBehalfOf, owned.LiftedTo = f.owner.ID, core.ProofP2
	f.refused(second(f.s.Approve(f.Context(), owned, yes)), core.KindForbidden, "self_approval")
	f.is(a.ID, core.ActionStatusPending)

	lifted := service
	lifted.LiftedTo = core.ProofP2
	out, err := f.s.Approve(f.Context(), lifted, yes)
	f.ok(err)
	if d := out.Actions[0].Decisions[0]; d.ViaServiceKey == nil || !*d.ViaServiceKey || d.Proof != core.ProofP2 {
		t.Errorf("the decision does not tell that a key made it: %+v", d)
	}
	f.refused(second(f.s.Approve(f.Context(), f.member, yes)), core.KindForbidden, "missing_scope")
}

func TestSoleApproverIsMarked(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("one")[0]
	f.approve(a.ID)
	d, err := f.db.DecisionsOf(f.Context(), ws, a.ID)
	f.ok(err)
	if len(d) != 1 || !d[0].SoleApprover {
		t.Errorf("decisions %+v", d)
	}
}

func TestMoneyIsLeftOut(t *testing.T) {
	f := onSQLite(t)
	in := f.proposal(f.newID(), "ad")
	in.Sealed.Money = some(moneyOf(5_000_000))
	paid, err := f.s.Propose(f.Context(), f.agent, in)
	f.ok(err)
	if paid.Policy.Proof != core.ActionPolicyProofP3 {
		t.Fatalf("proof %s", paid.Policy.Proof)
	}
	plain := f.pending("post")[0]
	_, err = f.s.Deliver(f.Context(), f.owner, f.run)
	f.ok(err)
	out, err := f.s.Approve(f.Context(), f.owner, Decide{RunID: f.run, Channel: "web"})
	f.ok(err)
	if len(out.LeftOut) != 1 || out.LeftOut[0].ActionID != paid.ID || len(out.Actions) != 1 || out.Actions[0].ID != plain.ID || out.Run.Status != core.RunStatusPartiallyApproved {
		t.Errorf("outcome %+v", out)
	}
	e := f.refused(second(f.s.Approve(f.Context(), f.owner, Decide{ActionID: paid.ID, ExpectedDigest: paid.Digest, Channel: "web"})), core.KindForbidden, "weak_proof")
	if !strings.Contains(e.Detail, "passkey") {
		t.Errorf("detail %s", e.Detail)
	}
}

func TestDecidedAlready(t *testing.T) {
	f := onSQLite(t)
	acts := f.pending("rejected", "revoked", "late", "sent")
	yes := func(i int) error {
		a := f.get(acts[i].ID)
		return second(f.s.Approve(f.Context(), f.owner, Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"}))
	}
	_, err := f.s.Reject(f.Context(), f.member, Decide{ActionID: acts[0].ID, Channel: "rest"})
	f.ok(err)
	f.refused(yes(0), core.KindConflict, "wrong_state")
	_, err = f.s.Reject(f.Context(), f.member, Decide{ActionID: acts[0].ID, Channel: "rest"}) // the same no again
	f.ok(err)
	f.refused(second(f.s.Reject(f.Context(), f.owner, Decide{ActionID: acts[0].ID, Channel: "rest"})), core.KindConflict, "wrong_state")

	f.ok(yes(1))
	f.refused(second(f.s.Reject(f.Context(), f.member, Decide{ActionID: acts[1].ID, Channel: "rest"})), core.KindForbidden, "missing_scope")
	_, err = f.s.Revoke(f.Context(), f.owner, Decide{ActionID: acts[1].ID, Channel: "rest"})
	f.ok(err)
	f.is(acts[1].ID, core.ActionStatusRevoked)
	f.refused(yes(1), core.KindConflict, "wrong_state")
	f.refused(second(f.s.Execute(f.Context(), f.owner, acts[1].ID)), core.KindConflict, "wrong_state")

	f.ok(yes(3))
	e := f.claim(acts[3].ID)
	f.ok(f.s.MarkSending(f.Context(), e, "host"))
	f.ok(yes(3)) // the same yes again, also while it is sent
	for _, no := range []error{
		second(f.s.Reject(f.Context(), f.owner, Decide{ActionID: acts[3].ID, Channel: "rest"})),
		second(f.s.Revoke(f.Context(), f.owner, Decide{ActionID: acts[3].ID, Channel: "rest"})),
	} {
		f.refused(no, core.KindConflict, "already_sending")
	}

	f.clock.turn(core.DefaultActionTTL)
	f.owner.AuthTime = f.clock.Now()
	f.refused(yes(2), core.KindGone, "expired")
	f.is(acts[2].ID, core.ActionStatusExpired) // the attempt ended it
	f.refused(yes(2), core.KindGone, "expired")
}

func TestRejectRunReportsTheRest(t *testing.T) {
	f := onSQLite(t)
	acts := f.pending("waits", "approved", "on its way")
	f.approve(acts[1].ID)
	f.approve(acts[2].ID)
	f.ok(f.s.MarkSending(f.Context(), f.claim(acts[2].ID), "host"))
	for range 2 {
		out, err := f.s.Reject(f.Context(), f.owner, Decide{RunID: f.run, Reason: "changed my mind", Channel: "web"})
		f.ok(err)
		if len(out.Actions) != 2 || out.Actions[0].Status != core.ActionStatusRejected || out.Actions[1].Status != core.ActionStatusRevoked {
			t.Errorf("actions %+v", out.Actions)
		}
		if len(out.LeftOut) != 1 || out.LeftOut[0].ActionID != acts[2].ID || !strings.Contains(out.LeftOut[0].Reason, "handed to the provider") {
			t.Errorf("left out %+v", out.LeftOut)
		}
	}
}

func TestSeveralApprovers(t *testing.T) {
	f := onSQLite(t)
	f.policy(`{"needed":2}`)
	second := f.person("second", core.UserRoleApprover)
	third := f.person("third", core.UserRoleApprover)
	f.addApprover(second, core.UserRoleApprover)
	f.addApprover(third, core.UserRoleApprover)
	a := f.pending("one")[0]
	yes := Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"}
	for range 2 { // one person twice is one person
		_, err := f.s.Approve(f.Context(), second, yes)
		f.ok(err)
		f.is(a.ID, core.ActionStatusPending)
	}
	if f.queue.of(a.ID) != 0 {
		t.Error("enqueued before enough people approved")
	}
	_, err := f.s.Approve(f.Context(), third, yes)
	f.ok(err)
	f.is(a.ID, core.ActionStatusApproved)
	f.claim(a.ID)
}

func TestEditVoidsDecisions(t *testing.T) {
	f := onSQLite(t)
	a := f.pending("one")[0]
	f.approve(a.ID)
	_, err := f.s.Revise(f.Context(), f.agent, a.ID, "stale", f.proposal(a.ID, "two"))
	f.refused(err, core.KindPrecondition, "digest_mismatch")
	b, err := f.s.Revise(f.Context(), f.agent, a.ID, a.Digest, f.proposal(a.ID, "two"))
	f.ok(err)
	if b.Revision != 2 || b.Digest == a.Digest || b.Status != core.ActionStatusPending {
		t.Fatalf("after the edit: %+v", b)
	}
	_, err = f.s.Claim(f.Context(), a.ID, "host", time.Minute)
	f.refused(err, core.KindConflict, "not_claimable")
	// Going back to the first text is a third content: the old yes does not come back.
	c, err := f.s.Revise(f.Context(), f.agent, a.ID, "", f.proposal(a.ID, "one"))
	f.ok(err)
	if c.Digest == a.Digest {
		t.Error("two revisions share a digest")
	}
	stranger := f.agent
	stranger.ID = "key_stranger"
	_, err = f.s.Revise(f.Context(), stranger, a.ID, "", f.proposal(a.ID, "mine now"))
	f.refused(err, core.KindForbidden, "not_your_run")
	f.approve(a.ID)
	_, err = f.s.ReturnToApproved(f.Context(), f.claim(a.ID), "host", "refused")
	f.ok(err)
	_, err = f.s.Revise(f.Context(), f.agent, a.ID, "", f.proposal(a.ID, "after a claim"))
	f.refused(err, core.KindConflict, "frozen_content")
}
