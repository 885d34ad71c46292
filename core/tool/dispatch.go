package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/usage"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Deadlines of calls whose tool names none.
const (
	DefaultCallTimeout = 60 * time.Second
	compileTimeout     = 10 * time.Second
)

// Connections tells what a workspace has connected; core/connector holds them, and knows
// this package only through it.
type Connections interface {
	// Bind is the connection that an effect is bound to. It fails where there is none.
	Bind(ctx context.Context, workspaceID, provider, name string) (effect.Connection, error)
	// Describe is the public part as the connector's tools see it; nil where there is none.
	Describe(ctx context.Context, workspaceID, provider, name string) (json.RawMessage, error)
}

// Deps is what the dispatcher works with.
type Deps struct {
	Registry    *Registry
	DB          *store.DB
	Runs        *run.Service
	Approval    *approval.Service
	Audit       *audit.Log
	Meter       *usage.Meter
	Connections Connections
	Clock       core.Clock
	Log         *slog.Logger
	// CallTimeout is for tools that name none; DefaultCallTimeout when 0.
	CallTimeout time.Duration
	// Wake tells the background workers that a run waits for them; may be nil, they look
	// by themselves from time to time.
	Wake func(ctx context.Context, workspaceID, runID string)
}

// Dispatcher runs tools. It is the only way to them for every surface.
type Dispatcher struct{ d Deps }

// New makes a dispatcher.
func New(d Deps) *Dispatcher {
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.CallTimeout == 0 {
		d.CallTimeout = DefaultCallTimeout
	}
	return &Dispatcher{d}
}

// Request is one call from outside.
type Request struct {
	Tool string
	Args json.RawMessage
	// RunID puts the call into a run; otherwise a field runId of the arguments does, or a
	// draft tool opens a run of its own.
	RunID string
	// Era is the MCP version of the caller, empty for others.
	Era string
	// Answers answer what an earlier call asked for (code input_required).
	Answers  json.RawMessage
	Progress func(done, total float64, message string)

	background bool // the call answers the goal of its run
}

// Result is what a tool answered.
type Result struct {
	// Structured fits the output schema of the tool.
	Structured json.RawMessage
	// Lead are texts for people and models that go before the JSON.
	Lead      []string
	RunID     string
	ReviewURL string
}

