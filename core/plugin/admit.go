package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// maxManifest is the largest manifest in bytes.
const maxManifest = 2 << 20

// described is a manifest that was admitted.
type described struct {
	manifest schemas.Manifest
	digest   string // SHA-256 of the manifest, hex
}

// admit decides whether what a plugin described may be loaded under its catalog entry.
// The error names everything that stands against it.
func admit(raw []byte, entry schemas.CatalogEntry) (*described, error) {
	meta, err := schemas.Meta("manifest")
	if err != nil {
		return nil, err
	}
	if err := meta.Validate(raw); err != nil {
		return nil, fmt.Errorf("its manifest does not fit: %s", clip(escape(err.Error()), 2000))
	}
	var m schemas.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("its manifest cannot be read: %s", clip(escape(err.Error()), 500))
	}
	against := checkShape(m, entry)
	against = append(against, checkNeeds(m.Needs, entry.Allow)...)
	for _, e := range m.Needs.Endpoints {
		against = append(against, checkEndpoint(e)...)
	}
	thirdParty := entry.Origin == nil || *entry.Origin != schemas.CatalogEntryOriginInTree
	for _, doc := range m.Tools {
		against = append(against, checkTool(doc, thirdParty)...)
	}
	if len(against) > 0 {
		return nil, fmt.Errorf("it is not loaded: %s", strings.Join(against, "; "))
	}
	canonical, err := json.Marshal(m) // field order is ours, whatever the plugin's was
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(canonical)
	return &described{manifest: m, digest: hex.EncodeToString(sum[:])}, nil
}

// checkShape checks names and what a kind of plugin must have.
func checkShape(m schemas.Manifest, entry schemas.CatalogEntry) (against []string) {
	if m.Name != entry.Name {
		against = append(against, fmt.Sprintf("it calls itself %s, the catalog calls it %s", m.Name, entry.Name))
	}
	own := map[string]schemas.ToolDocument{}
	for _, doc := range m.Tools {
		if _, twice := own[doc.Name]; twice {
			against = append(against, fmt.Sprintf("the tool %s stands twice", doc.Name))
		}
		own[doc.Name] = doc
		if !pluginpb.Allows(entry.Allow.Tools, doc.Name) {
			against = append(against, fmt.Sprintf("it may not own the tool %s (allow.tools: %s)", doc.Name, strings.Join(entry.Allow.Tools, ", ")))
		}
	}
	has := func(name, use string) {
		if _, ok := own[name]; !ok {
			against = append(against, fmt.Sprintf("%s names %s, which is none of its tools", use, name))
		}
	}
	if (m.Operator != nil) != (m.Kind == schemas.ManifestKindOperator) || (m.Connector != nil) != (m.Kind == schemas.ManifestKindConnector) {
		against = append(against, fmt.Sprintf("a plugin of kind %s has the wrong part: operators have operator, connectors have connector", m.Kind))
	}
	// The provider's credential is used by whoever speaks for it, so that the owner must
	// have named it: the name of the catalog entry is theirs.
	if m.Connector != nil && m.Connector.Provider != m.Name {
		against = append(against, fmt.Sprintf("it speaks for the provider %s; a connector is called like its provider", clip(escape(m.Connector.Provider), 100)))
	}
	if m.Operator != nil {
		has(m.Operator.PrimaryTool, "operator.primaryTool")
	}
	if m.Connector != nil && m.Connector.SnapshotTool != nil {
		has(*m.Connector.SnapshotTool, "connector.snapshotTool")
	}
	for _, r := range m.Resources {
		has(r.Tool, "the resource "+r.Name)
	}
	for _, p := range m.Prompts {
		if p.Tool != nil && *p.Tool != "" {
			has(*p.Tool, "the prompt "+p.Name)
		}
	}
	return against
}

