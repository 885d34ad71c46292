package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// propose compiles a write tool of a plugin here and stages the action, as the real host
// does: nothing is sent, the action waits.
func (h *Host) propose(ctx context.Context, p sdk.Proposal) (*sdk.Proposed, error) {
	owner, doc, ok := h.find(p.Tool)
	if !ok {
		return nil, sdk.Fail("unknown_tool", "No tool is called %q; add its connector with WithPlugin.", p.Tool)
	}
	if doc.Effect != schemas.EffectWrite {
		return nil, sdk.Fail("not_a_write_tool", "%s is no write tool: call it instead.", p.Tool)
	}
	input, err := json.Marshal(p.Input)
	if err != nil {
		return nil, sdk.Fail("invalid_input", "The input of %s is not JSON: %v", p.Tool, err)
	}
	out := h.invoke(ctx, p.Tool, input, nil, 1, nil)
	if out.Failure != nil {
		return nil, out.Failure
	}
	if out.Sealed == nil {
		return nil, sdk.Fail("invalid_output", "%s compiled nothing.", p.Tool)
	}
	if err := checkSealed(owner.Manifest, *out.Sealed); err != nil {
		return nil, sdk.Fail("invalid_effect", "%s compiled an effect that core refuses: %v", p.Tool, err)
	}
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	id := fmt.Sprintf("act_01K%023d", h.state.actions)
	proposed := proposedOf(h, id, p, owner, doc, out.Sealed)
	h.state.proposals = append(h.state.proposals, Proposal{Proposal: p, Proposed: proposed, Sealed: out.Sealed})
	return &proposed, nil
}

func proposedOf(h *Host, id string, p sdk.Proposal, owner sdk.Plugin, doc schemas.ToolDocument, sealed *effect.Sealed) sdk.Proposed {
	executor, connector := "connector", owner.Manifest.Name
	if len(sealed.Steps) == 0 {
		executor, connector = "manual", ""
	}
	reversibility := "irreversible"
	if doc.Reversibility != nil {
		reversibility = string(*doc.Reversibility)
	}
	bytesOf, err := json.Marshal(sealed)
	if err != nil {
		bytesOf = fmt.Append(nil, sealed)
	}
	out := sdk.Proposed{
		ID: id, Status: "proposed", Kind: sealed.Kind, Tool: p.Tool, Connector: connector, Channel: p.Channel, Executor: executor,
		Title:  fmt.Sprintf("%s to %s", sealed.Kind, sealed.Target.Label),
		Digest: hashOf(id, WorkspaceID, string(bytesOf)), Revision: 1, Reversibility: reversibility, ContentSHA256: effect.ContentSHA256(*sealed),
		ReviewURL: ReviewURL, ExpiresAt: h.now.Add(actionTTL),
	}
	out.Action = actionResource(out, p, sealed, h)
	return out
}

// actionResource is the action as REST would show it.
func actionResource(a sdk.Proposed, p sdk.Proposal, sealed *effect.Sealed, h *Host) json.RawMessage {
	refs := p.AssetRefs
	if refs == nil {
		refs = []sdk.AssetRef{}
	}
	strings := func(list []string) []string { return append([]string{}, list...) }
	b, err := json.Marshal(map[string]any{
		"id": a.ID, "runId": h.runID, "workspaceId": WorkspaceID, "tool": a.Tool, "connector": a.Connector, "kind": a.Kind,
		"channel": a.Channel, "executor": a.Executor, "title": a.Title, "target": sealed.Target, "input": p.Input,
		"preview": map[string]any{}, "assetRefs": refs, "evidenceIds": strings(p.EvidenceIDs), "dependsOn": strings(p.DependsOn),
		"contentSha256": a.ContentSHA256, "reversibility": a.Reversibility,
		"cost":   map[string]any{"credits": 0, "micros": 0, "currency": "USD"},
		"status": a.Status, "statusReason": "Waits until drafting is done.", "revision": 1, "version": 1, "digest": a.Digest,
		"policy":    map[string]any{"proof": "P2", "needed": 1, "deadline": a.ExpiresAt},
		"decisions": []any{}, "reviewUrl": a.ReviewURL, "expiresAt": a.ExpiresAt, "createdAt": h.now, "updatedAt": h.now,
		"createdBy": map[string]any{"kind": "key", "id": "key_01K00000000000000000000000", "label": "sdktest"},
	})
	if err != nil {
		return nil
	}
	return b
}

// checkSealed repeats what core checks about a sealed effect against its manifest.
func checkSealed(m schemas.Manifest, s effect.Sealed) error {
	if err := s.Check(); err != nil {
		return err
	}
	for i, step := range s.Steps {
		at := slices.IndexFunc(m.Needs.Endpoints, func(e schemas.Endpoint) bool { return e.ID == step.Endpoint })
		if at < 0 {
			return fmt.Errorf("step %d names the endpoint %q, which the manifest does not have", i, step.Endpoint)
		}
		if e := m.Needs.Endpoints[at]; e.Class != schemas.ClassWrite {
			return fmt.Errorf("step %d uses the endpoint %s of class %s; a write needs class write", i, e.ID, e.Class)
		}
	}
	if len(s.Steps) > 0 && m.Connector == nil {
		return fmt.Errorf("only a connector may compile steps that core sends; %s can compile manual work", m.Name)
	}
	return nil
}
