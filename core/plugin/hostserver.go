package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"google.golang.org/grpc"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// hostServer answers one process. Who asks is known by the connection; for what call, by
// the ticket; what may be asked, by the manifest that was admitted.
type hostServer struct {
	pluginpb.UnimplementedHostServer
	plugin   *managed
	desk     *desk
	services Services
}

// needs is what the plugin declared and was allowed.
func (h *hostServer) needs() schemas.Needs {
	h.plugin.mu.Lock()
	defer h.plugin.mu.Unlock()
	if h.plugin.admitted == nil {
		return schemas.Needs{}
	}
	return h.plugin.admitted.manifest.Needs
}

// ask runs do under the ticket of a request. Errors become failures that the plugin can
// read; panics are ours and end in one, too.
func (h *hostServer) ask(ctx context.Context, ticketID string, do func(ctx context.Context, t *ticket) error) (f *pluginpb.Failure) {
	t, ctx, done, err := h.desk.use(ctx, ticketID)
	if err != nil {
		return &pluginpb.Failure{Code: "call_ended", Message: "The call this request belongs to is over, or the ticket is not known."}
	}
	defer done()
	defer func() {
		if v := recover(); v != nil {
			h.plugin.log.Error("host service panicked", "panic", v, "call", t.scope.CallID)
			f = &pluginpb.Failure{Code: "internal", Message: "The host failed on its side."}
		}
	}()
	if err := do(ctx, t); err != nil {
		if core.AsError(err).Kind == core.KindInternal && !errors.As(err, new(*tool.Failure)) && ctx.Err() == nil {
			h.plugin.log.Error("host service failed", "call", t.scope.CallID, "error", err)
		}
		return wire(tool.FailureOf(err))
	}
	return nil
}

func wire(f *tool.Failure) *pluginpb.Failure {
	out := &pluginpb.Failure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, WhatWouldHelp: f.WhatWouldHelp}
	for _, field := range f.Fields {
		out.Fields = append(out.Fields, &pluginpb.FieldError{Pointer: field.Pointer, Message: field.Message})
	}
	return out
}

func (h *hostServer) refuse(format string, args ...any) error {
	return core.Errf(core.KindForbidden, "not_allowed", h.plugin.entry.Name+" "+format, args...)
}

func inRun(t *ticket) error {
	if t.scope.RunID == "" {
		return core.Errf(core.KindInvalid, "no_run", "The call belongs to no run.")
	}
	return nil
}

func (h *hostServer) CallTool(ctx context.Context, r *pluginpb.CallToolRequest) (*pluginpb.CallToolResponse, error) {
	out := &pluginpb.CallToolResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) (err error) {
		if !pluginpb.Allows(h.needs().Tools, r.GetTool()) {
			return h.refuse("does not name the tool %s under needs.tools.", clip(escape(r.GetTool()), 100))
		}
		out.Result, err = h.services.Tools.CallNested(ctx, t.scope, r.GetTool(), r.GetInput())
		return err
	})
	return out, nil
}

func (h *hostServer) Complete(ctx context.Context, r *pluginpb.CompleteRequest) (*pluginpb.CompleteResponse, error) {
	out := &pluginpb.CompleteResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) (err error) {
		if !isTrue(h.needs().Model) {
			return h.refuse("does not name a model under needs.")
		}
		if h.services.Model == nil {
			return &tool.Failure{Code: "model_unavailable", Message: "No language model is configured for this workspace."}
		}
		out.Completion, err = h.services.Model.Complete(ctx, t.scope.WorkspaceID(), r.GetRequest())
		return err
	})
	return out, nil
}

func (h *hostServer) Recall(ctx context.Context, r *pluginpb.RecallRequest) (*pluginpb.RecallResponse, error) {
	out := &pluginpb.RecallResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		if !slices.Contains(h.needs().Memory, schemas.ManifestNeedsMemoryElemRead) {
			return h.refuse("does not need to read memory.")
		}
		value, err := h.services.Memory.Get(ctx, t.scope.WorkspaceID(), r.GetKey())
		if core.IsKind(err, core.KindNotFound) {
			return nil
		}
		out.Found, out.Value = err == nil, value
		return err
	})
	return out, nil
}

func (h *hostServer) Remember(ctx context.Context, r *pluginpb.RememberRequest) (*pluginpb.RememberResponse, error) {
	return &pluginpb.RememberResponse{Failure: h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		if !slices.Contains(h.needs().Memory, schemas.ManifestNeedsMemoryElemWrite) {
			return h.refuse("does not need to write memory.")
		}
		return h.services.Memory.Put(ctx, t.scope.WorkspaceID(), r.GetKey(), r.GetValue(), t.scope.Tool)
	})}, nil
}

