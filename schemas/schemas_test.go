package schemas

import (
	"errors"
	"strings"
	"testing"
)

func TestEveryDocumentCompiles(t *testing.T) {
	for _, dir := range []string{"resource", "meta"} {
		entries, err := FS.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if _, err := own(dir + "/" + e.Name()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEveryToolFitsItsMetaSchemaAndCompiles(t *testing.T) {
	meta, err := Meta("tool")
	if err != nil {
		t.Fatal(err)
	}
	names := ToolNames()
	if len(names) == 0 {
		t.Fatal("no tool documents")
	}
	for _, name := range names {
		raw, _ := FS.ReadFile("tool/" + name + ".json")
		if err := meta.Validate(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		doc, err := Tool(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for part, schema := range map[string]Document{"input": doc.InputSchema, "output": doc.OutputSchema} {
			raw := schema.MustJSON()
			if strings.Contains(string(raw), Base) {
				t.Errorf("%s %s: a reference leads out of the document", name, part)
			}
			if schema["type"] != "object" {
				t.Errorf("%s %s: type must be object", name, part)
			}
			if _, err := Compile(name+"."+part, raw); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestForeignReferencesAreRefused(t *testing.T) {
	for _, ref := range []string{"file:///etc/passwd", "https://example.com/x.json", "http://127.0.0.1/x", "/etc/passwd", "../../etc/passwd", Base + "../go.mod"} {
		if _, err := Compile("hostile", []byte(`{"$ref":"`+ref+`"}`)); err == nil {
			t.Errorf("reference to %s was followed", ref)
		} else if strings.Contains(err.Error(), "root:") {
			t.Errorf("reference to %s leaked a file: %v", ref, err)
		}
	}
}

func TestIssuesPointAtFields(t *testing.T) {
	s, err := Compile("t", []byte(`{"type":"object","additionalProperties":false,"required":["goal"],"properties":{"goal":{"type":"string"},"n":{"type":"integer","minimum":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]string{
		`{}`:                        "/goal",
		`{"goal":"x","extra":1}`:    "/extra",
		`{"goal":"x","n":0}`:        "/n",
		`{"goal":1}`:                "/goal",
		`not json`:                  "",
		`{"goal":"x"} {"goal":"y"}`: "",
	} {
		err := s.Validate([]byte(doc))
		ve, ok := errors.AsType[*ValidationError](err)
		if !ok || ve.Issues[0].Pointer != want {
			t.Errorf("%s: got %v, want an issue at %q", doc, err, want)
		}
	}
	if err := s.Validate([]byte(`{"goal":"x","n":2}`)); err != nil {
		t.Error(err)
	}
}
