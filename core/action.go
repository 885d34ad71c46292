package core

import (
	"fmt"
	"time"
)

// ActionEvent is something that may change the state of an action.
type ActionEvent string

// Events of an action.
const (
	EventDrafted       ActionEvent = "drafted"        // drafting of the run is done
	EventEdit          ActionEvent = "edit"           // new input was compiled
	EventApprove       ActionEvent = "approve"        // enough people said yes to the digest
	EventApprovePart   ActionEvent = "approve_part"   // a yes, but more people are needed
	EventReject        ActionEvent = "reject"         // a person said no
	EventExpire        ActionEvent = "expire"         // the deadline passed
	EventRevoke        ActionEvent = "revoke"         // a person took the yes back
	EventDoneByHand    ActionEvent = "done_by_hand"   // a person did a manual action and gave the proof URL
	EventClaim         ActionEvent = "claim"          // one executor took it; certainly not sent
	EventConnectFailed ActionEvent = "connect_failed" // no connection came about; certainly not sent
	EventMarkSending   ActionEvent = "mark_sending"   // durable mark before the first byte
	EventLeaseEnded    ActionEvent = "lease_ended"    // the executor fell silent
	EventRecheckFailed ActionEvent = "recheck_failed" // proof, account or precondition no longer hold; not sent
	EventReplyOK       ActionEvent = "reply_ok"       // the provider confirmed
	EventRefused       ActionEvent = "refused"        // a definite refusal: nothing happened
	EventUncertain     ActionEvent = "uncertain"      // time-out, reset, 5xx or an unknown reply
	EventFound         ActionEvent = "found"          // a look-up found our marker
	EventHappened      ActionEvent = "happened"       // a person settled it: it was sent
	EventNotHappened   ActionEvent = "not_happened"   // a person settled it: it was not sent
	EventSupersede     ActionEvent = "supersede"      // a new action takes its place
	EventRestored      ActionEvent = "restored"       // the database is older than its anchor
	EventCancel        ActionEvent = "cancel"         // the run was cancelled
	EventChanged       ActionEvent = "changed"        // plugin, manifest, connection or account changed; compiled again
	EventVoid          ActionEvent = "void"           // the same, and compiling again failed
)

// Transition is one allowed move of an action.
type Transition struct {
	From  ActionStatus
	Event ActionEvent
	To    ActionStatus
	Who   string // who may cause it
	Guard string // what must hold besides the state
}

// Every state an action can be in, in the order of its life.
func ActionStatuses() []ActionStatus {
	return []ActionStatus{ActionStatusProposed, ActionStatusPending, ActionStatusApproved, ActionStatusClaimed, ActionStatusSending,
		ActionStatusSucceeded, ActionStatusFailed, ActionStatusUnknown, ActionStatusRejected, ActionStatusExpired,
		ActionStatusRevoked, ActionStatusCancelled, ActionStatusSuperseded}
}

// ActionEvents lists every event.
func ActionEvents() []ActionEvent {
	return []ActionEvent{EventDrafted, EventEdit, EventApprove, EventApprovePart, EventReject, EventExpire, EventRevoke, EventDoneByHand,
		EventClaim, EventConnectFailed, EventMarkSending, EventLeaseEnded, EventRecheckFailed, EventReplyOK, EventRefused, EventUncertain,
		EventFound, EventHappened, EventNotHappened, EventSupersede, EventRestored, EventCancel, EventChanged, EventVoid}
}