func (h *hostServer) Propose(ctx context.Context, r *pluginpb.ProposeRequest) (*pluginpb.ProposeResponse, error) {
	out := &pluginpb.ProposeResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		var in struct {
			Tool        string
			Input       json.RawMessage
			Channel     string
			AssetRefs   []core.AssetRef
			EvidenceIDs []string
			DependsOn   []string
		}
		if err := json.Unmarshal(r.GetProposal(), &in); err != nil {
			return core.Errf(core.KindInvalid, "invalid_proposal", "The proposal cannot be read.")
		}
		if !pluginpb.Allows(h.needs().Propose, in.Tool) {
			return h.refuse("does not name the write tool %s under needs.propose.", clip(escape(in.Tool), 100))
		}
		a, err := h.services.Tools.Propose(ctx, t.scope, tool.Proposal(in))
		if err != nil {
			return err
		}
		out.Action, err = json.Marshal(proposedOf(a))
		return err
	})
	return out, nil
}

// proposedOf is the action as authors see it.
func proposedOf(a *core.Action) any {
	return map[string]any{
		"id": a.ID, "status": a.Status, "kind": a.Kind, "tool": a.Tool, "connector": a.Connector, "channel": a.Channel, "title": a.Title,
		"executor": a.Executor, "digest": a.Digest, "revision": a.Revision, "reversibility": a.Reversibility,
		"contentSha256": a.ContentSha256, "reviewUrl": a.ReviewURL, "expiresAt": a.ExpiresAt, "action": a,
	}
}

func (h *hostServer) Connections(ctx context.Context, r *pluginpb.ConnectionsRequest) (*pluginpb.ConnectionsResponse, error) {
	out := &pluginpb.ConnectionsResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		list, err := h.services.Connectors.Connections(ctx, t.scope.WorkspaceID())
		if err != nil {
			return err
		}
		if own := h.provider(); own != "" { // a connector sees its own connections only
			list = slices.DeleteFunc(list, func(p connector.Public) bool { return p.Provider != own })
		}
		if list == nil {
			list = []connector.Public{}
		}
		out.Connections, err = json.Marshal(list)
		return err
	})
	return out, nil
}

// provider is the provider of a connector plugin; empty for other kinds.
func (h *hostServer) provider() string {
	h.plugin.mu.Lock()
	defer h.plugin.mu.Unlock()
	if h.plugin.admitted == nil || h.plugin.admitted.manifest.Connector == nil {
		return ""
	}
	return h.plugin.admitted.manifest.Connector.Provider
}

func (h *hostServer) UpdateRun(ctx context.Context, r *pluginpb.UpdateRunRequest) (*pluginpb.UpdateRunResponse, error) {
	return &pluginpb.UpdateRunResponse{Failure: h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		if err := inRun(t); err != nil {
			return err
		}
		var in struct {
			Intent     string
			Confidence float64
			Skills     []string
			Phase      core.RunPhase
			Goal       string
			Next       *core.NextCall
		}
		if err := json.Unmarshal(r.GetUpdate(), &in); err != nil {
			return core.Errf(core.KindInvalid, "invalid_update", "The update of the run cannot be read.")
		}
		ws, id := t.scope.WorkspaceID(), t.scope.RunID
		if err := h.services.Runs.Describe(ctx, ws, id, run.Update{Intent: in.Intent, Confidence: in.Confidence, Skills: in.Skills, Goal: in.Goal, Next: in.Next}); err != nil {
			return err
		}
		switch {
		case in.Phase == "" || !t.scope.Drafting: // a run that others drafted keeps its phase
			return nil
		case in.Phase != core.PhaseGathering && in.Phase != core.PhaseDrafting:
			return core.Errf(core.KindInvalid, "invalid_phase", "A plugin sets the phase gathering or drafting.")
		}
		return h.services.Runs.SetPhase(ctx, ws, id, in.Phase, "")
	})}, nil
}

func (h *hostServer) ReadDataset(r *pluginpb.ReadDatasetRequest, stream grpc.ServerStreamingServer[pluginpb.ReadDatasetResponse]) error {
	failure := h.ask(stream.Context(), r.GetTicket(), func(ctx context.Context, t *ticket) error {
		if !isTrue(h.needs().Datasets) {
			return h.refuse("does not need datasets.")
		}
		if h.services.Datasets == nil {
			return core.Errf(core.KindNotFound, "not_found", "There is no dataset %q.", clip(escape(r.GetDatasetId()), 100))
		}
		return h.services.Datasets.Rows(ctx, t.scope.WorkspaceID(), r.GetDatasetId(), func(rows []json.RawMessage) error {
			raw, err := json.Marshal(rows)
			if err != nil {
				return err
			}
			return stream.Send(&pluginpb.ReadDatasetResponse{Rows: raw})
		})
	})
	if failure == nil {
		return nil
	}
	return stream.Send(&pluginpb.ReadDatasetResponse{Failure: failure})
}
