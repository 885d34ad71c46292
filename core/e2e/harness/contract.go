package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/schemas"
)

// Contract is the REST description a host serves; Check holds answers against it.
type Contract struct {
	components json.RawMessage
	operations []operation

	mu       sync.Mutex
	compiled map[string]*schemas.Schema
	// Seen counts the checked answers per operation, as "GET /api/runs".
	Seen map[string]int
}

type operation struct {
	method, path string
	pattern      *regexp.Regexp
	literal      int // characters of the path outside braces: the longest wins
	responses    map[string]response
}

type response struct {
	Content map[string]struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"content"`
}

// NewContract reads an OpenAPI 3.1 document.
func NewContract(doc []byte) (*Contract, error) {
	var api struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components json.RawMessage                       `json:"components"`
	}
	if err := json.Unmarshal(doc, &api); err != nil {
		return nil, err
	}
	c := &Contract{components: api.Components, compiled: map[string]*schemas.Schema{}, Seen: map[string]int{}}
	var components struct {
		Responses map[string]response `json:"responses"`
	}
	if err := json.Unmarshal(api.Components, &components); err != nil {
		return nil, err
	}
	for path, methods := range api.Paths {
		for method, raw := range methods {
			switch method {
			case "get", "post", "put", "patch", "delete":
			default:
				continue
			}
			var op struct {
				Responses map[string]json.RawMessage `json:"responses"`
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			o := operation{method: strings.ToUpper(method), path: path, responses: map[string]response{}}
			o.pattern = regexp.MustCompile("^" + regexp.MustCompile(`\\\{[^/]*?\\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
			o.literal = len(regexp.MustCompile(`\{[^/]*\}`).ReplaceAllString(path, ""))
			for status, raw := range op.Responses {
				var ref struct {
					Ref string `json:"$ref"`
				}
				var r response
				if err := json.Unmarshal(raw, &ref); err == nil && ref.Ref != "" {
					r = components.Responses[strings.TrimPrefix(ref.Ref, "#/components/responses/")]
				} else if err := json.Unmarshal(raw, &r); err != nil {
					return nil, fmt.Errorf("%s %s %s: %w", method, path, status, err)
				}
				o.responses[status] = r
			}
			c.operations = append(c.operations, o)
		}
	}
	if len(c.operations) == 0 {
		return nil, fmt.Errorf("the description has no operations")
	}
	return c, nil
}

// Operations lists what the description holds, as "GET /api/runs".
func (c *Contract) Operations() []string {
	var out []string
	for _, o := range c.operations {
		out = append(out, o.method+" "+o.path)
	}
	return out
}

// Check reports how an answer departs from the description: an operation, status or
// media type that is not described, or a body that does not fit.
func (c *Contract) Check(method, path string, status int, header http.Header, body []byte) error {
	path, _, _ = strings.Cut(path, "?")
	var found *operation
	for i, o := range c.operations {
		if o.method == method && o.pattern.MatchString(path) && (found == nil || o.literal > found.literal) {
			found = &c.operations[i]
		}
	}
	if found == nil {
		return fmt.Errorf("%s %s is not described", method, path)
	}
	name := found.method + " " + found.path
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Seen[name]++
	r, ok := found.responses[strconv.Itoa(status)]
	if !ok {
		if r, ok = found.responses["default"]; !ok {
			return fmt.Errorf("%s: status %d is not described", name, status)
		}
	}
	if len(body) == 0 {
		return nil
	}
	media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	content, ok := r.Content[media]
	if !ok {
		return fmt.Errorf("%s: %d answers %q, which is not described", name, status, media)
	}
	if !strings.HasSuffix(media, "json") || len(content.Schema) == 0 {
		return nil
	}
	schema, err := c.schema(content.Schema)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := schema.Validate(body); err != nil {
		return fmt.Errorf("%s: %d does not fit its description: %w", name, status, err)
	}
	return nil
}

func (c *Contract) schema(raw json.RawMessage) (*schemas.Schema, error) {
	if s, ok := c.compiled[string(raw)]; ok {
		return s, nil
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	doc["components"] = c.components
	full, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	s, err := schemas.Compile("response", full)
	if err != nil {
		return nil, err
	}
	c.compiled[string(raw)] = s
	return s, nil
}
