package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Issue is one place where a document does not fit its schema.
type Issue struct {
	Pointer string // JSON pointer into the document; empty for the whole
	Message string
}

// ValidationError lists every issue of a document. Its text holds pointers and rules,
// never values beyond what the caller sent.
type ValidationError struct{ Issues []Issue }

func (e *ValidationError) Error() string {
	var b strings.Builder
	for i, issue := range e.Issues {
		if i > 0 {
			b.WriteString("; ")
		}
		where := issue.Pointer
		if where == "" {
			where = "(document)"
		}
		fmt.Fprintf(&b, "%s: %s", where, issue.Message)
	}
	return b.String()
}

// Validate checks a JSON document. The error is a *ValidationError, also for text that
// is not JSON.
func (s *Schema) Validate(doc []byte) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return &ValidationError{Issues: []Issue{{Message: "is not JSON: " + err.Error()}}}
	}
	if dec.More() {
		return &ValidationError{Issues: []Issue{{Message: "has something after the JSON value"}}}
	}
	return s.ValidateValue(v)
}

// ValidateValue checks a decoded JSON value; numbers may be json.Number or float64.
func (s *Schema) ValidateValue(v any) error {
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return &ValidationError{Issues: []Issue{{Message: "cannot be checked: " + err.Error()}}}
	}
	out := &ValidationError{}
	seen := map[Issue]bool{}
	leaves(ve, func(leaf *jsonschema.ValidationError) {
		for _, issue := range issuesOf(leaf) {
			if !seen[issue] {
				seen[issue] = true
				out.Issues = append(out.Issues, issue)
			}
		}
	})
	sort.SliceStable(out.Issues, func(i, j int) bool { return out.Issues[i].Pointer < out.Issues[j].Pointer })
	return out
}

// issuesOf turns a leaf into issues; a missing or unknown property points at the property itself.
func issuesOf(leaf *jsonschema.ValidationError) []Issue {
	for _, rule := range []struct{ keyword, prefix, message string }{
		{"/required", "missing properties: ", "is required"},
		{"/additionalProperties", "additionalProperties ", "is not a known field"},
	} {
		if !strings.HasSuffix(leaf.KeywordLocation, rule.keyword) {
			continue
		}
		var issues []Issue
		rest := strings.TrimSuffix(strings.TrimPrefix(leaf.Message, rule.prefix), " not allowed")
		for _, name := range strings.Split(rest, ", ") {
			name = strings.ReplaceAll(strings.ReplaceAll(strings.Trim(name, "'\""), "~", "~0"), "/", "~1")
			issues = append(issues, Issue{Pointer: leaf.InstanceLocation + "/" + name, Message: rule.message})
		}
		return issues
	}
	return []Issue{{Pointer: leaf.InstanceLocation, Message: leaf.Message}}
}

func leaves(e *jsonschema.ValidationError, visit func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		visit(e)
		return
	}
	for _, cause := range e.Causes {
		leaves(cause, visit)
	}
}