// Call runs a tool for a principal: looks it up, refuses what may not be called, checks
// scope and input, opens the run, calls, checks the output, meters and audits. The
// error is a *core.Error.
func (d *Dispatcher) Call(ctx context.Context, p core.Principal, r Request) (*Result, error) {
	e, err := d.admit(p, r)
	if err != nil {
		d.refused(ctx, p, r.Tool, err)
		return nil, err
	}
	if e.IsHost() {
		return d.callHost(ctx, e, p, r)
	}
	if credits(e, false) > 0 {
		if err := d.d.Meter.Allow(ctx, store.WorkspaceID(p.WorkspaceID)); err != nil {
			return nil, core.AsError(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout(e))
	defer cancel()
	scope, err := d.openScope(ctx, e, p, r)
	if err != nil {
		return nil, core.AsError(err)
	}
	started := d.d.Clock.Now()
	out, counted, err := d.run(ctx, e, scope, r)
	err = d.closeScope(ctx, scope, err)
	d.note(ctx, e, scope, started, err)
	<-counted // begun before, so that both wait for the disk at the same time
	if err != nil {
		return nil, d.outward(ctx, err, scope)
	}
	return resultOf(out, scope), nil
}

// admit finds the tool and decides whether the principal may call it with the arguments.
func (d *Dispatcher) admit(p core.Principal, r Request) (*Entry, error) {
	e, ok := d.d.Registry.Snapshot().Lookup(r.Tool)
	if !ok {
		return nil, core.Errf(core.KindNotFound, CodeUnknownTool, "There is no tool %q. tools/list names those there are.", clip(r.Tool))
	}
	if e.Doc.Effect == schemas.EffectWrite {
		return nil, core.Errf(core.KindForbidden, CodeWriteTool, "%s is a write tool: it cannot be called, only proposed by an operator and approved by a person.", r.Tool)
	}
	scope := e.scope
	if scope == "" { // the tool decides itself, but never for nobody
		scope = core.ScopeRunsRead
	}
	if err := p.Require(scope); err != nil {
		return nil, err
	}
	if err := checkInput(e, r.Args); err != nil {
		return nil, err
	}
	return e, checkWorkspace(p, r.Args)
}

// checkInput validates arguments; the error points at each field.
func checkInput(e *Entry, args json.RawMessage) error {
	if err := e.input.Validate(args); err != nil {
		out := core.Errf(core.KindInvalid, CodeInvalidInput, "The arguments of %s do not fit its input schema.", e.Doc.Name)
		if v, ok := errors.AsType[*schemas.ValidationError](err); ok {
			for _, issue := range v.Issues {
				out.Fields = append(out.Fields, core.FieldError{Pointer: issue.Pointer, Message: issue.Message})
			}
		}
		return out
	}
	return nil
}

// checkWorkspace holds a workspace named in the arguments against the credential's.
func checkWorkspace(p core.Principal, args json.RawMessage) error {
	var named struct{ WorkspaceID string }
	if json.Unmarshal(args, &named) == nil && named.WorkspaceID != "" && named.WorkspaceID != p.WorkspaceID {
		return core.Errf(core.KindNotFound, "not_found", "There is no workspace %s here.", clip(named.WorkspaceID))
	}
	return nil
}

func (d *Dispatcher) timeout(e *Entry) time.Duration {
	if e.Doc.TimeoutSeconds != nil {
		return time.Duration(*e.Doc.TimeoutSeconds) * time.Second
	}
	return d.d.CallTimeout
}

// run calls a tool of a plugin inside its scope and checks what comes back. counted is
// closed when the call is metered.
func (d *Dispatcher) run(ctx context.Context, e *Entry, scope *Scope, r Request) (result json.RawMessage, counted <-chan struct{}, err error) {
	in := CallIn{Tool: e.Doc.Name, Input: r.Args, Answers: r.Answers, Era: r.Era, Scope: scope, Progress: r.Progress}
	if c := e.owner.Manifest.Connector; c != nil {
		described, err := d.d.Connections.Describe(ctx, scope.WorkspaceID(), c.Provider, connectionName(r.Args))
		if err != nil {
			return nil, nothing, err
		}
		in.Connection = described
	}
	out, err := e.owner.Caller.Call(ctx, in)
	failed := err != nil
	if err == nil {
		err = checkOutput(e, out)
	}
	return out.Result, d.count(ctx, e, scope, failed), err
}

// nothing is for calls that are not metered.
var nothing = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// count meters a call beside what is done next.
func (d *Dispatcher) count(ctx context.Context, e *Entry, scope *Scope, failed bool) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.d.Meter.Record(context.WithoutCancel(ctx), store.WorkspaceID(scope.WorkspaceID()), e.Doc.Name, credits(e, failed), failed); err != nil {
			d.d.Log.Warn("call not metered", "tool", e.Doc.Name, "error", err)
		}
	}()
	return done
}

// credits is the price of a call: one for each draft of a skill or operator that worked.
func credits(e *Entry, failed bool) float64 {
	if failed || e.Kind == KindConnector || e.Doc.Effect != schemas.EffectDraft {
		return 0
	}
	return 1
}

// checkOutput holds an answer against the output schema.
func checkOutput(e *Entry, out CallOut) error {
	switch {
	case out.Ask != nil:
		err := core.Errf(core.KindInvalid, CodeInputRequired, "%s needs answers before it goes on: %s", e.Doc.Name, clip(string(out.Ask)))
		return err
	case out.Result == nil:
		return Unavailable(e.Plugin, "it answered with something that a "+string(e.Doc.Effect)+" tool cannot answer")
	}
	if err := e.output.Validate(out.Result); err != nil {
		bad := Unavailable(e.Plugin, "its answer does not fit the output schema of "+e.Doc.Name)
		bad.Err = err
		return bad
	}
	return nil
}

