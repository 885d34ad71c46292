package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/schemas"
)

// hostFunc answers one of core's own tools.
type hostFunc func(ctx context.Context, d *Dispatcher, p core.Principal, args json.RawMessage) (any, error)

type hostTool struct {
	doc   schemas.ToolDocument
	scope string // empty: the services behind it decide
	run   hostFunc
}

// hostTools lists core's own tools. Their documents are part of this repository.
var hostTools = sync.OnceValue(func() []hostTool {
	read := func(name string, run hostFunc) hostTool {
		return hostTool{schemas.MustTool(name), core.ScopeRunsRead, run}
	}
	return []hostTool{
		{schemas.MustTool("mkt_create_run"), core.ScopeRunsWrite, createRun},
		read("mkt_get_run", getRun),
		read("mkt_list_runs", listRuns),
		read("mkt_list_assets", listAssets),
		read("mkt_get_asset", getAsset),
		read("mkt_list_actions", listActions),
		read("mkt_get_action", getAction),
		{schemas.MustTool("mkt_approve_action"), "", approve},
		{schemas.MustTool("mkt_approve_run"), "", approve},
		{schemas.MustTool("mkt_reject_run"), "", reject},
		read("mkt_list_skills", listSkills),
		read("platform_list_operators", listOperators),
	}
})

// callHost answers one of core's own tools. What changes something is audited by the
// service that does it.
func (d *Dispatcher) callHost(ctx context.Context, e *Entry, p core.Principal, r Request) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout(e))
	defer cancel()
	raw, err := d.answer(ctx, e, p, r.Args)
	if err != nil {
		return nil, core.AsError(err)
	}
	return resultOf(raw, &Scope{}), nil
}

func (d *Dispatcher) answer(ctx context.Context, e *Entry, p core.Principal, args json.RawMessage) (json.RawMessage, error) {
	out, err := e.host(ctx, d, p, args)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("answer of %s: %w", e.Doc.Name, err)
	}
	if err := e.output.Validate(raw); err != nil {
		return nil, fmt.Errorf("answer of %s does not fit its schema: %w", e.Doc.Name, err)
	}
	return raw, nil
}

// args are the arguments of every host tool; each reads its own.
type hostArgs struct {
	Goal, ProjectID, WorkspaceID   string
	RunID, ActionID, AssetID       string
	ActionIDs                      []string
	ExpectedDigest, Reason, Status string
	Limit                          int
	Cursor                         string
	Since                          time.Time
}

func read(raw json.RawMessage) (a hostArgs, err error) {
	err = json.Unmarshal(raw, &a)
	return a, err
}

func (a hostArgs) query() core.Query {
	return core.Query{Limit: a.Limit, Cursor: a.Cursor, RunID: a.RunID, Status: a.Status, Since: a.Since}
}

func createRun(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	made, err := d.CreateRun(ctx, p, run.Create{Goal: a.Goal, WorkspaceID: a.WorkspaceID, ProjectID: a.ProjectID})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"run": made, "reviewUrl": made.ReviewURL,
		"userMessage": "The run is open and works in the background. Drafts and proposed actions will wait for review at " + made.ReviewURL,
		"next":        map[string]any{"tool": "mkt_get_run", "arguments": map[string]any{"runId": made.ID}, "reason": "Read the run until its status is awaiting_approval."},
	}, nil
}

func getRun(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	if err := d.deliver(ctx, p, a.RunID); err != nil {
		return nil, err
	}
	found, err := d.d.Runs.Get(ctx, p, a.RunID)
	return map[string]any{"run": found}, err
}

// deliver remembers that a run is shown to somebody who may decide about it. It comes
// before the reading: what changes in between makes the decision stale, never unseen.
func (d *Dispatcher) deliver(ctx context.Context, p core.Principal, runID string) error {
	if runID == "" || !p.Can(core.ScopeActionsApprove) {
		return nil
	}
	_, err := d.d.Approval.Deliver(ctx, p, runID)
	return err
}

func listRuns(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	page, err := d.d.Runs.List(ctx, p, a.query())
	return paged("runs", page, err)
}

func paged[T any](name string, page core.Page[T], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if page.Items == nil {
		page.Items = []T{}
	}
	out := map[string]any{name: page.Items}
	if page.NextCursor != "" {
		out["nextCursor"] = page.NextCursor
	}
	return out, nil
}

func listAssets(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	page, err := d.d.Runs.Assets(ctx, p, a.query())
	return paged("assets", page, err)
}

func getAsset(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	found, err := d.d.Runs.Asset(ctx, p, a.AssetID)
	return map[string]any{"asset": found}, err
}

func listActions(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	page, err := d.d.Approval.List(ctx, p, a.query())
	whole := page.NextCursor == "" && a.Cursor == "" && a.Status == "" && a.Since.IsZero()
	if err == nil && whole && a.RunID != "" && p.Can(core.ScopeActionsApprove) { // all of the run is shown
		if err := d.deliver(ctx, p, a.RunID); err != nil {
			return nil, err
		}
		page, err = d.d.Approval.List(ctx, p, a.query())
	}
	return paged("actions", page, err)
}

func getAction(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	if p.Can(core.ScopeActionsApprove) {
		if err := d.d.Approval.DeliverAction(ctx, p, a.ActionID); err != nil {
			return nil, err
		}
	}
	found, err := d.d.Approval.Get(ctx, p, a.ActionID)
	return map[string]any{"action": found}, err
}

func (a hostArgs) decide() approval.Decide {
	return approval.Decide{RunID: a.RunID, ActionID: a.ActionID, ActionIDs: a.ActionIDs, ExpectedDigest: a.ExpectedDigest, Reason: a.Reason, Channel: string(core.DecisionChannelMcp)}
}

func approve(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	out, err := d.d.Approval.Approve(ctx, p, a.decide())
	if err != nil {
		return nil, err
	}
	return decided(out, "approved"), nil
}

func reject(ctx context.Context, d *Dispatcher, p core.Principal, raw json.RawMessage) (any, error) {
	a, err := read(raw)
	if err != nil {
		return nil, err
	}
	out, err := d.d.Approval.Reject(ctx, p, a.decide())
	if err != nil {
		return nil, err
	}
	return decided(out, "rejected"), nil
}

// decided is the answer of the deciding tools.
func decided(o *approval.Outcome, verb string) any {
	left := make([]map[string]string, 0, len(o.LeftOut))
	for _, l := range o.LeftOut {
		left = append(left, map[string]string{"actionId": l.ActionID, "reason": l.Reason})
	}
	actions := o.Actions
	if actions == nil {
		actions = []core.Action{}
	}
	message := fmt.Sprintf("%d of %d actions %s.", len(actions), len(actions)+len(left), verb)
	if len(left) > 0 {
		message += " The others are listed under leftOut."
	}
	return map[string]any{
		"run": o.Run, "actions": actions, "leftOut": left, "userMessage": message,
		"receipt": map[string]any{"treeSize": o.Receipt.TreeSize, "root": o.Receipt.Root},
	}
}

func listSkills(_ context.Context, d *Dispatcher, _ core.Principal, _ json.RawMessage) (any, error) {
	skills := d.d.Registry.Snapshot().Skills()
	if skills == nil {
		skills = []core.Skill{}
	}
	return map[string]any{"skills": skills}, nil
}

func listOperators(_ context.Context, d *Dispatcher, _ core.Principal, _ json.RawMessage) (any, error) {
	return map[string]any{"operators": d.d.Registry.Snapshot().Operators()}, nil
}
