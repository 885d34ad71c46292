package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core/tool"
	"github.com/sallyport-dev/sallyport/schemas"
)

// catalog keeps the SDK server equal to the registry. A change replaces first and removes
// leftovers last, so that no call during a swap meets an unknown tool, and touches only
// what differs, so that clients hear of real changes only.
type catalog struct {
	surface *surface
	lists   *lists // nil over standard input and output

	mu    sync.Mutex
	state map[string]digests
}

// digests maps a name to the digest of what is registered under it.
type digests map[string][sha256.Size]byte

func newCatalog(s *surface) *catalog {
	s.addResources()
	return &catalog{surface: s, state: map[string]digests{"tool": {}, "prompt": {}, "resource": {}}}
}

// follow takes the registry's snapshot and every later one.
func (c *catalog) follow(r *tool.Registry) {
	r.Subscribe(func(_, next *tool.Snapshot) { c.apply(next) })
	c.apply(r.Snapshot())
}

func (c *catalog) apply(snap *tool.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	server := c.surface.server
	tools := map[string]*mcp.Tool{}
	for _, e := range snap.Visible() {
		tools[e.Doc.Name] = toolOf(e)
	}
	prompts := map[string]schemas.ManifestPrompt{}
	for _, p := range promptsOf(snap) {
		prompts[p.Name] = p
	}
	resources := map[string]schemas.ManifestResource{}
	for _, m := range snap.Manifests() {
		for _, r := range m.Resources {
			resources[r.Uri] = r
		}
	}
	swap(c, "tool", tools, func(t *mcp.Tool) { server.AddTool(t, c.surface.callTool) }, server.RemoveTools)
	swap(c, "prompt", prompts, c.surface.addPrompt, server.RemovePrompts)
	swap(c, "resource", resources, c.addResource, server.RemoveResources)
	if c.lists != nil {
		c.lists.rebuild()
	}
}

func (c *catalog) addResource(r schemas.ManifestResource) {
	mime := value(r.MimeType)
	if mime == "" {
		mime = "application/json"
	}
	c.surface.server.AddResource(&mcp.Resource{URI: r.Uri, Name: r.Name, MIMEType: mime}, c.surface.toolResource(r.Tool, mime))
}

// swap makes one kind of entry equal to next.
func swap[T any](c *catalog, kind string, next map[string]T, add func(T), remove func(...string)) {
	now := c.state[kind]
	for name, v := range next {
		b, err := json.Marshal(v)
		if err != nil {
			c.skip(kind, name, err)
			delete(next, name)
			continue
		}
		digest := sha256.Sum256(b)
		if now[name] == digest {
			continue
		}
		if err := register(kind, name, func() { add(v) }); err != nil {
			c.skip(kind, name, err)
			delete(next, name)
			continue
		}
		now[name] = digest
	}
	var gone []string
	for name := range now {
		if _, stays := next[name]; !stays {
			gone = append(gone, name)
			delete(now, name)
		}
	}
	if len(gone) > 0 {
		remove(gone...)
	}
}

func (c *catalog) skip(kind, name string, err error) {
	c.surface.deps.Log.Error("not offered over MCP", "kind", kind, "name", name, "error", err)
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// register adds one entry. The SDK panics on schemas and addresses it cannot take and
// only logs bad names; a plugin must not bring down the host that way.
func register(kind, name string, add func()) (err error) {
	if kind != "resource" && !validName.MatchString(name) {
		return fmt.Errorf("the name %q does not fit %s", name, validName)
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("refused: %v", cause)
		}
	}()
	add()
	return nil
}

// toolOf is a tool as clients see it.
func toolOf(e *tool.Entry) *mcp.Tool {
	t := &mcp.Tool{
		Name:        e.Doc.Name,
		Title:       e.Doc.Title,
		Description: e.Doc.Description,
		InputSchema: e.InputSchema,
		Annotations: annotationsOf(e),
	}
	// Clients before 2026-07-28 refuse a whole list in which an output schema is not an object.
	if isObjectSchema(e.OutputSchema) {
		t.OutputSchema = e.OutputSchema
	}
	return t
}

func isObjectSchema(schema json.RawMessage) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &root) == nil && root.Type == "object"
}

// annotationsOf derives the hints from the effect, whatever a plugin says of itself; only
// host tools, which read or decide within the platform, state their own.
func annotationsOf(e *tool.Entry) *mcp.ToolAnnotations {
	a := &mcp.ToolAnnotations{Title: e.Doc.Title}
	if h := e.Doc.Hints; h != nil && e.Kind == tool.KindHost {
		a.ReadOnlyHint, a.IdempotentHint = value(h.ReadOnly), value(h.Idempotent)
		a.DestructiveHint, a.OpenWorldHint = new(value(h.Destructive)), new(false)
		return a
	}
	reads := e.Doc.Effect == schemas.EffectRead
	a.ReadOnlyHint, a.IdempotentHint = reads, reads
	a.DestructiveHint, a.OpenWorldHint = new(false), new(reads)
	return a
}
