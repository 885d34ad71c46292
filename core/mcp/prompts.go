package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// ownPrompts are the host's prompts; each is offered while its tool is.
var ownPrompts = []struct {
	tool   string
	prompt schemas.ManifestPrompt
}{
	{"platform_get_users_after_build", schemas.ManifestPrompt{
		Name:        "launch",
		Title:       new("Get users for what was just built"),
		Description: new("Prepares a launch for review. Publishes nothing."),
		Arguments: []schemas.PromptArgument{
			{Name: "whatChanged", Description: new("What was built or changed, in a sentence or two."), Required: new(true)},
			{Name: "targetCustomer", Description: new("Who it is for.")},
			{Name: "url", Description: new("Where it can be seen.")},
		},
		Text: new(`I just built this: {{whatChanged}}
For: {{targetCustomer}}
At: {{url}}

Gather recentCommits, changedFiles, routes and readme from the repository (node repo-context.mjs does it), then call platform_get_users_after_build with them and with whatChanged. Show me agentGuide.userMessage and reviewUrl, then wait: I decide on the review page. Do not post, send, submit or spend anything. When I have decided, call mkt_continue_launch_loop with the run id and tell me its single next action.`),
	}},
	{"mkt_prepare_weekly_report", schemas.ManifestPrompt{
		Name:        "weekly_report",
		Title:       new("Weekly report"),
		Description: new("What changed this week and three next actions, from connected sources. Changes nothing."),
		Arguments:   []schemas.PromptArgument{{Name: "focus", Description: new("What to look at most.")}},
		Text:        new(`Call mkt_prepare_weekly_report. Look most at: {{focus}}. Give me the figures that moved with their evidence, say what could not be read, and end with the three recommended next actions. Change nothing.`),
	}},
}

// promptsOf lists what a snapshot offers: the host's own prompts and those of manifests.
// On equal names the host's stays.
func promptsOf(snap *tool.Snapshot) []schemas.ManifestPrompt {
	var all []schemas.ManifestPrompt
	taken := map[string]bool{}
	for _, own := range ownPrompts {
		if _, ok := snap.Lookup(own.tool); ok {
			taken[own.prompt.Name] = true
			all = append(all, own.prompt)
		}
	}
	for _, m := range snap.Manifests() {
		for _, p := range m.Prompts {
			if !taken[p.Name] {
				taken[p.Name] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// addPrompt registers one prompt.
func (s *surface) addPrompt(p schemas.ManifestPrompt) {
	out := &mcp.Prompt{Name: p.Name, Title: value(p.Title), Description: cmp.Or(value(p.Description), value(p.Title), p.Name)}
	for _, a := range p.Arguments {
		out.Arguments = append(out.Arguments, &mcp.PromptArgument{Name: a.Name, Description: value(a.Description), Required: value(a.Required)})
	}
	s.server.AddPrompt(out, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return s.getPrompt(ctx, p, req)
	})
}

func (s *surface) getPrompt(ctx context.Context, p schemas.ManifestPrompt, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	who := s.principal(req.Extra)
	given := map[string]string{}
	known := map[string]bool{}
	for _, a := range p.Arguments {
		known[a.Name] = true
		v := strings.TrimSpace(req.Params.Arguments[a.Name])
		if v == "" && value(a.Required) {
			return nil, s.wireError(jsonrpc.CodeInvalidParams, core.Errf(core.KindInvalid, "missing_argument", "The prompt %s needs the argument %s.", p.Name, a.Name), who.RequestID)
		}
		given[a.Name] = v
	}
	for name := range req.Params.Arguments {
		if !known[name] {
			return nil, s.wireError(jsonrpc.CodeInvalidParams, core.Errf(core.KindInvalid, "unknown_argument", "The prompt %s has no argument %q.", p.Name, name), who.RequestID)
		}
	}
	text := fill(value(p.Text), given)
	if name := value(p.Tool); name != "" {
		args, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		result, err := s.deps.Dispatcher.Call(ctx, who, tool.Request{Tool: name, Args: args, Era: req.ProtocolVersion()})
		if err != nil {
			return nil, s.wireError(jsonrpc.CodeInvalidParams, core.AsError(err), who.RequestID)
		}
		text = promptText(result.Structured)
	}
	return &mcp.GetPromptResult{
		Description: value(p.Description),
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}},
	}, nil
}

// fill puts arguments into {{name}} places. A line whose only argument was not given is
// left out.
func fill(text string, args map[string]string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		keep := true
		for name, v := range args {
			place := "{{" + name + "}}"
			if strings.HasSuffix(line, ": "+place) && v == "" {
				keep = false
			}
			if v == "" {
				v = "(not given)"
			}
			line = strings.ReplaceAll(line, place, v)
		}
		if keep {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// promptText is the field text of a tool's answer, else the whole answer.
func promptText(structured json.RawMessage) string {
	var answer struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(structured, &answer) == nil && answer.Text != "" {
		return answer.Text
	}
	return string(structured)
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
