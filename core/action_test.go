package core

import (
	"slices"
	"testing"
	"time"
)

// reaches lists, per state, the events that move it. It is written out by hand a second
// time, so that a change of the table is a change in two places.
var reaches = map[ActionStatus][]ActionEvent{
	ActionStatusProposed:   {EventDrafted, EventExpire, EventCancel},
	ActionStatusPending:    {EventEdit, EventApprove, EventApprovePart, EventReject, EventExpire, EventCancel, EventChanged, EventVoid},
	ActionStatusApproved:   {EventEdit, EventRevoke, EventExpire, EventDoneByHand, EventClaim, EventCancel, EventChanged, EventVoid, EventRecheckFailed, EventRestored},
	ActionStatusClaimed:    {EventMarkSending, EventConnectFailed, EventLeaseEnded, EventRecheckFailed, EventExpire, EventRevoke, EventCancel, EventRestored},
	ActionStatusSending:    {EventReplyOK, EventRefused, EventUncertain, EventLeaseEnded, EventRestored},
	ActionStatusUnknown:    {EventReplyOK, EventRefused, EventFound, EventHappened, EventNotHappened, EventSupersede},
	ActionStatusFailed:     {EventSupersede},
	ActionStatusExpired:    {EventSupersede},
	ActionStatusSucceeded:  {},
	ActionStatusRejected:   {},
	ActionStatusRevoked:    {},
	ActionStatusCancelled:  {},
	ActionStatusSuperseded: {},
}

func TestEveryStateTimesEveryEvent(t *testing.T) {
	for _, from := range ActionStatuses() {
		want, known := reaches[from]
		if !known {
			t.Fatalf("state %s is not in the test's list", from)
		}
		for _, event := range ActionEvents() {
			to, err := NextActionStatus(from, event)
			if allowed := slices.Contains(want, event); allowed != (err == nil) {
				t.Errorf("%s on %s: allowed %v, want %v", event, from, err == nil, allowed)
			}
			if err != nil && (to != from || !IsKind(err, KindConflict)) {
				t.Errorf("%s on %s: a refusal must leave the state and be a conflict, got %s, %v", event, from, to, err)
			}
		}
	}
}

func TestTheTwoRulesOfTheTable(t *testing.T) {
	for _, tr := range ActionTransitions() {
		if tr.From == ActionStatusUnknown && (tr.To == ActionStatusApproved || tr.To == ActionStatusPending || tr.To == ActionStatusClaimed) {
			t.Errorf("unknown must not go back to %s", tr.To)
		}
		if tr.From == ActionStatusSending && tr.To != ActionStatusSucceeded && tr.To != ActionStatusFailed && tr.To != ActionStatusUnknown {
			t.Errorf("sending must not lead to %s: something may have left", tr.To)
		}
		if tr.To == ActionStatusSending && tr.From != ActionStatusClaimed {
			t.Errorf("sending must come from claimed, not from %s", tr.From)
		}
		if tr.To == ActionStatusClaimed && tr.From != ActionStatusApproved {
			t.Errorf("claimed must come from approved, not from %s", tr.From)
		}
	}
}

func TestFinalStates(t *testing.T) {
	for _, s := range ActionStatuses() {
		want := slices.Contains([]ActionStatus{ActionStatusSucceeded, ActionStatusFailed, ActionStatusRejected, ActionStatusExpired, ActionStatusRevoked, ActionStatusCancelled, ActionStatusSuperseded}, s)
		if s.IsFinal() != want {
			t.Errorf("%s: final %v, want %v", s, s.IsFinal(), want)
		}
	}
}

