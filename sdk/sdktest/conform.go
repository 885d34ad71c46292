package sdktest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

// Conform runs the checks that every plugin must pass, whatever it does: its manifest and
// schemas are sound, descriptions say what a tool does, examples in the input schemas are
// accepted, write tools are pure, and input that no schema describes is refused.
func Conform(t *testing.T, p sdk.Plugin) {
	t.Helper()
	t.Run("manifest", func(t *testing.T) {
		if err := checkManifest(p); err != nil {
			t.Fatal(err)
		}
		if len(p.Tools) == 0 && p.Manifest.Connector == nil {
			t.Fatalf("%s has no tools", p.Manifest.Name)
		}
		if again := sdk.ManifestOf(p); !reflect.DeepEqual(again, sdk.ManifestOf(p)) {
			t.Fatal("the manifest differs between two calls")
		}
	})
	for _, tool := range p.Tools {
		t.Run(tool.Document.Name, func(t *testing.T) { conformTool(t, p, tool.Document) })
	}
}

func conformTool(t *testing.T, p sdk.Plugin, doc schemas.ToolDocument) {
	t.Helper()
	if strings.TrimSpace(doc.Description) == "" || strings.TrimSpace(doc.Title) == "" {
		t.Error("title and description must say what the tool does")
	}
	if doc.InputSchema["additionalProperties"] != false {
		t.Error("the input schema must refuse unknown fields: additionalProperties: false")
	}
	h := New(t, p)
	if r := h.Call(doc.Name, map[string]any{"noSuchFieldAnywhere": 1}); r.Failure == nil || r.Failure.Code != "invalid_input" {
		t.Errorf("an unknown field was accepted: %+v", r.Failure)
	}
	for i, example := range examplesOf(doc) {
		if f := validate(doc.Name+".input", doc.InputSchema, example); f != nil {
			t.Errorf("example %d does not fit the input schema: %v", i, f)
			continue
		}
		if doc.Effect == schemas.EffectWrite {
			conformWrite(t, p, doc, example)
		}
	}
}

// conformWrite calls a write tool twice in fresh hosts: the same input and action id must
// compile to the same bytes, through endpoints of class write only.
func conformWrite(t *testing.T, p sdk.Plugin, doc schemas.ToolDocument, input json.RawMessage) {
	t.Helper()
	var first []byte
	for range 2 {
		r := New(t, p).Call(doc.Name, input)
		if r.Failure != nil {
			t.Errorf("the example does not compile: %v", r.Failure)
			return
		}
		if err := checkSealed(p.Manifest, *r.Sealed); err != nil {
			t.Error(err)
		}
		b, err := json.Marshal(r.Sealed)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, b) {
			t.Errorf("the same input compiled to different bytes:\n%s\n%s", first, b)
		}
		first = b
	}
}

func examplesOf(doc schemas.ToolDocument) []json.RawMessage {
	list, ok := doc.InputSchema["examples"].([]any)
	if !ok {
		return nil
	}
	var out []json.RawMessage
	for _, e := range list {
		b, err := json.Marshal(e)
		if err == nil {
			out = append(out, b)
		}
	}
	return out
}
