package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/schemas"
)

// operation is what openapi.json says about one method of one path, as far as serving
// needs it.
type operation struct {
	id, method, path string
	scope            string // scope the credential has to hold; empty: any credential
	public           bool
	body             *schemas.Schema // nil: the operation takes no body
	bodyRequired     bool
	media            []string // media types of the body, sorted
	upload           bool     // the body is a file, which the service reads and checks
	maxBody          int64
	replayable       bool   // takes an Idempotency-Key
	secretField      string // field of the reply that is shown once and never stored
	page             bool   // a browser comes here: others add parameters, and who is not signed in is sent to do so
	params           []parameter
}

// parameter is a path, query or header parameter with its schema.
type parameter struct {
	name, in string
	integer  bool
	schema   *schemas.Schema
}

const (
	defaultMaxBody = 1 << 20
	mediaJSON      = "application/json"
)

// description is the part of openapi.json that serving needs.
type description struct {
	Paths      map[string]map[string]describedOperation `json:"paths"`
	Components struct {
		Schemas    map[string]any                `json:"schemas"`
		Parameters map[string]describedParameter `json:"parameters"`
	} `json:"components"`
}

type describedOperation struct {
	OperationID string               `json:"operationId"`
	Scope       string               `json:"x-scope"`
	SecretField string               `json:"x-secret-field"`
	Page        bool                 `json:"x-page"`
	Security    []any                `json:"security"`
	Parameters  []describedParameter `json:"parameters"`
	RequestBody *struct {
		Required bool  `json:"required"`
		MaxBytes int64 `json:"x-max-bytes"`
		Upload   bool  `json:"x-upload"`
		Content  map[string]struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type describedParameter struct {
	Ref    string          `json:"$ref"`
	Name   string          `json:"name"`
	In     string          `json:"in"`
	Schema json.RawMessage `json:"schema"`
}

// loadOperations reads the operations and compiles the schemas of what they take.
func loadOperations() (map[string]*operation, error) {
	raw, err := bundledText()
	if err != nil {
		return nil, err
	}
	var doc description
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	ops := map[string]*operation{}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			op, err := doc.operation(strings.ToUpper(method), path, o)
			if err != nil {
				return nil, fmt.Errorf("openapi.json: %s %s: %w", method, path, err)
			}
			if op.id == "" || ops[op.id] != nil {
				return nil, fmt.Errorf("openapi.json: %s %s: operationId is missing or stands twice", method, path)
			}
			ops[op.id] = op
		}
	}
	return ops, nil
}

func (d *description) operation(method, path string, o describedOperation) (*operation, error) {
	op := &operation{id: o.OperationID, method: method, path: path, scope: o.Scope, secretField: o.SecretField, page: o.Page, public: len(o.Security) == 0, maxBody: defaultMaxBody}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[p.Ref[strings.LastIndex(p.Ref, "/")+1:]]
		}
		var kind struct{ Type string }
		if err := json.Unmarshal(p.Schema, &kind); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		compiled, err := schemas.Compile(op.id+":"+p.Name, p.Schema)
		if err != nil {
			return nil, err
		}
		op.params = append(op.params, parameter{name: p.Name, in: p.In, integer: kind.Type == "integer", schema: compiled})
		op.replayable = op.replayable || p.Name == headerIdempotency
	}
	if o.RequestBody == nil {
		return op, nil
	}
	op.bodyRequired = o.RequestBody.Required
	op.maxBody = max(op.maxBody, o.RequestBody.MaxBytes)
	op.upload = o.RequestBody.Upload
	op.media = slices.Sorted(maps.Keys(o.RequestBody.Content))
	var err error
	op.body, err = compileComponent(op.id, o.RequestBody.Content[mediaJSON].Schema, d.Components.Schemas)
	return op, err
}

// checkParameters refuses parameters of the address that the operation does not know,
// that stand twice, or that do not fit their schema; and headers that do not.
func (op *operation) checkParameters(r *http.Request) error {
	given := r.URL.Query()
	known := map[string]bool{}
	for _, p := range op.params {
		value, present := "", false
		switch p.in {
		case "query":
			known[p.name] = true
			present = given.Has(p.name)
			value = given.Get(p.name)
			if len(given[p.name]) > 1 {
				return badParameter(p.name, "stands twice")
			}
		case "path":
			value, present = chi.URLParam(r, p.name), true
		case "header":
			value = r.Header.Get(p.name)
			present = value != ""
		}
		if !present {
			continue
		}
		var v any = value
		if p.integer {
			v = json.Number(value)
			if _, err := strconv.Atoi(value); err != nil {
				return badParameter(p.name, "must be a whole number")
			}
		}
		err := p.schema.ValidateValue(v)
		if ve, ok := errors.AsType[*schemas.ValidationError](err); ok {
			return badParameter(p.name, ve.Issues[0].Message)
		} else if err != nil {
			return err
		}
	}
	for name := range given {
		if !known[name] && !op.page {
			return badParameter(clip(name, 60), "is not a parameter of this operation")
		}
	}
	return nil
}

// compileComponent compiles a schema of the description, which may refer to components.
func compileComponent(name string, schema json.RawMessage, components map[string]any) (*schemas.Schema, error) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("openapi.json: %s: %w", name, err)
	}
	doc, err := json.Marshal(map[string]any{"allOf": []any{root}, "components": map[string]any{"schemas": components}})
	if err != nil {
		return nil, err
	}
	return schemas.Compile(name, doc)
}