// CallNested runs a tool on behalf of a call that is under way: a draft or read tool of
// any plugin, or a host tool that only reads. What the nested plugin failed with is a
// *Failure; everything else is a *core.Error.
func (d *Dispatcher) CallNested(ctx context.Context, parent *Scope, name string, args json.RawMessage) (json.RawMessage, error) {
	p := parent.Principal
	r := Request{Tool: name, Args: args, RunID: parent.RunID}
	e, err := d.admit(p, r)
	if err != nil {
		return nil, err
	}
	if e.IsHost() {
		if e.Doc.Effect != schemas.EffectRead {
			return nil, core.Errf(core.KindForbidden, "not_allowed", "A plugin cannot call %s: it decides or opens runs.", name)
		}
		return d.answer(ctx, e, readsOnly(p), args)
	}
	if parent.Depth >= MaxDepth {
		return nil, core.Errf(core.KindInvalid, "too_deep", "Calls nest deeper than %d.", MaxDepth)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout(e))
	defer cancel()
	out, counted, err := d.run(ctx, e, parent.nest(e, core.NewID("call", d.d.Clock.Now())), r)
	<-counted
	return out, err
}

// readsOnly is the principal without the right to decide. What a plugin reads was shown
// to nobody, so it must not count as seen by the person for whom the plugin works.
func readsOnly(p core.Principal) core.Principal {
	p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(scope string) bool { return scope == core.ScopeActionsApprove || scope == core.ScopeAdmin })
	return p
}

// note audits a call from outside and its outcome.
func (d *Dispatcher) note(ctx context.Context, e *Entry, s *Scope, started time.Time, err error) {
	entry := audit.By(s.Principal, "tool.called", e.Doc.Name)
	entry.Details = map[string]any{
		"call": s.CallID, "plugin": e.Plugin, "effect": string(e.Doc.Effect), "runId": s.RunID,
		"milliseconds": d.d.Clock.Now().Sub(started).Milliseconds(),
	}
	if err != nil {
		entry.Outcome = audit.Failed
		entry.Details["code"] = FailureOf(err).Code
		d.d.Log.Info("tool call failed", "tool", e.Doc.Name, "call", s.CallID, "request", s.Principal.RequestID, "error", err)
	}
	d.append(ctx, entry)
}

// refused audits a call that was not let through; a caller without credential leaves no
// entry, as anyone could fill the log so.
func (d *Dispatcher) refused(ctx context.Context, p core.Principal, name string, err error) {
	if p.WorkspaceID == "" || !core.IsKind(err, core.KindForbidden) {
		return
	}
	entry := audit.By(p, "tool.refused", clip(name))
	entry.Outcome, entry.Details = audit.Refused, map[string]any{"code": core.AsError(err).Code}
	d.append(ctx, entry)
}

func (d *Dispatcher) append(ctx context.Context, entry audit.Entry) {
	if err := d.d.Audit.AppendNow(context.WithoutCancel(ctx), entry); err != nil {
		d.d.Log.Error("call not audited", "action", entry.Action, "target", entry.Target, "error", err)
	}
}

// outward makes the error that surfaces show; a run that was opened is named in it.
func (d *Dispatcher) outward(ctx context.Context, err error, s *Scope) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if errors.Is(err, context.DeadlineExceeded) {
			return core.Errf(core.KindUnavailable, CodeTimeout, "The tool %s did not answer in time.", s.Tool)
		}
		return &core.Error{Kind: core.KindUnavailable, Code: "cancelled", Detail: fmt.Sprintf("The call of %s was cancelled by its caller.", s.Tool), Err: err}
	}
	e := errorOf(err, s.Tool)
	if e.ReviewURL == "" && s.Drafting {
		out := *e
		out.ReviewURL = s.ReviewURL
		return &out
	}
	return e
}

// clip keeps names that callers made up short in messages.
func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
