package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// APIKey is a key for agents or services. Only the SHA-256 of its secret is kept.
type APIKey struct {
	bun.BaseModel `bun:"table:api_keys"`

	ID          string          `bun:"id,pk"`
	WorkspaceID WorkspaceID     `bun:"workspace_id"`
	Name        string          `bun:"name"`
	Kind        core.APIKeyKind `bun:"kind"`
	Scopes      []string        `bun:"scopes"`
	Prefix      string          `bun:"prefix"` // what lists show
	Hash        []byte          `bun:"hash"`
	OwnerID     string          `bun:"owner_id"`  // person who made it
	LiftedTo    core.Proof      `bun:"lifted_to"` // proof level granted by an owner; empty otherwise
	ExpiresAt   Time            `bun:"expires_at"`
	LastUsedAt  Time            `bun:"last_used_at"`
	RevokedAt   Time            `bun:"revoked_at"`
	CreatedAt   Time            `bun:"created_at"`
	Version     int64           `bun:"version"`
}

func (k *APIKey) ref() (string, string, *int64) { return "key", k.ID, &k.Version }

// SystemAPIKey reads a key by the identifier in it, also a revoked or expired one.
func (r Reader) SystemAPIKey(ctx context.Context, id string) (*APIKey, error) {
	return lookup[APIKey](ctx, r, "key", id, "id = ?", id)
}

// APIKey reads a key of the workspace.
func (r Reader) APIKey(ctx context.Context, ws WorkspaceID, id string) (*APIKey, error) {
	return byID[APIKey](ctx, r, "key", ws, id)
}

// ListAPIKeys lists the keys of the workspace.
func (r Reader) ListAPIKeys(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[APIKey], error) {
	l := listing[APIKey]{noun: "key", key: "id", since: "created_at", keyOf: func(k *APIKey) string { return k.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery { return s.Where("workspace_id = ?", ws) })
}

// InsertAPIKey adds a key.
func (tx *Tx) InsertAPIKey(ctx context.Context, k *APIKey) error { return insert(ctx, tx, "key", k) }

// UpdateAPIKey writes k if it was not changed since it was read.
func (tx *Tx) UpdateAPIKey(ctx context.Context, k *APIKey) error { return swap(ctx, tx, k) }

// TouchAPIKey notes when a key was last used. It does not count as a change.
func (tx *Tx) TouchAPIKey(ctx context.Context, id string, at time.Time) error {
	return set(ctx, "key", id, tx.w(ctx).NewUpdate().Model((*APIKey)(nil)).Set("last_used_at = ?", At(at)).Where("id = ?", id))
}

// RevokeAPIKey ends a key of the workspace. Ending it again changes nothing.
func (tx *Tx) RevokeAPIKey(ctx context.Context, ws WorkspaceID, id string, at time.Time) error {
	return set(ctx, "key", id, tx.w(ctx).NewUpdate().Model((*APIKey)(nil)).Set("revoked_at = COALESCE(revoked_at, ?)", At(at)).
		Set("version = version + 1").Where("id = ?", id).Where("workspace_id = ?", ws))
}

// SigningKey signs access tokens. The private half is sealed by core/secret.
type SigningKey struct {
	bun.BaseModel `bun:"table:signing_keys"`

	KID       string `bun:"kid,pk"`
	Purpose   string `bun:"purpose"`
	Public    []byte `bun:"public"`
	SecretID  string `bun:"secret_id"`
	RetiredAt Time   `bun:"retired_at"`
	CreatedAt Time   `bun:"created_at"`
}

// SystemSigningKeys reads the signing keys of a purpose, newest first, retired ones too.
func (r Reader) SystemSigningKeys(ctx context.Context, purpose string) ([]SigningKey, error) {
	return all[SigningKey](ctx, r, "signing key", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("purpose = ?", purpose).Order("created_at DESC", "kid DESC")
	})
}

// InsertSigningKey adds a signing key.
func (tx *Tx) InsertSigningKey(ctx context.Context, k *SigningKey) error {
	return insert(ctx, tx, "signing key", k)
}

// RetireSigningKey stops a key from signing; it still verifies.
func (tx *Tx) RetireSigningKey(ctx context.Context, kid string, at time.Time) error {
	return set(ctx, "signing key", kid, tx.w(ctx).NewUpdate().Model((*SigningKey)(nil)).Set("retired_at = ?", At(at)).Where("kid = ?", kid))
}

// Secret is a sealed value; core/secret alone can open it.
type Secret struct {
	bun.BaseModel `bun:"table:secrets"`

	ID          string      `bun:"id,pk"`
	WorkspaceID WorkspaceID `bun:"workspace_id"` // empty for secrets of the installation
	Class       string      `bun:"class"`
	Subject     string      `bun:"subject"` // what it belongs to; bound by the seal
	Format      int         `bun:"format"`
	KeyID       string      `bun:"key_id"` // key that wraps the data key
	WrappedKey  []byte      `bun:"wrapped_key"`
	Sealed      []byte      `bun:"sealed"`
	CreatedAt   Time        `bun:"created_at"`
}

// Secret reads a sealed value of the workspace.
func (r Reader) Secret(ctx context.Context, ws WorkspaceID, id string) (*Secret, error) {
	return byID[Secret](ctx, r, "secret", ws, id)
}

// SystemSecretsNotUnder reads up to limit sealed values of all workspaces that another
// key than keyID wraps, for wrapping them again.
func (r Reader) SystemSecretsNotUnder(ctx context.Context, keyID string, limit int) ([]Secret, error) {
	return all[Secret](ctx, r, "secret", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("key_id <> ?", keyID).Order("id").Limit(int64(limit))
	})
}

// InsertSecret adds a sealed value.
func (tx *Tx) InsertSecret(ctx context.Context, s *Secret) error {
	return insert(ctx, tx, "secret", s)
}

// RewrapSecret replaces the wrapped data key; the sealed value stays.
func (tx *Tx) RewrapSecret(ctx context.Context, id, oldKeyID, newKeyID string, wrapped []byte) error {
	return set(ctx, "secret", id, tx.w(ctx).NewUpdate().Model((*Secret)(nil)).Set("key_id = ?", newKeyID).
		Set("wrapped_key = ?", wrapped).Where("id = ?", id).Where("key_id = ?", oldKeyID))
}

// DeleteSecret forgets a sealed value.
func (tx *Tx) DeleteSecret(ctx context.Context, ws WorkspaceID, id string) error {
	return remove(ctx, "secret", id, tx.w(ctx).NewDelete().Model((*Secret)(nil)).Where("id = ?", id).Where("workspace_id = ?", ws))
}
