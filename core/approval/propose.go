package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Proposal is a sealed effect with what it rests on. The caller compiled it under
// ActionID, which it made with core.NewID before.
type Proposal struct {
	WorkspaceID, RunID, ActionID             string
	Tool, Plugin, Connector                  string
	PluginDigest, ManifestDigest, ToolDigest string
	Channel                                  string
	Input                                    json.RawMessage
	Sealed                                   effect.Sealed
	// Endpoints are those of the plugin's manifest that the effect may name.
	Endpoints     []schemas.Endpoint
	Connection    effect.Connection
	Reversibility string
	// Proof may ask for more than the workspace's policy does, never for less.
	Proof                  string
	AssetRefs              []core.AssetRef
	EvidenceIDs, DependsOn []string
	// Supersedes is the failed, unknown or expired action that this one replaces.
	Supersedes string
}

// Propose stages a sealed effect: from now on it can be seen and, once its run is in
// review, decided on.
func (s *Service) Propose(ctx context.Context, p core.Principal, in Proposal) (*core.Action, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	if in.WorkspaceID != p.WorkspaceID {
		return nil, core.Errf(core.KindNotFound, "not_found", "There is no workspace %s here.", in.WorkspaceID)
	}
	if !core.HasPrefix(in.ActionID, core.PrefixAction) || !core.HasPrefix(in.RunID, core.PrefixRun) {
		return nil, core.Errf(core.KindInvalid, "invalid_proposal", "A proposal needs the identifiers of its run and of the action it was compiled for.")
	}
	var out *core.Action
	err := s.inTx(ctx, p, func(ctx context.Context, w *work) error {
		a := &store.Action{ID: in.ActionID, WorkspaceID: store.WorkspaceID(in.WorkspaceID), RunID: in.RunID, Status: core.ActionStatusProposed,
			StatusReason: "Drafting of the run goes on.", Revision: 1, Version: 1, CreatedBy: p.Actor(), CreatedByID: p.ID, EditedBy: p.Actor(), EditedByID: p.ID,
			Supersedes: in.Supersedes, IdempotencyKey: in.ActionID, CreatedAt: store.At(w.now), UpdatedAt: store.At(w.now),
			ExpiresAt: store.At(w.now.Add(s.d.ActionTTL))}
		old, err := w.supersede(ctx, a, in)
		if err != nil {
			return err
		}
		phase, err := w.room(ctx, a)
		if err != nil {
			return err
		}
		if err := w.seal(ctx, a, in); err != nil {
			return err
		}
		if old != nil && sameSteps(old, a) { // sending the same bytes again: let the provider know it is a repetition
			a.IdempotencyKey = old.IdempotencyKey
			if err := w.reseal(ctx, a); err != nil {
				return err
			}
		}
		if err := w.tx.InsertAction(ctx, a); err != nil {
			return err
		}
		if err := w.keepRevision(ctx, a); err != nil {
			return err
		}
		w.note(a, "proposed", "", map[string]any{"tool": a.Tool, "plugin": a.Plugin, "pluginDigest": a.PluginDigest, "connection": a.ConnectionID, "supersedes": a.Supersedes})
		if old != nil && phase == core.PhaseInReview { // its run waits for nothing else
			if err := w.move(ctx, a, core.EventDrafted, waiting, nil); err != nil {
				return err
			}
		}
		out, err = w.s.resource(a, nil)
		return err
	})
	return out, err
}

const waiting = "Waiting for a person's decision."

// room refuses actions for a run that ended or is full, and holds the run: until the
// new action is committed the run neither ends nor fills. The action is not in the
// database yet, so nobody can hold it while waiting for the run.
func (w *work) room(ctx context.Context, a *store.Action) (core.RunPhase, error) {
	r, err := w.tx.LockRun(ctx, a.WorkspaceID, a.RunID)
	if err != nil {
		return "", err
	}
	if err := goesOn(r); err != nil {
		return "", err
	}
	briefs, err := w.tx.ActionBriefs(ctx, a.WorkspaceID, a.RunID)
	if err != nil {
		return "", err
	}
	if len(briefs) >= MaxActionsPerRun {
		return "", core.Errf(core.KindInvalid, "too_many_actions", "The run has %d actions; that is the most one person can review. Open another run for the rest.", len(briefs))
	}
	return r.Phase, nil
}

// goesOn refuses a run that ended.
func goesOn(r *store.Run) error {
	switch r.Phase {
	case core.PhaseClosed, core.PhaseFailed, core.PhaseCancelled:
		return core.Errf(core.KindConflict, "run_ended", "The run is %s and takes no more actions. Open a new run.", r.Phase)
	}
	return nil
}

