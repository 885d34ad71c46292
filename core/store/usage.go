package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Usage counts the calls of one tool in one period of a workspace.
type Usage struct {
	bun.BaseModel `bun:"table:usage_counts"`

	WorkspaceID WorkspaceID `bun:"workspace_id,pk"`
	Period      string      `bun:"period,pk"` // for example 2026-11 or 2026-11-21
	Tool        string      `bun:"tool,pk"`
	Calls       int64       `bun:"calls"`
	Errors      int64       `bun:"errors"`
	Credits     float64     `bun:"credits"`
	CostMicros  int64       `bun:"cost_micros"`
}

// UsageOf reads the counts of a period, by tool.
func (r Reader) UsageOf(ctx context.Context, ws WorkspaceID, period string) ([]Usage, error) {
	return all[Usage](ctx, r, "usage", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("period = ?", period).Order("tool")
	})
}

// AddUsage adds u to what is counted already.
func (tx *Tx) AddUsage(ctx context.Context, u *Usage) error {
	_, err := tx.w(ctx).NewInsert().Model(u).On("CONFLICT (workspace_id, period, tool) DO UPDATE").
		Set("calls = ?TableAlias.calls + EXCLUDED.calls").Set("errors = ?TableAlias.errors + EXCLUDED.errors").
		Set("credits = ?TableAlias.credits + EXCLUDED.credits").Set("cost_micros = ?TableAlias.cost_micros + EXCLUDED.cost_micros").Exec(ctx)
	if err != nil {
		return failed("count usage", err)
	}
	return nil
}

// Memory is something a workspace remembers between runs, for example its brand DNA.
type Memory struct {
	bun.BaseModel `bun:"table:memory"`

	WorkspaceID WorkspaceID `bun:"workspace_id,pk"`
	Key         string      `bun:"key,pk"`
	Value       JSON        `bun:"value"`
	UpdatedBy   string      `bun:"updated_by"`
	UpdatedAt   Time        `bun:"updated_at"`
}

// Memory reads what is remembered under a key.
func (r Reader) Memory(ctx context.Context, ws WorkspaceID, key string) (*Memory, error) {
	return one[Memory](ctx, r, "memory", key, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("key = ?", key)
	})
}

// MemoryKeys reads the keys under which the workspace remembers something, sorted.
func (r Reader) MemoryKeys(ctx context.Context, ws WorkspaceID) ([]string, error) {
	rows, err := all[Memory](ctx, r, "memory", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Column("key").Where("workspace_id = ?", ws).Order("key")
	})
	keys := make([]string, len(rows))
	for i := range rows {
		keys[i] = rows[i].Key
	}
	return keys, err
}

// PutMemory remembers a value, in place of an earlier one under the same key.
func (tx *Tx) PutMemory(ctx context.Context, m *Memory) error {
	_, err := tx.w(ctx).NewInsert().Model(m).On("CONFLICT (workspace_id, key) DO UPDATE").Set("value = EXCLUDED.value").
		Set("updated_by = EXCLUDED.updated_by").Set("updated_at = EXCLUDED.updated_at").Exec(ctx)
	if err != nil {
		return failed("remember", err)
	}
	return nil
}

// DeleteMemory forgets what is remembered under a key.
func (tx *Tx) DeleteMemory(ctx context.Context, ws WorkspaceID, key string) error {
	return remove(ctx, "memory", key, tx.w(ctx).NewDelete().Model((*Memory)(nil)).Where("workspace_id = ?", ws).Where("key = ?", key))
}

// Idempotency remembers the answer to a request that named an idempotency key.
type Idempotency struct {
	bun.BaseModel `bun:"table:idempotency"`

	WorkspaceID WorkspaceID       `bun:"workspace_id,pk"`
	PrincipalID string            `bun:"principal_id,pk"`
	Key         string            `bun:"key,pk"`
	BodyHash    string            `bun:"body_hash"` // over method, path and body
	Done        bool              `bun:"done"`
	Status      int               `bun:"status"`
	Headers     map[string]string `bun:"headers"`
	Body        []byte            `bun:"body"`
	At          Time              `bun:"at"`
}

// BeginIdempotent claims a key. If it is claimed already the row that is there is
// returned and nothing is written; otherwise nil.
func (tx *Tx) BeginIdempotent(ctx context.Context, row *Idempotency) (*Idempotency, error) {
	res, err := tx.w(ctx).NewInsert().Model(row).On("CONFLICT (workspace_id, principal_id, key) DO NOTHING").Exec(ctx)
	if err != nil {
		return nil, failed("claim an idempotency key", err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 1 {
		return nil, nil
	}
	return one[Idempotency](ctx, tx.Reader, "idempotency key", row.Key, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", row.WorkspaceID).Where("principal_id = ?", row.PrincipalID).Where("key = ?", row.Key)
	})
}

// FinishIdempotent stores the answer under a claimed key.
func (tx *Tx) FinishIdempotent(ctx context.Context, row *Idempotency) error {
	row.Done = true
	return set(ctx, "idempotency key", row.Key, tx.w(ctx).NewUpdate().Model(row).WherePK())
}

// DropIdempotent gives a claimed key free, after a failure that may be repeated.
func (tx *Tx) DropIdempotent(ctx context.Context, ws WorkspaceID, principalID, key string) error {
	return remove(ctx, "idempotency key", key, tx.w(ctx).NewDelete().Model((*Idempotency)(nil)).
		Where("workspace_id = ?", ws).Where("principal_id = ?", principalID).Where("key = ?", key))
}

// PurgeIdempotency removes keys claimed before a moment.
func (tx *Tx) PurgeIdempotency(ctx context.Context, before time.Time) (int, error) {
	return purge(ctx, "idempotency key", tx.w(ctx).NewDelete().Model((*Idempotency)(nil)).Where("at < ?", At(before)))
}

// MCPSession is a session of the MCP surface, so that every host knows whether it
// lives, and where.
type MCPSession struct {
	bun.BaseModel `bun:"table:mcp_sessions"`

	ID          string `bun:"id,pk"`
	HostID      string `bun:"host_id"`
	PrincipalID string `bun:"principal_id"`
	EndedAt     Time   `bun:"ended_at"`
	CreatedAt   Time   `bun:"created_at"`
}

// SystemMCPSession reads a session, also an ended one.
func (r Reader) SystemMCPSession(ctx context.Context, id string) (*MCPSession, error) {
	return lookup[MCPSession](ctx, r, "session", id, "id = ?", id)
}

// InsertMCPSession adds a session.
func (tx *Tx) InsertMCPSession(ctx context.Context, s *MCPSession) error {
	return insert(ctx, tx, "session", s)
}

// EndMCPSession ends a session.
func (tx *Tx) EndMCPSession(ctx context.Context, id string, at time.Time) error {
	return set(ctx, "session", id, tx.w(ctx).NewUpdate().Model((*MCPSession)(nil)).Set("ended_at = ?", At(at)).Where("id = ?", id))
}
