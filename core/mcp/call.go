package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/mcp/router"
	"github.com/sallyport-dev/sallyport/core/tool"
)

// callTool answers tools/call. What the tool itself refuses comes back as a result with
// isError, which a model can read and act on; only an unknown tool is a protocol error.
func (s *surface) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	p := s.principal(req.Extra)
	args := req.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	revision := req.ProtocolVersion()
	result, err := s.deps.Dispatcher.Call(ctx, p, tool.Request{
		Tool:     req.Params.Name,
		Args:     args,
		Era:      revision,
		Progress: s.progress(ctx, req),
	})
	if err != nil {
		return s.failed(err, p)
	}
	return answered(result, revision), nil
}

// failed turns an error into the result that carries its problem document, as text for
// models and as structured content for programs. Clients check structured content against
// the output schema only where isError is not set.
func (s *surface) failed(err error, p core.Principal) (*mcp.CallToolResult, error) {
	e := core.AsError(err)
	if e.Code == tool.CodeUnknownTool {
		return nil, s.wireError(jsonrpc.CodeInvalidParams, e, p.RequestID)
	}
	if e.Kind == core.KindInternal {
		s.deps.Log.Error("tool call failed", "request", p.RequestID, "error", err)
	}
	body, err := json.Marshal(problemOf(e, s.deps.BaseURL, p.RequestID))
	if err != nil {
		return nil, err
	}
	content := []mcp.Content{&mcp.TextContent{Text: string(body)}}
	if e.ReviewURL != "" {
		content = append([]mcp.Content{&mcp.TextContent{Text: e.Detail + "\n\n" + e.ReviewURL}}, content...)
	}
	return &mcp.CallToolResult{IsError: true, Content: content, StructuredContent: json.RawMessage(body)}, nil
}

// answered is the result of a call: what a person should read first, then the same JSON
// as text and as structured content, then a link to the run. The oldest revisions have
// no such link; they ignore the structured content.
func answered(r *tool.Result, revision string) *mcp.CallToolResult {
	out := &mcp.CallToolResult{StructuredContent: r.Structured}
	if len(r.Lead) > 0 {
		out.Content = append(out.Content, &mcp.TextContent{Text: strings.Join(r.Lead, "\n\n")})
	}
	out.Content = append(out.Content, &mcp.TextContent{Text: string(r.Structured)})
	if r.RunID != "" && revision >= router.Revision20250618 {
		out.Content = append(out.Content, &mcp.ResourceLink{
			URI:         "run://" + r.RunID,
			Name:        r.RunID,
			Title:       "The run",
			Description: "Evidence, drafts and actions that wait for a person.",
			MIMEType:    "application/json",
		})
	}
	return out
}

// progressInterval is the shortest time between two progress notifications of a call.
const progressInterval = 100 * time.Millisecond

// progress passes a tool's progress to a client that asked for it; nil for others. The
// protocol wants the number to rise, so that what does not is dropped.
func (s *surface) progress(ctx context.Context, req *mcp.CallToolRequest) func(done, total float64, message string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	var (
		mu   sync.Mutex
		sent bool
		last float64
		at   time.Time
	)
	return func(done, total float64, message string) {
		mu.Lock()
		defer mu.Unlock()
		now := s.deps.Clock.Now()
		final := total > 0 && done >= total
		if sent && (done <= last || (!final && now.Sub(at) < progressInterval)) {
			return
		}
		sent, last, at = true, done, now
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: message})
		if err != nil { // the client is gone, or cannot be reached outside a stream
			s.deps.Log.Debug("progress not delivered", "tool", req.Params.Name, "error", err)
		}
	}
}