// seal puts a compiled effect into a row and computes everything that follows from it.
func (w *work) seal(ctx context.Context, a *store.Action, in Proposal) error {
	sealed, err := json.Marshal(in.Sealed)
	if err != nil {
		return core.Errf(core.KindInvalid, "invalid_effect", "The sealed effect cannot be stored.")
	}
	var input map[string]any
	if err := json.Unmarshal(in.Input, &input); err != nil {
		return core.Errf(core.KindInvalid, "invalid_proposal", "The input of %s is not a JSON object.", in.Tool)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, in.Input); err != nil {
		return core.Errf(core.KindInvalid, "invalid_proposal", "The input of %s is not JSON.", in.Tool)
	}
	endpoints := []effect.Endpoint{}
	for _, e := range in.Endpoints {
		endpoints = append(endpoints, endpointOf(e))
	}
	a.Tool, a.Plugin, a.Connector, a.Channel = in.Tool, in.Plugin, in.Connector, in.Channel
	a.PluginDigest, a.ManifestDigest, a.ToolDigest = in.PluginDigest, in.ManifestDigest, in.ToolDigest
	a.Input, a.Sealed, a.Connection = store.JSON(compact.Bytes()), store.JSON(sealed), store.JSONOf(in.Connection)
	a.Endpoints = store.JSONOf(effect.Used(in.Sealed, endpoints))
	a.AssetRefs, a.EvidenceIDs, a.DependsOn = notNil(in.AssetRefs), notNil(in.EvidenceIDs), notNil(in.DependsOn)
	if err := w.rests(ctx, a); err != nil {
		return err
	}
	a.Reversibility = core.ActionReversibility(in.Reversibility)
	if !slices.Contains([]core.ActionReversibility{core.ActionReversibilityReversible, core.ActionReversibilityExternallyReversible, core.ActionReversibilityIrreversible}, a.Reversibility) {
		a.Reversibility = core.ActionReversibilityIrreversible // who does not know it must not promise it
	}
	pol, err := w.s.policyOf(ctx, w.tx, a.WorkspaceID)
	if err != nil {
		return err
	}
	a.Needed, a.Proof = pol.Needed, pol.Proof
	if rank(core.Proof(in.Proof)) > rank(a.Proof) {
		a.Proof = core.Proof(in.Proof)
	}
	if in.Sealed.Money != nil && in.Sealed.Money.Micros > 0 {
		a.Proof = core.ProofP3
	}
	if n := in.Sealed.NotBefore; n != nil && !n.Before(a.ExpiresAt.Time) {
		return core.Errf(core.KindInvalid, "invalid_effect", "The effect begins at %s, after its approval would end at %s.", n.UTC().Format(time.RFC3339), a.ExpiresAt.Format(time.RFC3339))
	}
	return w.reseal(ctx, a)
}

// reseal computes digest and derived columns of a row whose parts are complete.
func (w *work) reseal(ctx context.Context, a *store.Action) error {
	installation, err := w.tx.InstallationID(ctx)
	if err != nil {
		return err
	}
	o, err := open(a, installation)
	if err != nil {
		e := core.Errf(core.KindInvalid, "invalid_effect", "The effect that %s compiled cannot be sent: %s.", a.Tool, err.Error())
		e.Err = err
		return e
	}
	if a.Executor == core.ActionExecutorConnector && o.resolved.Connection.ID == "" {
		return core.Errf(core.KindInvalid, "not_connected", "%s is not connected, so nothing can be sent through it. Connect it first.", a.Connector)
	}
	return o.derive(a)
}

// rests checks that what the effect rests on exists as the caller says.
func (w *work) rests(ctx context.Context, a *store.Action) error {
	for _, r := range a.AssetRefs {
		asset, err := w.tx.Asset(ctx, a.WorkspaceID, r.ID)
		if err != nil {
			return err
		}
		if r.Revision < 1 || r.Revision > asset.Revision || r.Revision == asset.Revision && asset.Digest != r.Digest {
			return core.Errf(core.KindInvalid, "invalid_proposal", "Draft %s has no revision %d with this digest; its newest is %d.", r.ID, r.Revision, asset.Revision)
		}
	}
	for _, id := range a.EvidenceIDs {
		if _, err := w.tx.Evidence(ctx, a.WorkspaceID, id); err != nil {
			return err
		}
	}
	for _, id := range a.DependsOn {
		on, err := w.tx.Action(ctx, a.WorkspaceID, id)
		if err != nil {
			return err
		}
		if on.RunID != a.RunID || id == a.ID {
			return core.Errf(core.KindInvalid, "invalid_proposal", "Action %s cannot be depended on: it is not an earlier action of the same run.", id)
		}
	}
	return nil
}

