// Package connector keeps what workspaces have connected: accounts at providers, the
// credentials core holds for them, and the sign-in that obtains them. It hands sealed
// credentials to nobody but core/egress, which signs with them.
package connector

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sort"

	"golang.org/x/sync/singleflight"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
)

// CallTool runs the read tool that takes a connector's snapshot, as the principal.
type CallTool func(ctx context.Context, p core.Principal, tool string, args json.RawMessage) (json.RawMessage, error)

// Deps is what the service works with.
type Deps struct {
	DB     *store.DB
	Audit  *audit.Log
	Events *event.Bus
	Keys   *secret.Keeper
	Egress *egress.Egress
	Clock  core.Clock
	Log    *slog.Logger
	// Manifests lists the manifests of the connector plugins that are loaded now.
	Manifests func() []schemas.Manifest
	CallTool  CallTool
	// BaseURL is the public address, for the redirect of a provider's sign-in.
	BaseURL string
	// OAuth holds the clients of this installation by provider.
	OAuth map[string]Client
}

// Service answers for the connectors of all workspaces. It is safe for concurrent use.
type Service struct {
	Deps
	refreshes singleflight.Group
}

// New makes the service.
func New(d Deps) *Service {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	return &Service{Deps: d}
}

// manifest finds the connector of a provider.
func (s *Service) manifest(provider string) (*schemas.Manifest, error) {
	for _, m := range s.Manifests() {
		if m.Connector != nil && m.Connector.Provider == provider {
			return &m, nil
		}
	}
	return nil, core.Errf(core.KindNotFound, "connector_not_found", "There is no connector %q. GET /api/connectors lists them.", provider)
}

// Catalog lists every connector with its state in the principal's workspace, by provider.
func (s *Service) Catalog(ctx context.Context, p core.Principal) ([]core.Connector, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	rows, err := s.DB.ConnectionsOf(ctx, store.WorkspaceID(p.WorkspaceID), "")
	if err != nil {
		return nil, err
	}
	out := []core.Connector{}
	for _, m := range s.Manifests() {
		if m.Connector == nil {
			continue
		}
		c, err := s.entry(m, rows)
		if err != nil {
			return nil, err
		}
		out = append(out, *c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Provider < out[j].Provider })
	return out, nil
}

// Get is one entry of the catalog.
func (s *Service) Get(ctx context.Context, p core.Principal, provider string) (*core.Connector, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	m, err := s.manifest(provider)
	if err != nil {
		return nil, err
	}
	rows, err := s.DB.ConnectionsOf(ctx, store.WorkspaceID(p.WorkspaceID), provider)
	if err != nil {
		return nil, err
	}
	return s.entry(*m, rows)
}

// entry joins a manifest with the connections of a workspace.
func (s *Service) entry(m schemas.Manifest, rows []store.Connection) (*core.Connector, error) {
	info := m.Connector
	c := &core.Connector{Provider: info.Provider, Title: m.Title, Description: m.Description, Capability: core.ConnectorCapability(info.Capability),
		Effects: effects(m), Scopes: []string{}}
	var mine []store.Connection
	for _, row := range rows {
		if row.Provider == info.Provider {
			mine = append(mine, row)
		}
	}
	if len(mine) == 0 {
		g, err := s.guidance(m, nil)
		if err != nil {
			return nil, err
		}
		c.SetupGuidance = g
		c.Status, c.StatusReason = core.ConnectorStatusSetupRequired, "This workspace has not connected it yet."
		if mode(m) == schemas.ManifestNeedsCredentialModeOauth && s.OAuth[info.Provider].ID == "" {
			c.Status, c.StatusReason = core.ConnectorStatusNotConfigured, "This installation has no OAuth client for it."
		}
		return c, nil
	}
	best := mine[0]
	for _, row := range mine {
		if row.Status == core.ConnectorStatusConnected {
			best = row
		}
		if multiple(m) {
			c.Endpoints = append(c.Endpoints, core.ConnectorEndpoint{Name: row.Name, URL: row.Address})
		}
		if t := row.LastSnapshotAt.Ptr(); t != nil {
			c.LastSnapshotAt = t
		}
	}
	c.Status, c.StatusReason, c.Account = best.Status, best.StatusReason, best.Account
	c.Scopes = append(c.Scopes, best.Scopes...)
	if c.Status != core.ConnectorStatusConnected {
		g, err := s.guidance(m, &best)
		if err != nil {
			return nil, err
		}
		c.SetupGuidance = g
	}
	return c, nil
}

func mode(m schemas.Manifest) schemas.CredentialMode {
	if m.Needs.Credential == nil {
		return schemas.ManifestNeedsCredentialModeNone
	}
	return m.Needs.Credential.Mode
}

func multiple(m schemas.Manifest) bool {
	c := m.Needs.Credential
	return c != nil && c.Multiple != nil && *c.Multiple
}

// effects says what a connector can do once connected; one that is only ready to be set
// up will read.
func effects(m schemas.Manifest) []core.ConnectorEffectsElem {
	out := []core.ConnectorEffectsElem{}
	has := func(e schemas.Effect) bool {
		return slices.ContainsFunc(m.Tools, func(t schemas.ToolDocument) bool { return t.Effect == e })
	}
	if has(schemas.EffectRead) || !has(schemas.EffectWrite) {
		out = append(out, core.ConnectorEffectsElemRead)
	}
	if has(schemas.EffectWrite) {
		out = append(out, core.ConnectorEffectsElemWrite)
	}
	return out
}

// guidance is the manifest's setup guidance for the state of a connection.
func (s *Service) guidance(m schemas.Manifest, row *store.Connection) (*core.SetupGuidance, error) {
	raw, err := json.Marshal(m.Connector.Setup)
	if err != nil {
		return nil, err
	}
	g := &core.SetupGuidance{}
	if err := json.Unmarshal(raw, g); err != nil {
		return nil, core.Errf(core.KindInternal, "bad_manifest", "The setup guidance of %s cannot be read.", m.Connector.Provider)
	}
	if g.NextToolCalls == nil {
		g.NextToolCalls = []core.SetupNextCall{}
	}
	g.Status = core.SetupGuidanceStatusSetupRequired
	if mode(m) == schemas.ManifestNeedsCredentialModeOauth {
		redirect := s.redirectURI(m.Connector.Provider)
		g.RedirectUri = &redirect
	}
	if row == nil {
		return g, nil
	}
	switch row.Status {
	case core.ConnectorStatusNeedsReauth:
		g.Status = core.SetupGuidanceStatusNeedsReauth
		g.Error = &core.SetupError{Code: "needs_reauth", Cure: row.StatusReason}
	case core.ConnectorStatusError:
		g.Status = core.SetupGuidanceStatusError
		g.Error = &core.SetupError{Code: "connection_error", Cure: row.StatusReason}
	}
	return g, nil
}
