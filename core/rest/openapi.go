package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/schemas"
)

// OpenAPI is the description of the interface as it is served: resource schemas stand
// under components, so that the file needs nothing else, and the only server is baseURL.
func OpenAPI(baseURL string) (json.RawMessage, error) {
	raw, err := bundledText()
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	doc["servers"] = []any{map[string]any{"url": strings.TrimSuffix(baseURL, "/")}}
	return json.Marshal(doc)
}

// bundledText is schemas/openapi.json with the resources inlined.
var bundledText = sync.OnceValues(func() (json.RawMessage, error) {
	raw, err := schemas.FS.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	components, _ := doc["components"].(map[string]any)
	named, _ := components["schemas"].(map[string]any)
	if named == nil {
		return nil, fmt.Errorf("openapi.json: components.schemas is missing")
	}
	in := inliner{named: named, done: map[string]string{}}
	if err := in.extend(); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	if err := in.walk(doc, ""); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	return json.Marshal(doc)
})

// inliner copies the documents of package schemas that a description refers to under
// components/schemas and points the references there.
type inliner struct {
	named map[string]any
	done  map[string]string // file → component
}

// extend resolves x-extends: a component that has everything of a resource and more.
// A resource refuses unknown fields, so allOf cannot express it.
func (in *inliner) extend() error {
	for name, component := range in.named {
		c, _ := component.(map[string]any)
		ref, ok := c["x-extends"].(string)
		if !ok {
			continue
		}
		doc, dir, err := readDocument(ref)
		if err != nil {
			return err
		}
		absolute(doc, dir)
		properties, _ := doc["properties"].(map[string]any)
		if more, ok := c["properties"].(map[string]any); ok {
			maps.Copy(properties, more)
		}
		required, _ := doc["required"].([]any)
		if more, ok := c["required"].([]any); ok {
			required = append(required, more...)
		}
		maps.Copy(doc, c)
		delete(doc, "x-extends")
		doc["properties"], doc["required"] = properties, required
		in.named[name] = doc
	}
	return nil
}

// absolute turns references between resources into full addresses.
func absolute(node any, dir string) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			absolute(item, dir)
		}
	case map[string]any:
		for _, item := range n {
			absolute(item, dir)
		}
		if ref, ok := n["$ref"].(string); ok && !strings.HasPrefix(ref, "#") && !strings.Contains(ref, ":") {
			n["$ref"] = schemas.Base + dir + "/" + ref
		}
	}
}

func (in *inliner) walk(node any, dir string) error {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			if err := in.walk(item, dir); err != nil {
				return err
			}
		}
	case map[string]any:
		ref, ok := n["$ref"].(string)
		if ok && !strings.HasPrefix(ref, "#") {
			if !strings.Contains(ref, ":") {
				ref = schemas.Base + dir + "/" + ref
			}
			name, err := in.include(ref)
			if err != nil {
				return err
			}
			n["$ref"] = "#/components/schemas/" + name
		}
		for key, item := range n {
			if key == "example" || key == "examples" {
				continue // a body may hold a field named $ref
			}
			if err := in.walk(item, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *inliner) include(address string) (string, error) {
	if name, ok := in.done[address]; ok {
		return name, nil
	}
	doc, dir, err := readDocument(address)
	if err != nil {
		return "", err
	}
	name := componentName(address)
	if _, taken := in.named[name]; taken {
		return "", fmt.Errorf("component %s stands twice", name)
	}
	in.done[address] = name
	in.named[name] = doc
	return name, in.walk(doc, dir)
}

func readDocument(address string) (doc map[string]any, dir string, err error) {
	file, ok := strings.CutPrefix(address, schemas.Base)
	dir, _, deep := strings.Cut(file, "/")
	if !ok || !deep {
		return nil, "", fmt.Errorf("reference to %q: no such document", address)
	}
	raw, err := schemas.FS.ReadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("reference to %q: no such document", address)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	delete(doc, "$id")
	delete(doc, "$schema")
	return doc, dir, nil
}

// componentName turns …/audit_entry.json into AuditEntry.
func componentName(address string) string {
	base := address[strings.LastIndex(address, "/")+1:]
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(base, ".json"), "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}
