// Command operator-go is a complete operator: from a goal it calls a skill for a draft
// and stages the write tool of a connector. Nothing leaves before a person approved.
package main

import (
	"context"
	_ "embed"

	"github.com/sallyport-dev/sallyport/sdk"
)

//go:embed plugin.json
var manifest []byte

func main() { sdk.Serve(Plugin()) }

// Plugin is the operator.
func Plugin() sdk.Plugin {
	return sdk.Define(manifest, sdk.Handlers{
		Run: map[string]func(context.Context, *sdk.Call) (any, error){"demo_announce": announce},
	})
}

func announce(ctx context.Context, c *sdk.Call) (any, error) {
	in := struct {
		Goal    string `json:"goal"`
		Product string `json:"product"`
	}{Product: "Our product"}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	if err := c.Host.UpdateRun(ctx, sdk.RunUpdate{Intent: "announce", Confidence: 1, Phase: "drafting", Skills: []string{"demo_draft_headline"}}); err != nil {
		return nil, err
	}
	c.Progress(1, 2, "drafting")
	var draft struct {
		Headline    string   `json:"headline"`
		EvidenceIDs []string `json:"evidenceIds"`
	}
	if err := c.Host.CallTool(ctx, "demo_draft_headline", map[string]any{"product": in.Product, "facts": []string{in.Goal}}, &draft); err != nil {
		return nil, err
	}
	c.Progress(2, 2, "staging the note")
	action, err := c.Host.Propose(ctx, sdk.Proposal{
		Tool: "notes_add", Channel: "notes", EvidenceIDs: draft.EvidenceIDs,
		Input: map[string]any{"title": draft.Headline},
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"runId": c.RunID, "reviewUrl": c.ReviewURL, "headline": draft.Headline, "actions": []string{action.ID},
		"userMessage": "One note waits for your approval: " + c.ReviewURL,
	}, nil
}
