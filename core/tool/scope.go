package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
)

// openScope opens the scope of a call from outside. A draft tool of an operator or skill
// that names no run gets one of its own, whose drafting ends with the call.
func (d *Dispatcher) openScope(ctx context.Context, e *Entry, p core.Principal, r Request) (*Scope, error) {
	now := d.d.Clock.Now()
	s := &Scope{CallID: core.NewID("call", now), Principal: p, Plugin: e.Plugin, Tool: e.Doc.Name, Effect: e.Doc.Effect, Depth: 1, Now: now, shared: &shared{}}
	named := fieldsOf(r.Args)
	runID := cmp.Or(r.RunID, named.RunID)
	switch {
	case runID != "":
		row, err := d.d.DB.Run(ctx, store.WorkspaceID(p.WorkspaceID), runID)
		if err != nil {
			return nil, err
		}
		s.RunID, s.ReviewURL = row.ID, d.d.Runs.ReviewURL(row.ID)
		waits := row.Phase == core.PhaseCreated && row.OriginTool == "" // nobody works on it yet
		s.Drafting = r.background || waits && e.Doc.Effect == schemas.EffectDraft
	case e.Doc.Effect == schemas.EffectDraft && e.Kind != KindConnector:
		made, err := d.d.Runs.Create(ctx, p, run.Create{
			Goal: cmp.Or(named.goal(), e.Doc.Title), ProjectID: named.ProjectID, Operator: d.d.Registry.Snapshot().operatorOf(e),
		})
		if err != nil {
			return nil, err
		}
		s.RunID, s.ReviewURL, s.Drafting = made.ID, made.ReviewURL, true
	}
	if s.Drafting {
		if err := d.d.Runs.SetPhase(ctx, p.WorkspaceID, s.RunID, core.PhaseGathering, ""); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// closeScope ends a call: a run that it drafted goes to review, or fails with the reason;
// actions proposed into a run that was there go to review in any case.
func (d *Dispatcher) closeScope(ctx context.Context, s *Scope, failed error) error {
	ctx = context.WithoutCancel(ctx) // the end must be written even where the caller has gone
	switch {
	case s.RunID == "":
		return failed
	case s.Drafting && failed != nil:
		reason := errorOf(failed, s.Tool).Detail
		if err := d.d.Runs.SetPhase(ctx, s.WorkspaceID(), s.RunID, core.PhaseFailed, clip(reason)); err != nil {
			d.d.Log.Warn("run not closed", "run", s.RunID, "error", err)
		}
	case s.Drafting || s.shared.proposed.Load() > 0:
		if err := d.d.Approval.Ready(ctx, s.WorkspaceID(), s.RunID); err != nil && failed == nil {
			return err
		}
	}
	return failed
}

// nest is the scope of a call inside this one.
func (s *Scope) nest(e *Entry, callID string) *Scope {
	out := *s
	out.CallID, out.Plugin, out.Tool, out.Effect, out.Depth = callID, e.Plugin, e.Doc.Name, e.Doc.Effect, s.Depth+1
	return &out
}

// fields are the arguments that mean the same in every tool.
type fields struct {
	RunID, ProjectID, Connection                string
	Goal, WhatChanged, Message, Brief, Question string
}

func fieldsOf(args json.RawMessage) fields {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return fields{}
	}
	text := func(name string) string {
		var s string
		if json.Unmarshal(all[name], &s) != nil { // absent, or of another kind in this tool
			return ""
		}
		return strings.TrimSpace(s)
	}
	return fields{
		RunID: text("runId"), ProjectID: text("projectId"), Connection: text("connection"),
		Goal: text("goal"), WhatChanged: text("whatChanged"), Message: text("message"), Brief: text("brief"), Question: text("question"),
	}
}

// goal is the goal in the caller's words, as far as the arguments have it.
func (f fields) goal() string {
	goal := []rune(cmp.Or(f.Goal, f.WhatChanged, f.Message, f.Brief, f.Question))
	return string(goal[:min(len(goal), maxGoal)])
}

// maxGoal is the longest goal of a run in characters; longer arguments are cut for it.
const maxGoal = 4000

func connectionName(args json.RawMessage) string { return fieldsOf(args).Connection }

// CreateRun opens a run whose operator works in the background.
func (d *Dispatcher) CreateRun(ctx context.Context, p core.Principal, in run.Create) (*core.Run, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
		return nil, err
	}
	snap := d.d.Registry.Snapshot()
	op, ok := snap.pickOperator(in.Operator)
	if !ok {
		return nil, core.Errf(core.KindUnavailable, "no_operator", "No operator is loaded that could answer a goal. The owner can load one in the plugin catalog.")
	}
	e, ok := snap.Lookup(op.PrimaryTool)
	if !ok {
		return nil, Unavailable(op.Name, "its primary tool is not loaded")
	}
	args, err := json.Marshal(map[string]string{goalField(e): in.Goal})
	if err != nil {
		return nil, err
	}
	in.Operator, in.Tool, in.Args = op.Name, op.PrimaryTool, args
	made, err := d.d.Runs.Create(ctx, p, in)
	if err == nil && d.d.Wake != nil {
		d.d.Wake(ctx, made.WorkspaceID, made.ID)
	}
	return made, err
}

// goalField is the field of a primary tool that takes the goal.
func goalField(e *Entry) string {
	known, _ := e.Doc.InputSchema["properties"].(map[string]any)
	for _, name := range []string{"goal", "message", "question"} {
		if _, ok := known[name]; ok {
			return name
		}
	}
	return "goal"
}

// pickOperator finds an operator by name, or the one for goals that name none: marketing
// where it is loaded, else the first.
func (s *Snapshot) pickOperator(name string) (core.Operator, bool) {
	const first = "marketing"
	var found *core.Operator
	for i := range s.operators {
		op := &s.operators[i]
		if op.Name == name || name == "" && (found == nil || op.Name == first) {
			found = op
		}
	}
	if found == nil {
		return core.Operator{}, false
	}
	return *found, true
}

// Advance does the background work of a run: it calls the tool that answers its goal, on
// behalf of who opened the run. A run whose drafting is over is left alone.
func (d *Dispatcher) Advance(ctx context.Context, workspaceID, runID string) error {
	row, err := d.d.DB.Run(ctx, store.WorkspaceID(workspaceID), runID)
	if err != nil {
		return err
	}
	switch row.Phase {
	case core.PhaseInReview, core.PhaseClosed, core.PhaseFailed, core.PhaseCancelled:
		return nil
	}
	if row.OriginTool == "" {
		return nil
	}
	if done, err := d.d.DB.ActionBriefs(ctx, row.WorkspaceID, row.ID); err != nil {
		return err
	} else if len(done) > 0 { // proposing again would show everything twice
		return d.d.Runs.SetPhase(ctx, workspaceID, runID, core.PhaseFailed, "The host stopped while this run was drafted. Open a new run for the same goal.")
	}
	by := row.CreatedBy
	p := core.Principal{Kind: by.Kind, ID: by.ID, Label: by.Label, WorkspaceID: workspaceID, Client: "background",
		Scopes: []string{core.ScopeRunsRead, core.ScopeRunsWrite}, RequestID: core.NewID(core.PrefixRequest, d.d.Clock.Now())}
	if by.OnBehalfOf != nil {
		p.OnBehalfOf = *by.OnBehalfOf
	}
	_, err = d.Call(ctx, p, Request{Tool: row.OriginTool, Args: json.RawMessage(row.OriginArgs), RunID: runID, background: true})
	return err
}
