package sdktest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

var (
	resourceMu    sync.Mutex
	resourceCache = map[string]*schemas.Schema{}
)

// checkResource validates a value as a resource of the platform.
func checkResource(name string, value any) error {
	resourceMu.Lock()
	s, ok := resourceCache[name]
	resourceMu.Unlock()
	if !ok {
		var err error
		if s, err = schemas.Resource(name); err != nil {
			return err
		}
		resourceMu.Lock()
		resourceCache[name] = s
		resourceMu.Unlock()
	}
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Validate(b)
}

// evidenceResource is the item as it would be stored.
func evidenceResource(e sdk.Evidence) any {
	b, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		return nil
	}
	delete(out, "fetchId")
	out["id"], out["runId"], out["workspaceId"] = "ev_00000000000000000000", RunID, WorkspaceID
	out["digest"] = hashOf("")
	return out
}

// assetResource is the draft as it would be stored.
func assetResource(a sdk.Asset, content json.RawMessage) any {
	claims, checks := a.Claims, a.Checks
	if claims == nil {
		claims = []sdk.Claim{}
	}
	if checks == nil {
		checks = []sdk.Check{}
	}
	out := map[string]any{
		"id": "ast_01K00000000000000000000000", "runId": RunID, "workspaceId": WorkspaceID, "skill": a.Skill, "kind": a.Kind,
		"channel": a.Channel, "title": a.Title, "locale": a.Locale, "content": content, "claims": claims, "checks": checks,
		"status": "draft_unapproved", "revision": 1, "parentRevision": 0, "digest": hashOf(string(content)), "origin": a.Origin, "createdAt": Now,
	}
	if a.GenericityRisk != nil {
		out["genericityRisk"] = a.GenericityRisk
	}
	return out
}

// checkManifest says what is wrong with a plugin before any call.
func checkManifest(p sdk.Plugin) error {
	m := sdk.ManifestOf(p)
	meta, err := schemas.Meta("manifest")
	if err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Name, err)
	}
	if err := meta.Validate(b); err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Name, err)
	}
	seen := map[string]bool{}
	for _, t := range p.Tools {
		doc := t.Document
		if seen[doc.Name] {
			return fmt.Errorf("tool %s stands twice", doc.Name)
		}
		seen[doc.Name] = true
		if write := doc.Effect == schemas.EffectWrite; (t.Compile != nil) != write || (t.Run != nil) == write {
			return fmt.Errorf("tool %s has effect %s: set Compile for a write tool, Run for any other, and only that", doc.Name, doc.Effect)
		}
		for part, s := range map[string]schemas.Document{"input": doc.InputSchema, "output": doc.OutputSchema} {
			if s["type"] != "object" {
				return fmt.Errorf("tool %s: the %s schema must be of type object", doc.Name, part)
			}
			if _, err := schemas.Compile(doc.Name+"."+part, s.MustJSON()); err != nil {
				return fmt.Errorf("tool %s: %w", doc.Name, err)
			}
		}
	}
	if op := m.Operator; (op != nil) != (m.Kind == schemas.ManifestKindOperator) || op != nil && !seen[op.PrimaryTool] {
		return fmt.Errorf("manifest of %s: an operator, and only an operator, names one of its tools as operator.primaryTool", m.Name)
	}
	if c := m.Connector; (c != nil) != (m.Kind == schemas.ManifestKindConnector) || c != nil && c.SnapshotTool != nil && !seen[*c.SnapshotTool] {
		return fmt.Errorf("manifest of %s: a connector, and only a connector, has a connector part; its snapshotTool is one of its tools", m.Name)
	}
	return nil
}
