package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bundle returns doc with every resource of this package that it refers to copied under
// $defs and every such reference pointing there. Other references are left alone.
func Bundle(doc Document) (Document, error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var root map[string]any
	if err := json.Unmarshal(b, &root); err != nil {
		return nil, err
	}
	bundler := bundler{defs: map[string]any{}}
	if err := bundler.walk(root, ""); err != nil {
		return nil, err
	}
	if len(bundler.defs) > 0 {
		defs, _ := root["$defs"].(map[string]any)
		if defs == nil {
			defs = map[string]any{}
			root["$defs"] = defs
		}
		for name, def := range bundler.defs {
			if _, taken := defs[name]; taken {
				return nil, fmt.Errorf("definition %q stands twice", name)
			}
			defs[name] = def
		}
	}
	return root, nil
}

type bundler struct{ defs map[string]any }

// walk rewrites references below node; dir is the folder of the document the node came from.
func (b *bundler) walk(node any, dir string) error {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			if err := b.walk(item, dir); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range n {
			if err := b.walk(item, dir); err != nil {
				return err
			}
		}
		ref, ok := n["$ref"].(string)
		if !ok || strings.HasPrefix(ref, "#") {
			return nil
		}
		file, ok := strings.CutPrefix(ref, Base)
		if !ok {
			if dir == "" || strings.Contains(ref, ":") {
				return nil
			}
			file = dir + "/" + ref
		}
		name, err := b.include(file)
		if err != nil {
			return err
		}
		n["$ref"] = "#/$defs/" + name
	}
	return nil
}

func (b *bundler) include(file string) (string, error) {
	dir, base, ok := strings.Cut(file, "/")
	if !ok {
		return "", fmt.Errorf("reference to %q: no such document", file)
	}
	name := dir + "_" + strings.TrimSuffix(base, ".json")
	if _, done := b.defs[name]; done {
		return name, nil
	}
	raw, err := FS.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reference to %q: no such document", file)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	delete(doc, "$id")
	delete(doc, "$schema")
	b.defs[name] = doc // before walking, so that documents may refer to each other
	return name, b.walk(doc, dir)
}
