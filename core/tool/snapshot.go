package tool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Kinds of entry: the three of manifests, and host for core's own tools.
const (
	KindHost      = "host"
	KindOperator  = string(schemas.ManifestKindOperator)
	KindSkill     = string(schemas.ManifestKindSkill)
	KindConnector = string(schemas.ManifestKindConnector)
)

// Plugin is a plugin as the registry needs it: what it described, where it is called,
// and what approvals rest on.
type Plugin struct {
	Manifest schemas.Manifest
	Caller   Caller
	// Digest is the SHA-256 of the binary, ManifestDigest that of what it described; hex.
	Digest         string
	ManifestDigest string
	// List shows its connector reads in tools/list.
	List bool
}

// Entry is one tool.
type Entry struct {
	Doc    schemas.ToolDocument
	Plugin string // name of the plugin that owns it; empty for host tools
	Kind   string // KindHost, KindOperator, KindSkill or KindConnector
	// InputSchema and OutputSchema are the schemas as JSON, made once.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	// Digest is the SHA-256 of the tool document, hex.
	Digest string
	// Listed says whether tools/list shows it.
	Listed bool

	owner         *Plugin  // nil for host tools
	host          hostFunc // nil for plugin tools
	scope         string   // that a caller needs; empty: the tool decides
	input, output *schemas.Schema
}

// IsHost reports whether core itself answers the tool.
func (e *Entry) IsHost() bool { return e.host != nil }

// Snapshot is an immutable catalog: tools, and the manifests they come from.
type Snapshot struct {
	byName    map[string]*Entry
	visible   []*Entry
	plugins   []*Plugin
	digest    string
	operators []core.Operator // without status, which is asked for at each call
	skills    []core.Skill
}

