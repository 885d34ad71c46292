package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// endpointOf takes from a manifest's endpoint what sealing and sending need.
func endpointOf(e schemas.Endpoint) effect.Endpoint {
	out := effect.Endpoint{ID: e.ID, Class: string(e.Class), Transport: "http", Host: e.Host, Query: slices.Clone(e.Query), Headers: slices.Clone(e.Headers), Definite: slices.Clone(e.Definite)}
	if e.Transport != nil {
		out.Transport = string(*e.Transport)
	}
	if e.Method != nil {
		out.Method = string(*e.Method)
	}
	if e.Path != nil {
		out.Path = *e.Path
	}
	if len(e.PathParams) > 0 {
		out.PathParams = map[string]string{}
		for name, kind := range e.PathParams {
			out.PathParams[name] = string(kind)
		}
	}
	for _, s := range e.Signers {
		out.Signers = append(out.Signers, string(s))
	}
	if e.TimeoutSeconds != nil {
		out.TimeoutSeconds = *e.TimeoutSeconds
	}
	if e.MaxResponseBytes != nil {
		out.MaxResponseBytes = *e.MaxResponseBytes
	}
	return out
}

// bindingOf is everything beside the steps that the digest of an action covers, read
// from the columns that hold it.
func bindingOf(a *store.Action, installationID string) (effect.Binding, error) {
	b := effect.Binding{InstallationID: installationID, WorkspaceID: string(a.WorkspaceID), RunID: a.RunID, ActionID: a.ID, Revision: a.Revision,
		Tool: a.Tool, Plugin: a.Plugin, Connector: a.Connector, Channel: a.Channel,
		PluginDigest: a.PluginDigest, ManifestDigest: a.ManifestDigest, ToolDigest: a.ToolDigest,
		EvidenceIDs: a.EvidenceIDs, DependsOn: a.DependsOn, Supersedes: a.Supersedes, Reversibility: string(a.Reversibility),
		Proof: string(a.Proof), Needed: a.Needed, IdempotencyKey: a.IdempotencyKey, NotAfter: a.ExpiresAt.Time}
	sum := sha256.Sum256(a.Input)
	b.InputSHA256 = hex.EncodeToString(sum[:])
	for _, r := range a.AssetRefs {
		b.AssetRefs = append(b.AssetRefs, effect.AssetRef{ID: r.ID, Revision: r.Revision, Digest: r.Digest})
	}
	if err := a.Connection.Decode(&b.Connection); err != nil {
		return b, err
	}
	return b, a.Endpoints.Decode(&b.Endpoints)
}

// opened is an action's sealed effect, read back from the bytes that were stored.
type opened struct {
	sealed   effect.Sealed
	resolved effect.Resolved
	digest   [32]byte
}

// open reads the sealed effect of a row, resolves it and computes its digest.
func open(a *store.Action, installationID string) (*opened, error) {
	sealed, err := effect.Decode(a.Sealed)
	if err != nil {
		return nil, err
	}
	b, err := bindingOf(a, installationID)
	if err != nil {
		return nil, err
	}
	resolved, err := effect.Resolve(*sealed, b.Endpoints, b.Connection)
	if err != nil {
		return nil, err
	}
	return &opened{*sealed, *resolved, effect.Digest(*sealed, b)}, nil
}

// derive fills the columns that follow from the sealed effect: what people see and
// what lists show. They are drawn by core from the sealed bytes, never from prose.
func (o *opened) derive(a *store.Action) error {
	preview, err := json.Marshal(effect.Preview(o.sealed, o.resolved))
	if err != nil {
		return fmt.Errorf("preview: %w", err)
	}
	a.Digest, a.Kind, a.Title, a.Preview = hex.EncodeToString(o.digest[:]), o.sealed.Kind, effect.Title(o.sealed, o.resolved), store.JSON(preview)
	a.ContentSHA256, a.Reach = effect.ContentSHA256(o.sealed), max(o.sealed.Reach, mailReach(o.resolved))
	a.TargetAccount, a.TargetLabel = o.sealed.Target.AccountID, o.sealed.Target.Label
	a.ConnectionID, a.Account = o.resolved.Connection.ID, o.resolved.Connection.Account
	a.Executor, a.CostMicros, a.Currency = core.ActionExecutorConnector, 0, "USD"
	if len(o.sealed.Steps) == 0 {
		a.Executor = core.ActionExecutorManual
	}
	if o.sealed.Money != nil {
		a.CostMicros, a.Currency = o.sealed.Money.Micros, o.sealed.Money.Currency
	}
	a.NotBefore = store.AtPtr(o.sealed.NotBefore)
	return nil
}

func mailReach(r effect.Resolved) int {
	n := 0
	for _, s := range r.Steps {
		if s.Mail != nil {
			n += len(s.Mail.To)
		}
	}
	return n
}

// check compares a row with what its sealed bytes say. Any difference means that
// somebody changed the database: what people saw is then not what would be sent.
func check(a *store.Action, installationID string) (*opened, error) {
	o, err := open(a, installationID)
	if err != nil {
		return nil, fmt.Errorf("the sealed effect no longer reads: %w", err)
	}
	again := *a
	if err := o.derive(&again); err != nil {
		return nil, err
	}
	switch {
	case again.Digest != a.Digest:
		return nil, fmt.Errorf("the digest of the stored effect is %s, not %s", again.Digest, a.Digest)
	case !bytes.Equal(again.Preview, a.Preview) || again.Title != a.Title || again.Kind != a.Kind:
		return nil, fmt.Errorf("title, kind or preview is not what the stored effect says")
	case !slices.Equal(again.ContentSHA256, a.ContentSHA256) || again.Reach != a.Reach:
		return nil, fmt.Errorf("content hashes or reach are not what the stored effect says")
	case again.TargetAccount != a.TargetAccount || again.TargetLabel != a.TargetLabel || again.ConnectionID != a.ConnectionID || again.Account != a.Account:
		return nil, fmt.Errorf("target or account is not what the stored effect says")
	case again.Executor != a.Executor || again.CostMicros != a.CostMicros || again.Currency != a.Currency || !again.NotBefore.Equal(a.NotBefore.Time):
		return nil, fmt.Errorf("executor, cost or start is not what the stored effect says")
	}
	return o, nil
}