// checkNeeds is the difference between what a plugin needs and what it is allowed.
func checkNeeds(n schemas.Needs, a schemas.Allow) (against []string) {
	needs := func(ok bool, format string, args ...any) {
		if !ok {
			against = append(against, "it needs "+fmt.Sprintf(format, args...)+", which its catalog entry does not allow")
		}
	}
	for _, e := range n.Endpoints {
		needs(pluginpb.Allows(a.Endpoints, e.ID), "the endpoint %s (%s %s)", e.ID, e.Class, e.Host)
	}
	for _, t := range n.Tools {
		needs(covers(a.Call, t), "to call %s", t)
	}
	for _, t := range n.Propose {
		needs(covers(a.Propose, t), "to propose %s", t)
	}
	for _, m := range n.Memory {
		needs(slices.Contains(a.Memory, schemas.CatalogEntryAllowMemoryElem(m)), "to %s memory", m)
	}
	needs(!isTrue(n.Model) || isTrue(a.Model), "a model")
	needs(!isTrue(n.Datasets) || isTrue(a.Datasets), "datasets")
	return against
}

// covers reports whether list allows a name or a prefix that ends in *.
func covers(list []string, need string) bool {
	prefix, isPrefix := strings.CutSuffix(need, "*")
	if !isPrefix {
		return pluginpb.Allows(list, need)
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		allowed, ok := strings.CutSuffix(entry, "*")
		return ok && strings.HasPrefix(prefix, allowed)
	})
}

func isTrue(b *bool) bool { return b != nil && *b }

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

// checkEndpoint keeps the line between reads and writes: what is declared as a read must
// not be able to change anything.
func checkEndpoint(e schemas.Endpoint) (against []string) {
	bad := func(format string, args ...any) {
		against = append(against, fmt.Sprintf("the endpoint %s ", e.ID)+fmt.Sprintf(format, args...))
	}
	smtp := e.Transport != nil && *e.Transport == schemas.ManifestNeedsEndpointsElemTransportSmtp
	method := schemas.ManifestNeedsEndpointsElemMethodGET
	if e.Method != nil {
		method = *e.Method
	}
	get := method == schemas.ManifestNeedsEndpointsElemMethodGET || method == schemas.ManifestNeedsEndpointsElemMethodHEAD
	switch {
	case e.Host == schemas.HostWeb:
		if e.Class != schemas.ClassRead || method != schemas.ManifestNeedsEndpointsElemMethodGET || len(e.Signers) > 0 {
			bad("is open web: only a GET of class read without a signer is possible")
		}
	case e.Host != schemas.HostConnection && (!hostName.MatchString(e.Host) || net.ParseIP(e.Host) != nil):
		bad("names the host %q: it must be one exact host name in lower case", clip(e.Host, 100))
	}
	if smtp {
		if e.Class != schemas.ClassWrite || e.Host != schemas.HostConnection {
			bad("is mail: it must be of class write, to the host of the connection")
		}
		return against
	}
	switch e.Class {
	case schemas.ClassRead:
		post := method == schemas.ManifestNeedsEndpointsElemMethodPOST && isTrue(e.ReadPost) && len(e.BodySchema) > 0
		if !get && !post {
			bad("reads with %s: a read is a GET or HEAD, or a POST with readPost and bodySchema", method)
		}
	case schemas.ClassWrite:
		if get {
			bad("writes with %s", method)
		}
	}
	return against
}

// checkTool checks a tool document beyond its form.
func checkTool(doc schemas.ToolDocument, thirdParty bool) (against []string) {
	parts := []struct {
		name   string
		schema schemas.Document
	}{{"input", doc.InputSchema}, {"output", doc.OutputSchema}}
	for _, part := range parts {
		if part.schema["type"] != "object" {
			against = append(against, fmt.Sprintf("the %s schema of %s is not of type object", part.name, doc.Name))
		}
		if thirdParty {
			if err := checkProfile(part.schema); err != nil {
				against = append(against, fmt.Sprintf("the %s schema of %s: %v", part.name, doc.Name, err))
				continue
			}
		}
		if err := compiles(doc.Name, part.schema); err != nil {
			against = append(against, clip(escape(err.Error()), 500))
		}
	}
	return against
}

// compiles compiles a schema; a document that breaks the compiler is refused like any other.
func compiles(name string, doc schemas.Document) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a schema of %s cannot be compiled: %v", name, v)
		}
	}()
	_, err = schemas.Compile(name, doc.MustJSON())
	return err
}
