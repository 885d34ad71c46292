package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Proposal is a call of a write tool that is to be staged.
type Proposal struct {
	Tool        string
	Input       json.RawMessage
	Channel     string
	AssetRefs   []core.AssetRef
	EvidenceIDs []string
	DependsOn   []string
}

// Propose compiles a write tool inside a call and stages the action. Nothing is sent: the
// sealed effect waits for a person.
func (d *Dispatcher) Propose(ctx context.Context, s *Scope, in Proposal) (*core.Action, error) {
	if s.RunID == "" {
		return nil, core.Errf(core.KindInvalid, "no_run", "The call belongs to no run, so that there is nothing to stage an action in.")
	}
	now := d.d.Clock.Now()
	sealed, err := d.compile(ctx, s, core.NewID(core.PrefixAction, now), in)
	if err != nil {
		return nil, err
	}
	a, err := d.d.Approval.Propose(ctx, s.Principal, *sealed)
	if err == nil {
		s.shared.proposed.Add(1)
	}
	return a, err
}

// Revise compiles the write tool of an action again with other input. The action gets a
// new revision that needs its own approval. ifMatch, where given, must be the digest in force.
func (d *Dispatcher) Revise(ctx context.Context, p core.Principal, actionID, ifMatch string, input json.RawMessage) (*core.Action, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	a, err := d.d.Approval.Get(ctx, p, actionID)
	if err != nil {
		return nil, err
	}
	sealed, err := d.compile(ctx, d.scopeOf(p, a), a.ID, Proposal{Tool: a.Tool, Input: input, Channel: a.Channel, AssetRefs: a.AssetRefs, EvidenceIDs: a.EvidenceIds, DependsOn: a.DependsOn})
	if err != nil {
		return nil, errorOf(err, a.Tool)
	}
	return d.d.Approval.Revise(ctx, p, actionID, ifMatch, *sealed)
}

// Retry stages a new action in the place of one that failed, expired or whose outcome is
// unknown. It is compiled from the same input and needs its own approval.
func (d *Dispatcher) Retry(ctx context.Context, p core.Principal, actionID string) (*core.Action, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	a, err := d.d.Approval.Get(ctx, p, actionID)
	if err != nil {
		return nil, err
	}
	if _, err := core.NextActionStatus(a.Status, core.EventSupersede); err != nil {
		return nil, err
	}
	input, err := json.Marshal(a.Input)
	if err != nil {
		return nil, err
	}
	sealed, err := d.compile(ctx, d.scopeOf(p, a), core.NewID(core.PrefixAction, d.d.Clock.Now()), Proposal{
		Tool: a.Tool, Input: input, Channel: a.Channel, AssetRefs: a.AssetRefs, EvidenceIDs: a.EvidenceIds, DependsOn: a.DependsOn,
	})
	if err != nil {
		return nil, errorOf(err, a.Tool)
	}
	sealed.Supersedes = a.ID
	return d.d.Approval.Propose(ctx, p, *sealed)
}

// scopeOf is the scope in which an existing action is compiled again.
func (d *Dispatcher) scopeOf(p core.Principal, a *core.Action) *Scope {
	now := d.d.Clock.Now()
	return &Scope{CallID: core.NewID("call", now), Principal: p, RunID: a.RunID, ReviewURL: a.ReviewURL, Tool: a.Tool, Effect: schemas.EffectWrite, Depth: 1, Now: now, shared: &shared{}}
}

// compile calls a write tool, the only place that does, and checks the sealed effect
// against the manifest and the connection before anybody sees it.
func (d *Dispatcher) compile(ctx context.Context, s *Scope, actionID string, in Proposal) (*approval.Proposal, error) {
	e, ok := d.d.Registry.Snapshot().Lookup(in.Tool)
	if !ok {
		return nil, core.Errf(core.KindNotFound, CodeUnknownTool, "There is no write tool %q.", clip(in.Tool))
	}
	if e.Doc.Effect != schemas.EffectWrite {
		return nil, core.Errf(core.KindInvalid, "not_a_write_tool", "%s has the effect %s: call it instead of proposing it.", in.Tool, e.Doc.Effect)
	}
	if err := checkInput(e, in.Input); err != nil {
		return nil, err
	}
	out := &approval.Proposal{
		WorkspaceID: s.WorkspaceID(), RunID: s.RunID, ActionID: actionID, Tool: in.Tool, Plugin: e.Plugin,
		PluginDigest: e.owner.Digest, ManifestDigest: e.owner.ManifestDigest, ToolDigest: e.Digest, Channel: in.Channel, Input: in.Input,
		Endpoints: e.owner.Manifest.Needs.Endpoints, AssetRefs: in.AssetRefs, EvidenceIDs: in.EvidenceIDs, DependsOn: in.DependsOn,
	}
	if e.Doc.Reversibility != nil {
		out.Reversibility = string(*e.Doc.Reversibility)
	}
	if e.Doc.Proof != nil {
		out.Proof = string(*e.Doc.Proof)
	}
	sealed, err := d.seal(ctx, e, s.nest(e, core.NewID("call", d.d.Clock.Now())), actionID, in.Input)
	if err != nil {
		return nil, err
	}
	out.Sealed = *sealed
	if len(sealed.Steps) == 0 { // a person does it by hand: no connection, no connector
		return out, nil
	}
	c := e.owner.Manifest.Connector
	if c == nil {
		return nil, d.badEffect(e, fmt.Errorf("only a connector may compile steps that core sends"))
	}
	out.Connector = c.Provider
	if out.Connection, err = d.d.Connections.Bind(ctx, s.WorkspaceID(), c.Provider, sealed.Connection); err != nil {
		return nil, err
	}
	return out, nil
}

// seal runs the compile call and reads the effect.
func (d *Dispatcher) seal(ctx context.Context, e *Entry, s *Scope, actionID string, input json.RawMessage) (*effect.Sealed, error) {
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	call := CallIn{Tool: e.Doc.Name, Input: input, ActionID: actionID, Scope: s}
	if c := e.owner.Manifest.Connector; c != nil {
		var err error
		if call.Connection, err = d.d.Connections.Describe(ctx, s.WorkspaceID(), c.Provider, connectionName(input)); err != nil {
			return nil, err
		}
	}
	out, err := e.owner.Caller.Call(ctx, call)
	if err != nil {
		return nil, err
	}
	if out.Sealed == nil {
		return nil, Unavailable(e.Plugin, "its write tool "+e.Doc.Name+" compiled nothing")
	}
	sealed, err := effect.Decode(out.Sealed)
	if err != nil {
		return nil, d.badEffect(e, err)
	}
	return sealed, nil
}

func (d *Dispatcher) badEffect(e *Entry, err error) error {
	out := core.Errf(core.KindInvalid, "invalid_effect", "What %s compiled cannot be sent: %v.", e.Doc.Name, err)
	out.Err = err
	return out
}

// CurrentDigests tells what the plugin declares now: approvals rest on it.
func (r *Registry) CurrentDigests(plugin, tool string) (manifestDigest, toolDigest string, ok bool) {
	e, found := r.Snapshot().Lookup(tool)
	if !found || e.IsHost() || e.Plugin != plugin {
		return "", "", false
	}
	return e.owner.ManifestDigest, e.Digest, true
}
