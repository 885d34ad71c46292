package plugin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/schemas"
)

// Limits of schemas from third parties. Validation cannot be cancelled, and a small
// document whose references double can take minutes, so that its cost is bounded here.
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
	maxSchemaCost  = 10_000
)

var errCost = fmt.Errorf("it expands to more than %d parts; recursion and references that multiply are not possible", maxSchemaCost)

// checkProfile keeps a third party's schema to references into itself and to a bounded size.
func checkProfile(doc schemas.Document) error {
	if n := len(doc.MustJSON()); n > maxSchemaBytes {
		return fmt.Errorf("it has %d bytes; at most %d are possible", n, maxSchemaBytes)
	}
	p := profile{root: map[string]any(doc)}
	return p.walk(map[string]any(doc), 0)
}

type profile struct {
	root map[string]any
	cost int
}

// walk counts a node and everything below it with references followed.
func (p *profile) walk(node any, depth int) error {
	if p.cost++; p.cost > maxSchemaCost {
		return errCost
	}
	if depth > maxSchemaDepth {
		return fmt.Errorf("it is deeper than %d", maxSchemaDepth)
	}
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			if err := p.walk(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range n {
			if err := p.member(key, item, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *profile) member(key string, item any, depth int) error {
	switch key {
	case "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor", "$anchor":
		return fmt.Errorf("%s is not possible", key)
	case "$id":
		if depth > 0 {
			return errors.New("$id below the root is not possible")
		}
	case "$ref":
		ref, ok := item.(string)
		if !ok {
			break // a property that happens to be called $ref
		}
		target, err := p.resolve(ref)
		if err != nil {
			return err
		}
		return p.walk(target, depth+1)
	}
	return p.walk(item, depth+1)
}

// resolve follows a JSON pointer into the document.
func (p *profile) resolve(ref string) (any, error) {
	if ref == "#" {
		return p.root, nil
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("the reference %q leads out of the document", clip(ref, 100))
	}
	var at any = p.root
	for part := range strings.SplitSeq(rest, "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch n := at.(type) {
		case map[string]any:
			at, ok = n[part]
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(n); ok {
				at = n[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("the reference %q leads nowhere", clip(ref, 100))
		}
	}
	return at, nil
}