func TestRunStatusIsAFunctionOfItsActions(t *testing.T) {
	open := &Measurement{Status: RunMeasurementStatusOpen}
	closed := &Measurement{Status: RunMeasurementStatusClosed}
	type a = []ActionStatus
	for _, c := range []struct {
		phase   RunPhase
		actions a
		m       *Measurement
		want    RunStatus
	}{
		{PhaseCreated, a{ActionStatusPending}, nil, RunStatusCreated},
		{PhaseDrafting, nil, nil, RunStatusDrafting},
		{PhaseInReview, nil, nil, RunStatusCompleted},
		{PhaseInReview, a{ActionStatusPending, ActionStatusRejected}, nil, RunStatusAwaitingApproval},
		{PhaseInReview, a{ActionStatusPending, ActionStatusApproved}, nil, RunStatusPartiallyApproved},
		{PhaseInReview, a{ActionStatusApproved, ActionStatusRejected}, nil, RunStatusApproved},
		{PhaseInReview, a{ActionStatusApproved, ActionStatusClaimed}, nil, RunStatusExecuting},
		{PhaseInReview, a{ActionStatusSending, ActionStatusUnknown}, nil, RunStatusNeedsAttention},
		{PhaseInReview, a{ActionStatusSucceeded, ActionStatusFailed}, open, RunStatusNeedsAttention},
		{PhaseInReview, a{ActionStatusSucceeded, ActionStatusRejected}, open, RunStatusMeasuring},
		{PhaseInReview, a{ActionStatusSucceeded, ActionStatusSuperseded}, closed, RunStatusCompleted},
		{PhaseInReview, a{ActionStatusRejected, ActionStatusRevoked}, nil, RunStatusRejected},
		{PhaseInReview, a{ActionStatusExpired}, nil, RunStatusExpired},
		{PhaseInReview, a{ActionStatusCancelled}, nil, RunStatusCancelled},
		{PhaseFailed, a{ActionStatusPending}, nil, RunStatusFailed},
	} {
		if got := RunStatusOf(c.phase, c.actions, c.m); got != c.want {
			t.Errorf("%s %v: got %s, want %s", c.phase, c.actions, got, c.want)
		}
	}
}

func TestMeasurementOpensAtTheFirstAndClosesADayAfterTheLast(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	m := MeasurementOf([]time.Time{t0.Add(time.Hour), t0}, t0.Add(25*time.Hour-time.Second))
	if !m.OpensAt.Equal(t0) || !m.ClosesAt.Equal(t0.Add(25*time.Hour)) || m.Status != RunMeasurementStatusOpen {
		t.Errorf("got %+v", m)
	}
	if m := MeasurementOf([]time.Time{t0}, t0.Add(24*time.Hour)); m.Status != RunMeasurementStatusClosed {
		t.Errorf("a day later: %s", m.Status)
	}
	if m := MeasurementOf(nil, t0); m.Status != RunMeasurementStatusNotStarted {
		t.Errorf("nothing sent: %s", m.Status)
	}
}

func TestAnAgentKeyNeverApproves(t *testing.T) {
	p := Principal{Kind: ActorKindKey, KeyKind: APIKeyKindAgent, Scopes: Scopes()}
	if p.Can(ScopeActionsApprove) || p.Can(ScopeAdmin) {
		t.Error("an agent key with every scope stored may approve")
	}
	if !p.Can(ScopeRunsWrite) {
		t.Error("an agent key lost a scope it holds")
	}
	if err := (Principal{}).Require(ScopeRunsRead); !IsKind(err, KindUnauthenticated) {
		t.Errorf("a caller without credential: %v", err)
	}
}

func TestProofFollowsTheSignIn(t *testing.T) {
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	p := Principal{Kind: ActorKindPerson, AuthTime: now.Add(-RecentSignIn)}
	if p.ProofAt(now) != ProofP2 || p.ProofAt(now.Add(time.Second)) != ProofP1 {
		t.Error("a sign-in counts as recent for exactly five minutes")
	}
}

func TestIdentifiersSortAndAreUnique(t *testing.T) {
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	last := ""
	for range 1000 {
		id := NewID(PrefixRun, at)
		if id <= last || !HasPrefix(id, PrefixRun) || HasPrefix(id, PrefixAction) {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	if HasPrefix("run_", PrefixRun) || HasPrefix("run_../x", PrefixRun) {
		t.Error("text that is no identifier passed")
	}
}
