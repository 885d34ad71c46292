package main

import (
	"context"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func TestConforms(t *testing.T) { sdktest.Conform(t, Plugin()) }

// notes stands in for the connector, whose own example has its own tests.
func notes() sdk.Plugin {
	return sdk.Define([]byte(`{
		"name": "notes", "kind": "connector", "version": "1.0.0", "title": "Notes", "description": "Notes.", "protocol": 1,
		"connector": {"provider": "notes", "capability": "write"},
		"needs": {"endpoints": [{"id": "notes.add", "class": "write", "method": "POST", "host": "$connection", "path": "/notes"}]},
		"tools": [{"name": "notes_add", "title": "Add", "description": "Compiles.", "effect": "write", "kind": "note.add",
			"inputSchema": {"type": "object", "additionalProperties": false, "required": ["title"], "properties": {"title": {"type": "string"}}},
			"outputSchema": {"type": "object"}}]}`),
		sdk.Handlers{Compile: map[string]func(context.Context, *sdk.Call) (*effect.Sealed, error){
			"notes_add": func(_ context.Context, c *sdk.Call) (*effect.Sealed, error) {
				return &effect.Sealed{Kind: "note.add", Target: effect.Target{AccountID: "notes", Label: "notes"},
					Steps: []effect.Step{{Endpoint: "notes.add", HTTP: &effect.HTTPStep{Body: c.Input}}}}, nil
			},
		}})
}

func TestAnnounceStagesOneNote(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithPlugin(notes()), sdktest.WithTool("demo_draft_headline", func(any) any {
		return map[string]any{"headline": "It is faster", "evidenceIds": []string{"ev_1"}}
	}))
	r := h.Call("demo_announce", map[string]any{"goal": "It is faster"})
	var out struct {
		RunID, ReviewURL, Headline, UserMessage string
		Actions                                 []string
	}
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	staged := r.Proposals()
	if len(staged) != 1 || staged[0].Proposed.ID != out.Actions[0] || string(staged[0].Sealed.Steps[0].HTTP.Body) != `{"title":"It is faster"}` {
		t.Fatalf("staged %+v", staged)
	}
	if out.RunID != sdktest.RunID || len(r.Progress) != 2 || len(h.Updates()) != 1 {
		t.Fatalf("run %q, progress %v, updates %v", out.RunID, r.Progress, h.Updates())
	}
}

func TestTheSkillsFailureReachesTheCaller(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithTool("demo_draft_headline", func(any) any {
		return sdk.Fail("insufficient_evidence", "nothing to say")
	}))
	if r := h.Call("demo_announce", map[string]any{"goal": "x"}); r.Failure == nil || r.Failure.Code != "insufficient_evidence" {
		t.Fatalf("failure = %v", r.Failure)
	}
}
