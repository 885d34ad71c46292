package mcp

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
)

// readers are the resources of the host: one template per noun.
func (s *surface) readers() []struct {
	template *mcp.ResourceTemplate
	read     func(ctx context.Context, p core.Principal, id string) (any, error)
} {
	type reader = struct {
		template *mcp.ResourceTemplate
		read     func(ctx context.Context, p core.Principal, id string) (any, error)
	}
	template := func(scheme, title, description string) *mcp.ResourceTemplate {
		return &mcp.ResourceTemplate{URITemplate: scheme + "://{id}", Name: scheme, Title: title, Description: description, MIMEType: "application/json"}
	}
	runs := s.deps.Runs
	return []reader{
		{template("run", "Run", "A goal, what answers it and where its approval stands."),
			func(ctx context.Context, p core.Principal, id string) (any, error) { return runs.Get(ctx, p, id) }},
		{template("asset", "Asset", "A draft of a run with its claims and checks."),
			func(ctx context.Context, p core.Principal, id string) (any, error) { return runs.Asset(ctx, p, id) }},
		{template("evidence", "Evidence", "One thing that was read or stated."),
			func(ctx context.Context, p core.Principal, id string) (any, error) { return runs.Evidence(ctx, p, id) }},
	}
}

// addResources registers the host's resources; they do not change with the registry.
func (s *surface) addResources() {
	for _, r := range s.readers() {
		s.server.AddResourceTemplate(r.template, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			p := s.principal(req.Extra)
			_, id, _ := strings.Cut(req.Params.URI, "://")
			v, err := r.read(ctx, p, id)
			if err != nil {
				return nil, s.unreadable(err, req.Params.URI, p)
			}
			return jsonContents(req.Params.URI, v)
		})
	}
}

// toolResource answers a resource of a manifest by its tool.
func (s *surface) toolResource(toolName, mimeType string) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		p := s.principal(req.Extra)
		result, err := s.deps.Dispatcher.Call(ctx, p, tool.Request{Tool: toolName, Args: json.RawMessage("{}"), Era: req.ProtocolVersion()})
		if err != nil {
			return nil, s.unreadable(err, req.Params.URI, p)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: mimeType, Text: string(result.Structured)}}}, nil
	}
}

// unreadable is the protocol's error for a resource that cannot be read. One of another
// workspace is not found, like one that never was.
func (s *surface) unreadable(err error, uri string, p core.Principal) error {
	e := core.AsError(err)
	if e.Kind == core.KindNotFound {
		return mcp.ResourceNotFoundError(uri)
	}
	if e.Kind == core.KindInternal {
		s.deps.Log.Error("resource not read", "uri", uri, "request", p.RequestID, "error", err)
		return s.wireError(jsonrpc.CodeInternalError, e, p.RequestID)
	}
	return s.wireError(jsonrpc.CodeInvalidParams, e, p.RequestID)
}

func jsonContents(uri string, v any) (*mcp.ReadResourceResult, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(b)}}}, nil
}
