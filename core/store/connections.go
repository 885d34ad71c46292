package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Connection binds a workspace to an account at a provider. Its secrets are sealed
// under SecretID; Fields holds only what may be shown.
type Connection struct {
	bun.BaseModel `bun:"table:connections"`

	ID             string               `bun:"id,pk"`
	WorkspaceID    WorkspaceID          `bun:"workspace_id"`
	Provider       string               `bun:"provider"`
	Name           string               `bun:"name"` // empty but where a provider takes several
	Account        string               `bun:"account"`
	Address        string               `bun:"address"` // host or URL the owner typed, if any
	Fields         map[string]string    `bun:"fields"`
	Audiences      JSON                 `bun:"audiences"`
	Scopes         []string             `bun:"scopes"`
	SecretID       string               `bun:"secret_id"`
	Status         core.ConnectorStatus `bun:"status"`
	StatusReason   string               `bun:"status_reason"`
	BindingDigest  string               `bun:"binding_digest"` // changes when account or address do
	LastSnapshotAt Time                 `bun:"last_snapshot_at"`
	CreatedBy      core.Actor           `bun:"created_by"`
	CreatedAt      Time                 `bun:"created_at"`
	UpdatedAt      Time                 `bun:"updated_at"`
	Version        int64                `bun:"version"`
}

func (c *Connection) ref() (string, string, *int64) { return "connection", c.ID, &c.Version }

// Connection reads a connection.
func (r Reader) Connection(ctx context.Context, ws WorkspaceID, id string) (*Connection, error) {
	return byID[Connection](ctx, r, "connection", ws, id)
}

// ConnectionByName reads the connection of a provider with a name; most have one, named "".
func (r Reader) ConnectionByName(ctx context.Context, ws WorkspaceID, provider, name string) (*Connection, error) {
	return one[Connection](ctx, r, "connection", provider+" "+name, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("provider = ?", provider).Where("name = ?", name)
	})
}

// ConnectionsOf reads every connection of the workspace, by provider and name; of one
// provider where it is not "".
func (r Reader) ConnectionsOf(ctx context.Context, ws WorkspaceID, provider string) ([]Connection, error) {
	if provider != "" {
		return lookups[Connection](ctx, r, "connection", "workspace_id = ? AND provider = ?", "provider, name", ws, provider)
	}
	return lookups[Connection](ctx, r, "connection", "workspace_id = ?", "provider, name", ws)
}

// ListConnections lists connections, newest first. Status of the query applies.
func (r Reader) ListConnections(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Connection], error) {
	l := listing[Connection]{noun: "connection", key: "id", since: "created_at", keyOf: func(c *Connection) string { return c.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery {
		return ofRun(s.Where("workspace_id = ?", ws), core.Query{Status: q.Status})
	})
}

// InsertConnection adds a connection; a second one of the same provider and name is a conflict.
func (tx *Tx) InsertConnection(ctx context.Context, c *Connection) error {
	return insert(ctx, tx, "connection", c)
}

// UpdateConnection writes c if it was not changed since it was read.
func (tx *Tx) UpdateConnection(ctx context.Context, c *Connection) error {
	return swap(ctx, tx, c, "workspace_id", "provider", "name", "created_by")
}

// DeleteConnection removes a connection; its secret is the caller's to delete.
func (tx *Tx) DeleteConnection(ctx context.Context, ws WorkspaceID, id string) error {
	return remove(ctx, "connection", id, tx.w(ctx).NewDelete().Model((*Connection)(nil)).Where("id = ?", id).Where("workspace_id = ?", ws))
}

// OAuthState is a sign-in at a provider under way. The state's SHA-256 is the key.
type OAuthState struct {
	bun.BaseModel `bun:"table:oauth_states"`

	Hash        []byte      `bun:"hash,pk"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	Provider    string      `bun:"provider"`
	UserID      string      `bun:"user_id"`
	SessionID   string      `bun:"session_id"`
	SecretID    string      `bun:"secret_id"` // sealed PKCE verifier
	RedirectURI string      `bun:"redirect_uri"`
	ExpiresAt   Time        `bun:"expires_at"`
	UsedAt      Time        `bun:"used_at"`
	CreatedAt   Time        `bun:"created_at"`
}

// InsertOAuthState adds a sign-in under way.
func (tx *Tx) InsertOAuthState(ctx context.Context, s *OAuthState) error {
	return insert(ctx, tx, "sign-in", s)
}

// UseOAuthState reads a sign-in under way and uses it up; once, and before it expires.
func (tx *Tx) UseOAuthState(ctx context.Context, hash []byte, now time.Time) (*OAuthState, error) {
	err := set(ctx, "sign-in", "", tx.w(ctx).NewUpdate().Model((*OAuthState)(nil)).Set("used_at = ?", At(now)).
		Where("hash = ?", hash).Where("used_at IS NULL").Where("expires_at > ?", At(now)))
	if core.IsKind(err, core.KindNotFound) {
		return nil, core.Errf(core.KindGone, "oauth_state_gone", "This sign-in was used or has expired. Start connecting again.")
	}
	if err != nil {
		return nil, err
	}
	return one[OAuthState](ctx, tx.Reader, "sign-in", "", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("hash = ?", hash) })
}

// Snapshot is what a connector held at one moment. Data is the resource.
type Snapshot struct {
	bun.BaseModel `bun:"table:snapshots"`

	ID           string              `bun:"id,pk"`
	WorkspaceID  WorkspaceID         `bun:"workspace_id"`
	Provider     string              `bun:"provider"`
	ConnectionID string              `bun:"connection_id"`
	Source       core.SnapshotSource `bun:"source"`
	Digest       string              `bun:"digest"`
	Data         JSON                `bun:"data"`
	CapturedAt   Time                `bun:"captured_at"`
}

// Snapshot reads a snapshot.
func (r Reader) Snapshot(ctx context.Context, ws WorkspaceID, id string) (*Snapshot, error) {
	return byID[Snapshot](ctx, r, "snapshot", ws, id)
}

// LatestSnapshot reads the newest snapshot of a provider.
func (r Reader) LatestSnapshot(ctx context.Context, ws WorkspaceID, provider string) (*Snapshot, error) {
	return one[Snapshot](ctx, r, "snapshot", "of "+provider, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("workspace_id = ?", ws).Where("provider = ?", provider).Order("id DESC")
	})
}

// ListSnapshots lists the snapshots of a provider, newest first; of all where it is "".
func (r Reader) ListSnapshots(ctx context.Context, ws WorkspaceID, provider string, q core.Query) (core.Page[Snapshot], error) {
	l := listing[Snapshot]{noun: "snapshot", key: "id", since: "captured_at", keyOf: func(s *Snapshot) string { return s.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery {
		s = s.Where("workspace_id = ?", ws)
		if provider != "" {
			s = s.Where("provider = ?", provider)
		}
		return s
	})
}

// InsertSnapshot adds a snapshot.
func (tx *Tx) InsertSnapshot(ctx context.Context, s *Snapshot) error {
	return insert(ctx, tx, "snapshot", s)
}
