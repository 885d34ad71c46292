// Package schemas holds every JSON document that describes the platform: resources,
// tools, manifest, catalog, configuration, channel rules and the REST description. It
// alone compiles and validates them; Go types are generated from them.
package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// FS holds the documents: resource/, meta/, tool/, channel-rules/ and openapi.json.
//
//go:embed resource meta tool channel-rules openapi.json
var FS embed.FS

// Base is the address under which documents of this package refer to each other.
const Base = "https://sallyport.dev/schemas/"

// Schema is a compiled JSON Schema, safe for concurrent use.
type Schema struct {
	raw      json.RawMessage
	compiled *jsonschema.Schema
}

// JSON is the document as it was given.
func (s *Schema) JSON() json.RawMessage { return s.raw }

// Compile compiles a JSON Schema (2020-12 unless it says otherwise; formats are
// asserted). A reference may lead into the document itself or to a resource of this
// package; anything else, files and remote addresses first of all, is refused.
func Compile(name string, doc []byte) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.LoadURL = loadOwn
	address := "urn:sallyport:" + name
	if err := c.AddResource(address, bytes.NewReader(doc)); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	compiled, err := c.Compile(address)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return &Schema{raw: bytes.Clone(doc), compiled: compiled}, nil
}

// loadOwn answers references to documents of this package and refuses all others.
func loadOwn(address string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(address, Base)
	if !ok || path.Clean(name) != name {
		return nil, fmt.Errorf("reference to %q refused: only references into the document and to %s… are allowed", address, Base)
	}
	b, err := FS.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reference to %q: no such document", address)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Resource compiles resource/<name>.json.
func Resource(name string) (*Schema, error) { return own("resource/" + name + ".json") }

// Meta compiles meta/<name>.json.
func Meta(name string) (*Schema, error) { return own("meta/" + name + ".json") }

func own(file string) (*Schema, error) {
	b, err := FS.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", file, err)
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.LoadURL = loadOwn
	compiled, err := c.Compile(Base + file)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", file, err)
	}
	return &Schema{raw: b, compiled: compiled}, nil
}

// Tool reads tool/<name>.json and makes it self-contained: references to resources
// become definitions inside the schemas, so that any client can use them.
func Tool(name string) (ToolDocument, error) {
	var doc ToolDocument
	b, err := FS.ReadFile("tool/" + name + ".json")
	if err != nil {
		return doc, fmt.Errorf("tool %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return doc, fmt.Errorf("tool %s: %w", name, err)
	}
	if doc.Name != name {
		return doc, fmt.Errorf("tool %s: the document names %q", name, doc.Name)
	}
	for _, part := range []*Document{&doc.InputSchema, &doc.OutputSchema} {
		bundled, err := Bundle(*part)
		if err != nil {
			return doc, fmt.Errorf("tool %s: %w", name, err)
		}
		*part = bundled
	}
	return doc, nil
}

// MustTool is Tool for package-level use; it panics when the document is missing or broken.
func MustTool(name string) ToolDocument {
	doc, err := Tool(name)
	if err != nil {
		panic(err)
	}
	return doc
}

// ToolNames lists the tool documents of this repository, sorted.
func ToolNames() []string {
	entries, err := fs.ReadDir(FS, "tool")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if n, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, n)
		}
	}
	return names
}