// NewSnapshot builds a catalog of core's own tools and those of the plugins. Two tools
// of one name, two plugins of one provider, or a schema that does not compile, is an error that names the plugin.
func NewSnapshot(plugins []*Plugin) (*Snapshot, error) {
	s := &Snapshot{byName: map[string]*Entry{}, plugins: slices.Clone(plugins)}
	slices.SortFunc(s.plugins, func(a, b *Plugin) int { return cmp.Compare(a.Manifest.Name, b.Manifest.Name) })
	for _, h := range hostTools() {
		if err := s.add(&Entry{Doc: h.doc, Kind: KindHost, Listed: true, host: h.run, scope: h.scope}); err != nil {
			return nil, err
		}
	}
	speaks := map[string]string{} // provider → plugin; two would share the provider's credential
	for _, p := range s.plugins {
		if c := p.Manifest.Connector; c != nil {
			if other, taken := speaks[c.Provider]; taken {
				return nil, fmt.Errorf("the provider %s is claimed twice, by plugin %s and by plugin %s", c.Provider, other, p.Manifest.Name)
			}
			speaks[c.Provider] = p.Manifest.Name
		}
		for _, doc := range p.Manifest.Tools {
			if err := s.add(entryOf(p, doc)); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range s.byName {
		if e.Listed {
			s.visible = append(s.visible, e)
		}
	}
	slices.SortFunc(s.visible, func(a, b *Entry) int { return cmp.Compare(a.Doc.Name, b.Doc.Name) })
	s.describe()
	return s, nil
}

func entryOf(p *Plugin, doc schemas.ToolDocument) *Entry {
	e := &Entry{Doc: doc, Plugin: p.Manifest.Name, Kind: string(p.Manifest.Kind), owner: p, scope: core.ScopeRunsWrite}
	switch {
	case doc.Effect == schemas.EffectWrite:
	case e.Kind == KindConnector: // it reaches outside, so that reading alone is not enough
		e.Listed = p.List && (doc.List == nil || *doc.List)
	default:
		e.Listed = true
		if doc.Effect == schemas.EffectRead {
			e.scope = core.ScopeRunsRead
		}
	}
	return e
}

func (s *Snapshot) add(e *Entry) (err error) {
	defer func() { // a document that breaks a library must not take the host down
		if v := recover(); v != nil {
			err = fmt.Errorf("tool %s cannot be registered: %v", e.Doc.Name, v)
		}
	}()
	if other, taken := s.byName[e.Doc.Name]; taken {
		return fmt.Errorf("the tool %s is owned twice, by %s and by %s", e.Doc.Name, ownerName(other), ownerName(e))
	}
	e.InputSchema, e.OutputSchema = e.Doc.InputSchema.MustJSON(), e.Doc.OutputSchema.MustJSON()
	if e.input, err = schemas.Compile(e.Doc.Name+".input", e.InputSchema); err != nil {
		return fmt.Errorf("tool %s of %s: %w", e.Doc.Name, ownerName(e), err)
	}
	if e.output, err = schemas.Compile(e.Doc.Name+".output", e.OutputSchema); err != nil {
		return fmt.Errorf("tool %s of %s: %w", e.Doc.Name, ownerName(e), err)
	}
	doc, err := json.Marshal(e.Doc)
	if err != nil {
		return fmt.Errorf("tool %s of %s: %w", e.Doc.Name, ownerName(e), err)
	}
	sum := sha256.Sum256(doc)
	e.Digest = hex.EncodeToString(sum[:])
	s.byName[e.Doc.Name] = e
	return nil
}

func ownerName(e *Entry) string {
	if e.IsHost() {
		return "the host"
	}
	return "plugin " + e.Plugin
}

// describe fills what follows from the entries.
func (s *Snapshot) describe() {
	h := sha256.New()
	for _, e := range s.visible {
		fmt.Fprintf(h, "%s %s\n", e.Doc.Name, e.Digest)
	}
	s.digest = hex.EncodeToString(h.Sum(nil))
	for _, p := range s.plugins {
		if op := p.Manifest.Operator; op != nil {
			s.operators = append(s.operators, core.Operator{
				Name: p.Manifest.Name, Title: op.Title, Description: p.Manifest.Description, Version: p.Manifest.Version,
				PrimaryTool: op.PrimaryTool, Tools: s.toolsOf(p.Manifest.Name, op.PrimaryTool),
			})
		}
	}
	for _, e := range s.visible {
		if e.Doc.Skill == nil || !*e.Doc.Skill {
			continue
		}
		s.skills = append(s.skills, core.Skill{
			Name: e.Doc.Name, Title: e.Doc.Title, Description: e.Doc.Description, Plugin: e.Plugin, Version: versionOf(e),
			Inputs: properties(e.Doc.InputSchema), Outputs: properties(e.Doc.OutputSchema), Digest: e.Digest,
		})
	}
}

func versionOf(e *Entry) string {
	if e.Doc.Version != nil {
		return *e.Doc.Version
	}
	return e.owner.Manifest.Version
}

// toolsOf lists the visible tools that belong to an operator: its own, then those of
// the host and of skills that share the prefix of its primary tool.
func (s *Snapshot) toolsOf(operator, primary string) []string {
	prefix := prefixOf(primary)
	own, shared := []string{primary}, []string{}
	for _, e := range s.visible {
		switch {
		case e.Doc.Name == primary:
		case e.Plugin == operator:
			own = append(own, e.Doc.Name)
		case (e.Kind == KindSkill || e.Kind == KindHost) && prefixOf(e.Doc.Name) == prefix:
			shared = append(shared, e.Doc.Name)
		}
	}
	return append(own, shared...)
}

// prefixOf is what stands before the first underscore of a tool's name.
func prefixOf(name string) string {
	prefix, _, _ := strings.Cut(name, "_")
	return prefix
}

// properties lists the field names of an object schema, sorted.
func properties(doc schemas.Document) []string {
	names := []string{}
	fields, ok := doc["properties"].(map[string]any)
	if !ok {
		return names
	}
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Visible lists the tools that tools/list shows, sorted by name. Callers must not change it.
func (s *Snapshot) Visible() []*Entry { return s.visible }

// Lookup finds a tool by name, visible or not.
func (s *Snapshot) Lookup(name string) (*Entry, bool) {
	e, ok := s.byName[name]
	return e, ok
}

// Digest tells snapshots apart by what tools/list shows of them.
func (s *Snapshot) Digest() string { return s.digest }

// Manifests lists the manifests of the plugins, sorted by name.
func (s *Snapshot) Manifests() []schemas.Manifest {
	out := make([]schemas.Manifest, 0, len(s.plugins))
	for _, p := range s.plugins {
		out = append(out, p.Manifest)
	}
	return out
}

// Operators lists the operators and whether their process answers now.
func (s *Snapshot) Operators() []core.Operator {
	out := make([]core.Operator, 0, len(s.operators))
	for _, op := range s.operators {
		op.Status = core.OperatorStatusAvailable
		if e, ok := s.byName[op.PrimaryTool]; !ok || !e.available() {
			op.Status = core.OperatorStatusUnavailable
		}
		out = append(out, op)
	}
	return out
}

// Skills lists the tools that are skills.
func (s *Snapshot) Skills() []core.Skill { return slices.Clone(s.skills) }

// available reports whether a call would reach a process.
func (e *Entry) available() bool { return e.IsHost() || e.owner.Caller.Available() }

// operatorOf names the operator a tool belongs to: its own, or the one whose primary
// tool shares its prefix.
func (s *Snapshot) operatorOf(e *Entry) string {
	if e.Kind == KindOperator {
		return e.Plugin
	}
	for _, op := range s.operators {
		if prefixOf(op.PrimaryTool) == prefixOf(e.Doc.Name) {
			return op.Name
		}
	}
	return e.Plugin
}

// ConnectorOf finds the connector plugin of a provider.
func (s *Snapshot) ConnectorOf(provider string) (schemas.Manifest, bool) {
	for _, p := range s.plugins {
		if c := p.Manifest.Connector; c != nil && c.Provider == provider {
			return p.Manifest, true
		}
	}
	return schemas.Manifest{}, false
}

// WriteTools lists the write tools of a provider's connector.
func (s *Snapshot) WriteTools(provider string) []string {
	names := []string{}
	m, ok := s.ConnectorOf(provider)
	if !ok {
		return names
	}
	for _, doc := range m.Tools {
		if doc.Effect == schemas.EffectWrite {
			names = append(names, doc.Name)
		}
	}
	return names
}
