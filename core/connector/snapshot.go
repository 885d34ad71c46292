package connector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
)

// taken is what every snapshot tool answers.
type taken struct {
	Account string                  `json:"account"`
	Window  *core.SnapshotWindow    `json:"window"`
	Metrics map[string]any          `json:"metrics"`
	Rows    []core.SnapshotRowsElem `json:"rows"`
}

// Snapshot reads what a connected provider holds, or says how to connect it. A
// connection that no longer works answers guidance too, with the error and its cure.
func (s *Service) Snapshot(ctx context.Context, p core.Principal, provider string) (*core.Snapshot, error) {
	if err := p.Require(core.ScopeRunsWrite); err != nil {
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
	if len(rows) == 0 {
		return s.guide(p, *m, nil, nil)
	}
	row := rows[0]
	if row.Status != core.ConnectorStatusConnected {
		return s.guide(p, *m, &row, nil)
	}
	if m.Connector.SnapshotTool == nil || s.CallTool == nil {
		return s.guide(p, *m, &row, &core.SetupError{Code: "no_snapshot", Cure: m.Title + " is connected and offers no snapshot in this version."})
	}
	raw, err := s.CallTool(ctx, p, *m.Connector.SnapshotTool, json.RawMessage(`{}`))
	if err != nil {
		return s.failed(ctx, p, *m, row, core.AsError(err))
	}
	return s.keep(ctx, p, row, raw)
}

// failed turns a failed reading into guidance. What is our own fault stays an error.
func (s *Service) failed(ctx context.Context, p core.Principal, m schemas.Manifest, row store.Connection, e *core.Error) (*core.Snapshot, error) {
	if e.Kind == core.KindInternal || e.Kind == core.KindRateLimited || ctx.Err() != nil {
		return nil, e
	}
	if e.Code == "needs_reauth" {
		if err := s.NeedsReauth(ctx, p.WorkspaceID, row.ID, e.Detail); err != nil {
			return nil, err
		}
		row.Status, row.StatusReason = core.ConnectorStatusNeedsReauth, e.Detail
		return s.guide(p, m, &row, nil)
	}
	return s.guide(p, m, &row, &core.SetupError{Code: e.Code, Cure: e.Detail})
}

// guide is a snapshot that says how to connect.
func (s *Service) guide(p core.Principal, m schemas.Manifest, row *store.Connection, problem *core.SetupError) (*core.Snapshot, error) {
	g, err := s.guidance(m, row)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		g.Status, g.Error = core.SetupGuidanceStatusError, problem
	}
	now := s.Clock.Now()
	snap := &core.Snapshot{ID: core.NewID(core.PrefixSnapshot, now), WorkspaceID: p.WorkspaceID, Provider: m.Connector.Provider,
		Source: core.SnapshotSourceSetupGuidance, SetupGuidance: g, CapturedAt: now.UTC().Truncate(time.Microsecond)}
	raw, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	snap.Digest = digestOf(raw)
	return snap, nil
}

// keep stores a live snapshot and what it taught about the account.
func (s *Service) keep(ctx context.Context, p core.Principal, row store.Connection, raw json.RawMessage) (*core.Snapshot, error) {
	var t taken
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, core.Errf(core.KindInternal, "bad_snapshot", "The connector %s answered no snapshot.", row.Provider)
	}
	now := s.Clock.Now()
	snap := &core.Snapshot{ID: core.NewID(core.PrefixSnapshot, now), WorkspaceID: p.WorkspaceID, Provider: row.Provider, Source: core.SnapshotSourceLive,
		Window: t.Window, Metrics: t.Metrics, Rows: t.Rows, CapturedAt: now.UTC().Truncate(time.Microsecond), Digest: digestOf(raw)}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		current, err := tx.Connection(ctx, row.WorkspaceID, row.ID)
		if err != nil {
			return err
		}
		current.LastSnapshotAt, current.UpdatedAt = store.At(now), store.At(now)
		if current.Account == "" && t.Account != "" {
			current.Account = t.Account
			current.BindingDigest = binding(current)
		}
		if err := tx.UpdateConnection(ctx, current); err != nil {
			return err
		}
		stored := &store.Snapshot{ID: snap.ID, WorkspaceID: row.WorkspaceID, Provider: row.Provider, ConnectionID: row.ID, Source: snap.Source,
			Digest: snap.Digest, Data: store.JSONOf(snap), CapturedAt: store.At(now)}
		if err := tx.InsertSnapshot(ctx, stored); err != nil {
			return err
		}
		return s.record(ctx, tx, p, "connector.snapshot", current)
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
