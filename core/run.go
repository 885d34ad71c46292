package core

import "time"

// RunPhase is the stored part of a run's state; everything after drafting is computed.
type RunPhase string

// Phases of a run.
const (
	PhaseCreated   RunPhase = "created"
	PhaseGathering RunPhase = "gathering"
	PhaseDrafting  RunPhase = "drafting"
	PhaseInReview  RunPhase = "in_review"
	PhaseClosed    RunPhase = "closed"
	PhaseFailed    RunPhase = "failed"
	PhaseCancelled RunPhase = "cancelled"
)

// MeasurementWindow is how long a launch is measured after its last success.
const MeasurementWindow = 24 * time.Hour

// MeasurementOf tells the measurement window of a run from the times its actions
// succeeded: it opens at the first and closes 24 hours after the last.
func MeasurementOf(succeeded []time.Time, now time.Time) *Measurement {
	if len(succeeded) == 0 {
		return &Measurement{Status: RunMeasurementStatusNotStarted}
	}
	first, last := succeeded[0], succeeded[0]
	for _, t := range succeeded {
		if t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	closes := last.Add(MeasurementWindow)
	m := &Measurement{OpensAt: &first, ClosesAt: &closes, Status: RunMeasurementStatusOpen}
	if !now.Before(closes) {
		m.Status = RunMeasurementStatusClosed
	}
	return m
}

// RunStatusOf is the status callers see: the phase until drafting ends, after that a
// pure function of the actions and the measurement window, so that it cannot
// contradict them.
func RunStatusOf(phase RunPhase, actions []ActionStatus, m *Measurement) RunStatus {
	switch phase {
	case PhaseCreated:
		return RunStatusCreated
	case PhaseGathering:
		return RunStatusGathering
	case PhaseDrafting:
		return RunStatusDrafting
	case PhaseFailed:
		return RunStatusFailed
	case PhaseCancelled:
		return RunStatusCancelled
	}
	n := map[ActionStatus]int{}
	live := 0
	for _, s := range actions {
		if s == ActionStatusSuperseded { // its successor speaks for it
			continue
		}
		n[s]++
		live++
	}
	decided := n[ActionStatusApproved] + n[ActionStatusClaimed] + n[ActionStatusSending] + n[ActionStatusSucceeded] + n[ActionStatusFailed] + n[ActionStatusUnknown]
	waiting := n[ActionStatusPending] + n[ActionStatusProposed]
	switch {
	case live == 0:
		return RunStatusCompleted
	case n[ActionStatusUnknown] > 0:
		return RunStatusNeedsAttention
	case n[ActionStatusClaimed]+n[ActionStatusSending] > 0:
		return RunStatusExecuting
	case waiting > 0 && decided > 0:
		return RunStatusPartiallyApproved
	case waiting > 0:
		return RunStatusAwaitingApproval
	case n[ActionStatusApproved] > 0:
		return RunStatusApproved
	case n[ActionStatusFailed] > 0:
		return RunStatusNeedsAttention
	case n[ActionStatusSucceeded] > 0 && m != nil && m.Status == RunMeasurementStatusOpen:
		return RunStatusMeasuring
	case n[ActionStatusSucceeded] > 0:
		return RunStatusCompleted
	case n[ActionStatusExpired] > 0 && n[ActionStatusExpired] >= n[ActionStatusRejected]+n[ActionStatusRevoked]:
		return RunStatusExpired
	case n[ActionStatusRejected]+n[ActionStatusRevoked] > 0:
		return RunStatusRejected
	case n[ActionStatusCancelled] == live:
		return RunStatusCancelled
	}
	return RunStatusCompleted
}