func (w *work) keepRevision(ctx context.Context, a *store.Action) error {
	return w.tx.InsertActionRevision(ctx, &store.ActionRevision{ActionID: a.ID, Revision: a.Revision, WorkspaceID: a.WorkspaceID, Digest: a.Digest, Input: a.Input,
		Sealed: a.Sealed, Preview: a.Preview, ContentSHA256: a.ContentSHA256, PluginDigest: a.PluginDigest, ManifestDigest: a.ManifestDigest,
		ToolDigest: a.ToolDigest, ConnectionID: a.ConnectionID, By: a.EditedBy, At: store.At(w.now)})
}

// Revise puts a freshly compiled effect in the place of an action's content. The
// revision rises and every decision is void. ifMatch, if given, must be the digest in force.
func (s *Service) Revise(ctx context.Context, p core.Principal, actionID, ifMatch string, in Proposal) (*core.Action, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	var out *core.Action
	err := s.inTx(ctx, p, func(ctx context.Context, w *work) error {
		a, err := w.tx.LockAction(ctx, store.WorkspaceID(p.WorkspaceID), actionID)
		if err != nil {
			return err
		}
		if err := mayEdit(ctx, w, a); err != nil {
			return err
		}
		if ifMatch != "" && ifMatch != a.Digest {
			return mismatch("The action was changed since it was read.", a.Digest)
		}
		if in.ActionID != actionID || in.Tool != a.Tool {
			return core.Errf(core.KindInvalid, "invalid_proposal", "An edit is compiled by the same tool for the same action.")
		}
		if !w.now.Before(a.ExpiresAt.Time) {
			return expired(a)
		}
		if a.ClaimedOnce {
			return core.Errf(core.KindConflict, "frozen_content", "Sending of the action had begun once; its content stays as it is. Revoke it and propose anew.")
		}
		if _, err := core.NextActionStatus(a.Status, core.EventEdit); err != nil {
			return err
		}
		was := a.Digest
		if len(in.AssetRefs) == 0 {
			in.AssetRefs = a.AssetRefs
		}
		if len(in.EvidenceIDs) == 0 {
			in.EvidenceIDs = a.EvidenceIDs
		}
		if len(in.DependsOn) == 0 {
			in.DependsOn = a.DependsOn
		}
		if in.Channel == "" {
			in.Channel = a.Channel
		}
		a.Revision++
		a.EditedBy, a.EditedByID, a.ApprovedAt, a.ExecuteAt = p.Actor(), p.ID, store.Time{}, store.Time{}
		a.IdempotencyKey = a.ID
		if err := w.seal(ctx, a, in); err != nil {
			return err
		}
		if err := w.keepRevision(ctx, a); err != nil {
			return err
		}
		if err := w.tx.VoidDecisions(ctx, a.WorkspaceID, a.ID); err != nil {
			return err
		}
		if err := w.move(ctx, a, core.EventEdit, waiting, map[string]any{"wasDigest": was}); err != nil {
			return err
		}
		decisions, err := w.tx.DecisionsOf(ctx, a.WorkspaceID, a.ID)
		if err != nil {
			return err
		}
		out, err = s.resource(a, decisions)
		return err
	})
	return out, err
}

// mayEdit lets people edit, and keys only in runs that they opened.
func mayEdit(ctx context.Context, w *work, a *store.Action) error {
	if w.p.Kind != core.ActorKindKey || a.CreatedByID == w.p.ID {
		return nil
	}
	r, err := w.tx.Run(ctx, a.WorkspaceID, a.RunID)
	if err != nil {
		return err
	}
	if r.CreatedByID != w.p.ID {
		return core.Errf(core.KindForbidden, "not_your_run", "A key may edit only what it proposed or what belongs to a run it opened.")
	}
	return nil
}

// Ready ends the drafting of a run: what was proposed waits for decisions from now on.
func (s *Service) Ready(ctx context.Context, workspaceID, runID string) error {
	ws := store.WorkspaceID(workspaceID)
	return s.inTx(ctx, system("drafting", ws), func(ctx context.Context, w *work) error {
		actions, err := w.tx.LockActionsOfRun(ctx, ws, runID)
		if err != nil {
			return err
		}
		n := 0
		for i := range actions {
			if actions[i].Status != core.ActionStatusProposed {
				continue
			}
			if err := w.move(ctx, &actions[i], core.EventDrafted, waiting, nil); err != nil {
				return err
			}
			n++
		}
		w.touch(runID)
		w.edits[runID] = func(r *store.Run) error {
			if err := goesOn(r); err != nil {
				return err
			}
			r.Phase, r.PhaseReason = core.PhaseInReview, ""
			return nil
		}
		w.log("run.ready", runID, map[string]any{"actions": n})
		return nil
	})
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