// ActionTransitions is the whole life of an action. A pair of state and event that
// is not here is refused. Two rules shape it: claimed means certainly not sent and
// sending means perhaps sent, and unknown never goes back to approved.
func ActionTransitions() []Transition {
	return []Transition{
		{ActionStatusProposed, EventDrafted, ActionStatusPending, "system", "digest stored, preview complete"},
		{ActionStatusProposed, EventExpire, ActionStatusExpired, "system", "deadline passed by database time"},
		{ActionStatusProposed, EventCancel, ActionStatusCancelled, "member, approver", "run cancelled"},

		{ActionStatusPending, EventEdit, ActionStatusPending, "member, key that owns the run", "new input compiled; revision rises, approvals void"},
		{ActionStatusPending, EventApprove, ActionStatusApproved, "approver", "digest current, proof level, duties, not expired"},
		{ActionStatusPending, EventApprovePart, ActionStatusPending, "approver", "fewer people than the policy needs"},
		{ActionStatusPending, EventReject, ActionStatusRejected, "approver, member", ""},
		{ActionStatusPending, EventExpire, ActionStatusExpired, "system", "deadline passed by database time"},
		{ActionStatusPending, EventCancel, ActionStatusCancelled, "member, approver", "run cancelled"},
		{ActionStatusPending, EventChanged, ActionStatusPending, "system", "compiled again; revision rises, approvals void"},
		{ActionStatusPending, EventVoid, ActionStatusCancelled, "system", "compiling again failed"},

		{ActionStatusApproved, EventEdit, ActionStatusPending, "member", "never claimed; revision rises, approvals void"},
		{ActionStatusApproved, EventRevoke, ActionStatusRevoked, "approver, owner", ""},
		{ActionStatusApproved, EventExpire, ActionStatusExpired, "system", "deadline passed by database time"},
		{ActionStatusApproved, EventDoneByHand, ActionStatusSucceeded, "member, approver", "manual action; proof URL given"},
		{ActionStatusApproved, EventClaim, ActionStatusClaimed, "executor", "same revision and digest; host healthy, not in recovery"},
		{ActionStatusApproved, EventCancel, ActionStatusCancelled, "member, approver", "run cancelled"},
		{ActionStatusApproved, EventChanged, ActionStatusPending, "system", "never claimed; compiled again"},
		{ActionStatusApproved, EventVoid, ActionStatusCancelled, "system", "never claimed; compiling again failed"},
		{ActionStatusApproved, EventRecheckFailed, ActionStatusFailed, "system", "claimed once, and what it rests on changed"},
		{ActionStatusApproved, EventRestored, ActionStatusUnknown, "system", "recovery"},

		{ActionStatusClaimed, EventMarkSending, ActionStatusSending, "same executor", "lease alive, approval verified again, connection made"},
		{ActionStatusClaimed, EventConnectFailed, ActionStatusApproved, "same executor", "fewer than five tries"},
		{ActionStatusClaimed, EventLeaseEnded, ActionStatusApproved, "system", "lease over by database time"},
		{ActionStatusClaimed, EventRecheckFailed, ActionStatusFailed, "same executor", ""},
		{ActionStatusClaimed, EventExpire, ActionStatusExpired, "same executor", "deadline passed by database time"},
		{ActionStatusClaimed, EventRevoke, ActionStatusRevoked, "approver, owner", ""},
		{ActionStatusClaimed, EventCancel, ActionStatusCancelled, "member, approver", "run cancelled"},
		{ActionStatusClaimed, EventRestored, ActionStatusUnknown, "system", "recovery"},

		{ActionStatusSending, EventReplyOK, ActionStatusSucceeded, "same executor", "success predicate holds"},
		{ActionStatusSending, EventRefused, ActionStatusFailed, "same executor", "nothing was written, or a status declared definite"},
		{ActionStatusSending, EventUncertain, ActionStatusUnknown, "same executor", ""},
		{ActionStatusSending, EventLeaseEnded, ActionStatusUnknown, "system", "lease over by database time"},
		{ActionStatusSending, EventRestored, ActionStatusUnknown, "system", "recovery"},

		{ActionStatusUnknown, EventReplyOK, ActionStatusSucceeded, "same executor", "the reply came late; audited"},
		{ActionStatusUnknown, EventRefused, ActionStatusFailed, "same executor", "the reply came late; audited"},
		{ActionStatusUnknown, EventFound, ActionStatusSucceeded, "system", "our marker is in what the look-up found"},
		{ActionStatusUnknown, EventHappened, ActionStatusSucceeded, "approver, owner", "evidence note"},
		{ActionStatusUnknown, EventNotHappened, ActionStatusFailed, "approver, owner", "evidence note"},
		{ActionStatusUnknown, EventSupersede, ActionStatusSuperseded, "member", "the sender is known dead"},

		{ActionStatusFailed, EventSupersede, ActionStatusSuperseded, "member", "same input compiled again"},
		{ActionStatusExpired, EventSupersede, ActionStatusSuperseded, "member", "same input compiled again"},
	}
}

var actionMoves = func() map[ActionStatus]map[ActionEvent]ActionStatus {
	m := map[ActionStatus]map[ActionEvent]ActionStatus{}
	for _, t := range ActionTransitions() {
		if m[t.From] == nil {
			m[t.From] = map[ActionEvent]ActionStatus{}
		}
		if _, twice := m[t.From][t.Event]; twice {
			panic(fmt.Sprintf("core: transition %s on %s stands twice", t.From, t.Event))
		}
		m[t.From][t.Event] = t.To
	}
	return m
}()

// NextActionStatus is the state an event leads to. A move the table does not allow
// is a conflict that names the current state.
func NextActionStatus(from ActionStatus, event ActionEvent) (ActionStatus, error) {
	to, ok := actionMoves[from][event]
	if !ok {
		return from, Errf(KindConflict, "wrong_state", "The action is %s; %s is not possible from there.", from, event)
	}
	return to, nil
}

// IsFinal reports whether nothing but superseding can happen to an action in this state.
func (s ActionStatus) IsFinal() bool {
	for event := range actionMoves[s] {
		if event != EventSupersede {
			return false
		}
	}
	return true
}

// IsWaiting reports whether the action still waits for a decision.
func (s ActionStatus) IsWaiting() bool { return s == ActionStatusProposed || s == ActionStatusPending }

// Times and counts of execution.
const (
	DefaultActionTTL  = 72 * time.Hour
	DefaultUndoWindow = 30 * time.Second
	MaxConnectTries   = 5
	// SeenWithin is how long a delivery counts as having seen what is decided on.
	SeenWithin = 30 * time.Minute
)
