package discovery

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/tool"
)

//go:embed templates scripts/*.mjs
var sources embed.FS

var templates = template.Must(template.ParseFS(sources, "templates/*"))

// file is one served document.
type file struct {
	body        []byte
	contentType string
	digest      string // SHA-256 of the body, hex
	purpose     string
	live        bool // made at each request
}

func newFile(contentType, purpose string, body []byte) *file {
	sum := sha256.Sum256(body)
	return &file{body: body, contentType: contentType, purpose: purpose, digest: hex.EncodeToString(sum[:])}
}

func (f *file) etag() string { return strconv.Quote(f.digest) }

// files are the documents of one snapshot.
type files struct {
	byPath  map[string]*file
	tools   []string
	digest  string // of the snapshot
	builtAt time.Time
}

// Content types.
const (
	typeJSON     = "application/json"
	typeText     = "text/plain; charset=utf-8"
	typeMarkdown = "text/markdown; charset=utf-8"
	typeScript   = "text/javascript; charset=utf-8"
	typeCard     = "application/mcp-server-card+json"
	typeCatalog  = "application/ai-catalog+json"
)

// page is what the templates see.
type page struct {
	Base            string
	Version         string
	Tools           []line
	Operators       []operator
	Others          []line
	InstallerDigest string
}

type operator struct {
	Title, Description, PrimaryTool string
	Tools                           []line
}

type line struct{ Name, Description string }

// Has reports whether the catalogue lists the tool.
func (p page) Has(name string) bool {
	for _, t := range p.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// generate makes every document that follows from the snapshot.
func generate(deps Deps, snap *tool.Snapshot) (*files, error) {
	out := &files{byPath: map[string]*file{}, digest: snap.Digest(), tools: []string{}}
	if err := addScripts(out, deps.BaseURL); err != nil {
		return nil, err
	}
	p := pageOf(deps, snap)
	p.InstallerDigest = out.byPath[PathInstaller].digest
	for _, t := range p.Tools {
		out.tools = append(out.tools, t.Name)
	}
	for _, t := range []struct{ path, name, kind, purpose string }{
		{PathLLMs, "llms.txt", typeText, "Text guide for models"},
		{PathAgents, "agents.txt", typeText, "Agent guide"},
		{PathHookGuide, "AGENTS.md", typeMarkdown, "Agent hook guide"},
	} {
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, t.name, p); err != nil {
			return nil, fmt.Errorf("discovery: %s: %w", t.name, err)
		}
		out.byPath[t.path] = newFile(t.kind, t.purpose, b.Bytes())
	}
	out.byPath[PathOpenAPI] = newFile(typeJSON, "REST description", deps.OpenAPI(deps.BaseURL))
	for _, d := range descriptors(deps, out) {
		b, err := json.MarshalIndent(d.content, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("discovery: %s: %w", d.path, err)
		}
		out.byPath[d.path] = newFile(d.kind, d.purpose, append(b, '\n'))
	}
	return out, nil
}

// addScripts serves the scripts byte for byte, but for the installer's default address,
// which becomes the one it is fetched from.
func addScripts(out *files, base string) error {
	collector, err := sources.ReadFile("scripts/repo-context.mjs")
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	installer, err := sources.ReadFile("scripts/install-agent-hook.mjs")
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	const theLine = "const DEFAULT_BASE_URL = \"http://localhost:8080\";\n"
	if bytes.Count(installer, []byte(theLine)) != 1 {
		return fmt.Errorf("discovery: install-agent-hook.mjs must hold the line %q once", strings.TrimSpace(theLine))
	}
	quoted, err := json.Marshal(base)
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	installer = bytes.Replace(installer, []byte(theLine), []byte("const DEFAULT_BASE_URL = "+string(quoted)+";\n"), 1)
	out.byPath[PathCollector] = newFile(typeScript, "Collects what a launch needs from a repository", collector)
	out.byPath[PathInstaller] = newFile(typeScript, "Installs the agent hook", installer)
	return nil
}

// pageOf sorts the visible tools under the operators they belong to.
func pageOf(deps Deps, snap *tool.Snapshot) page {
	p := page{Base: deps.BaseURL, Version: deps.Version}
	about := map[string]line{}
	for _, e := range snap.Visible() {
		l := line{e.Doc.Name, plainLine(e.Doc.Description)}
		about[l.Name] = l
		p.Tools = append(p.Tools, l)
	}
	placed := map[string]bool{}
	for _, op := range snap.Operators() {
		o := operator{Title: plainLine(op.Title), Description: plainLine(op.Description), PrimaryTool: op.PrimaryTool}
		for _, name := range op.Tools {
			if l, ok := about[name]; ok && !placed[name] {
				placed[name] = true
				o.Tools = append(o.Tools, l)
			}
		}
		p.Operators = append(p.Operators, o)
	}
	for _, l := range p.Tools {
		if !placed[l.Name] {
			p.Others = append(p.Others, l)
		}
	}
	return p
}

// plainLine keeps a plugin's text to one line without markup that could pass for ours.
func plainLine(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("`", "'", "<", "(", ">", ")", "[", "(", "]", ")").Replace(text)), " ")
}

// scopes are those a key for MCP holds when none are named.
func scopes() []string { return core.ScopesOfKey(core.APIKeyKindAgent) }
