package approval

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Get reads an action of the caller's workspace. Showing it to somebody who may decide
// is Deliver's or DeliverAction's matter.
func (s *Service) Get(ctx context.Context, p core.Principal, id string) (*core.Action, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	a, err := s.d.DB.Action(ctx, ws, id)
	if err != nil {
		return nil, err
	}
	decisions, err := s.d.DB.DecisionsOf(ctx, ws, id)
	if err != nil {
		return nil, err
	}
	return s.resource(a, decisions)
}

// List reads a page of actions, newest first.
func (s *Service) List(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.Action], error) {
	out := core.Page[core.Action]{Items: []core.Action{}}
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return out, err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	page, err := s.d.DB.ListActions(ctx, ws, q)
	if err != nil {
		return out, err
	}
	ids := []string{}
	for _, a := range page.Items {
		ids = append(ids, a.ID)
	}
	decisions, err := s.d.DB.DecisionsOf(ctx, ws, ids...)
	if err != nil {
		return out, err
	}
	out.NextCursor = page.NextCursor
	for i := range page.Items {
		a, err := s.resource(&page.Items[i], decisions)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, *a)
	}
	return out, nil
}

// Deliver remembers that all that waits in a run is shown to p now, and returns the
// digest of this pack. A later approval without a digest is a yes to exactly this. Call
// it before reading what is shown: then a change in between makes such a yes stale
// instead of blind.
func (s *Service) Deliver(ctx context.Context, p core.Principal, runID string) (packDigest string, err error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return "", err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	if _, err := s.d.DB.Run(ctx, ws, runID); err != nil {
		return "", err
	}
	briefs, err := s.d.DB.ActionBriefs(ctx, ws, runID)
	if err != nil {
		return "", err
	}
	pack := run.Pack(briefs)
	packDigest = run.PackDigest(pack)
	if !p.Can(core.ScopeActionsApprove) { // nothing can follow from what others saw
		return packDigest, nil
	}
	return packDigest, s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		d := &store.Delivery{WorkspaceID: ws, PrincipalID: p.ID, RunID: runID, PackDigest: packDigest, Actions: []store.DeliveredAction{}, At: store.At(now)}
		for _, i := range pack {
			d.Actions = append(d.Actions, store.DeliveredAction(i))
		}
		return tx.PutDelivery(ctx, d)
	})
}

// DeliverAction remembers that one action is shown to p now. A delivery of the same run
// that is still young is added to and keeps its age, so that nothing seems seen later
// than it was.
func (s *Service) DeliverAction(ctx context.Context, p core.Principal, actionID string) error {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return err
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	a, err := s.d.DB.Action(ctx, ws, actionID)
	if err != nil || !p.Can(core.ScopeActionsApprove) || !a.Status.IsWaiting() {
		return err
	}
	return s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		d, err := tx.Delivery(ctx, ws, p.ID, a.RunID)
		if core.IsKind(err, core.KindNotFound) || err == nil && now.Sub(d.At.Time) > core.SeenWithin/2 {
			d, err = &store.Delivery{WorkspaceID: ws, PrincipalID: p.ID, RunID: a.RunID, At: store.At(now)}, nil
		}
		if err != nil {
			return err
		}
		seen := []store.DeliveredAction{{ID: a.ID, Revision: a.Revision, Digest: a.Digest}}
		for _, old := range d.Actions {
			if old.ID != a.ID {
				seen = append(seen, old)
			}
		}
		d.Actions = seen
		return tx.PutDelivery(ctx, d)
	})
}

// resource is the action as callers see it; decisions may hold those of others too.
func (s *Service) resource(a *store.Action, decisions []store.Decision) (*core.Action, error) {
	out := &core.Action{ID: a.ID, WorkspaceID: string(a.WorkspaceID), RunID: a.RunID, Tool: a.Tool, Connector: a.Connector, Channel: a.Channel, Kind: a.Kind,
		Executor: a.Executor, Title: a.Title, Target: core.ActionTarget{AccountID: a.TargetAccount, Label: a.TargetLabel},
		Status: a.Status, StatusReason: a.StatusReason, Revision: a.Revision, Digest: a.Digest, Version: int(a.Version), Reversibility: a.Reversibility,
		ContentSha256: notNil(a.ContentSHA256), AssetRefs: notNil(a.AssetRefs), EvidenceIds: notNil(a.EvidenceIDs), DependsOn: notNil(a.DependsOn),
		Cost:      core.ActionCost{Credits: a.Credits, Micros: int(a.CostMicros), Currency: a.Currency},
		Policy:    core.ActionPolicy{Proof: core.ActionPolicyProof(a.Proof), Needed: a.Needed, Deadline: a.ExpiresAt.Time},
		Decisions: []core.Decision{}, CreatedBy: a.CreatedBy, CreatedAt: a.CreatedAt.Time, UpdatedAt: a.UpdatedAt.Time, ExpiresAt: a.ExpiresAt.Time,
		ReviewURL: s.d.Runs.ReviewURL(a.RunID), Supersedes: optional(a.Supersedes), SupersededBy: optional(a.SupersededBy)}
	if err := a.Input.Decode(&out.Input); err != nil {
		return nil, err
	}
	if err := a.Preview.Decode(&out.Preview); err != nil {
		return nil, err
	}
	for i := range decisions {
		if decisions[i].ActionID == a.ID {
			out.Decisions = append(out.Decisions, decisionOf(&decisions[i]))
		}
	}
	if !a.StartedAt.IsZero() || a.Outcome != "" {
		out.Execution = executionOf(a)
	}
	return out, nil
}

func decisionOf(d *store.Decision) core.Decision {
	out := core.Decision{ID: d.ID, ActionID: d.ActionID, Revision: d.Revision, Digest: d.Digest, Decision: d.Decision, By: d.By, Proof: d.Proof,
		Channel: d.Channel, Reason: d.Reason, At: d.At.Time}
	if d.ViaServiceKey {
		yes := true
		out.ViaServiceKey = &yes
	}
	return out
}

func executionOf(a *store.Action) *core.Execution {
	e := &core.Execution{Attempt: a.Attempt, IdempotencyKey: a.IdempotencyKey, ContentSha256: notNil(a.SentSHA256), Error: a.ExecError,
		ExternalID: optional(a.ExternalID), ExternalURL: optional(a.ExternalURL), StartedAt: a.StartedAt.Ptr(), FinishedAt: a.FinishedAt.Ptr()}
	if a.Outcome != "" {
		o := core.ActionExecutionOutcome(a.Outcome)
		e.Outcome = &o
	}
	return e
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func expired(a *store.Action) error {
	return core.Errf(core.KindGone, "expired", "The action expired at %s. Retry it to propose it anew.", a.ExpiresAt.UTC().Format(time.RFC3339))
}

func mismatch(detail, current string) error {
	e := core.Errf(core.KindPrecondition, "digest_mismatch", "%s Read it again and decide on digest %s.", detail, current)
	e.CurrentDigest = current
	return e
}
