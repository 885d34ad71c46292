package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Session is a sign-in of a person. Only the SHA-256 of its token is kept.
type Session struct {
	bun.BaseModel `bun:"table:sessions"`

	ID          string      `bun:"id,pk"`
	TokenHash   []byte      `bun:"token_hash"`
	UserID      string      `bun:"user_id"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	AuthTime    Time        `bun:"auth_time"`
	LastSeenAt  Time        `bun:"last_seen_at"`
	ExpiresAt   Time        `bun:"expires_at"`
	RevokedAt   Time        `bun:"revoked_at"`
	UserAgent   string      `bun:"user_agent"`
	IP          string      `bun:"ip"`
	CreatedAt   Time        `bun:"created_at"`
}

// SystemSessionByHash reads a session by the hash of its token, also an ended one.
func (r Reader) SystemSessionByHash(ctx context.Context, hash []byte) (*Session, error) {
	return lookup[Session](ctx, r, "session", "", "token_hash = ?", hash)
}

// SystemSession reads a session by identifier, also an ended one.
func (r Reader) SystemSession(ctx context.Context, id string) (*Session, error) {
	return lookup[Session](ctx, r, "session", id, "id = ?", id)
}

// SessionsOf reads the sessions of a person that are not ended at now, newest first.
func (r Reader) SessionsOf(ctx context.Context, userID string, now time.Time) ([]Session, error) {
	return all[Session](ctx, r, "session", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", userID).Where("revoked_at IS NULL").Where("expires_at > ?", At(now)).Order("id DESC")
	})
}

// InsertSession adds a session.
func (tx *Tx) InsertSession(ctx context.Context, s *Session) error {
	return insert(ctx, tx, "session", s)
}

// TouchSession notes when a session was last used and until when it now lasts.
func (tx *Tx) TouchSession(ctx context.Context, id string, lastSeen, expires time.Time) error {
	return set(ctx, "session", id, tx.w(ctx).NewUpdate().Model((*Session)(nil)).
		Set("last_seen_at = ?", At(lastSeen)).Set("expires_at = ?", At(expires)).Where("id = ?", id))
}

// ReauthSession notes that the person proved again who they are.
func (tx *Tx) ReauthSession(ctx context.Context, id string, at time.Time) error {
	return set(ctx, "session", id, tx.w(ctx).NewUpdate().Model((*Session)(nil)).Set("auth_time = ?", At(at)).Where("id = ?", id))
}

// RevokeSession ends a session.
func (tx *Tx) RevokeSession(ctx context.Context, id string, at time.Time) error {
	return set(ctx, "session", id, tx.w(ctx).NewUpdate().Model((*Session)(nil)).Set("revoked_at = ?", At(at)).Where("id = ?", id))
}

// RevokeSessionsOf ends every session of a person, for example after a new password.
func (tx *Tx) RevokeSessionsOf(ctx context.Context, userID string, at time.Time) error {
	_, err := tx.w(ctx).NewUpdate().Model((*Session)(nil)).Set("revoked_at = ?", At(at)).
		Where("user_id = ?", userID).Where("revoked_at IS NULL").Exec(ctx)
	if err != nil {
		return failed("end sessions", err)
	}
	return nil
}

// PurgeSessions removes sessions that expired before a moment.
func (tx *Tx) PurgeSessions(ctx context.Context, before time.Time) (int, error) {
	return purge(ctx, "session", tx.w(ctx).NewDelete().Model((*Session)(nil)).Where("expires_at < ?", At(before)))
}

// SetupToken lets the first owner in, once. Only its SHA-256 is kept.
type SetupToken struct {
	bun.BaseModel `bun:"table:setup_tokens"`

	Hash      []byte `bun:"hash,pk"`
	ExpiresAt Time   `bun:"expires_at"`
	UsedAt    Time   `bun:"used_at"`
	CreatedAt Time   `bun:"created_at"`
}

// SystemSetupToken reads a set-up token by its hash.
func (r Reader) SystemSetupToken(ctx context.Context, hash []byte) (*SetupToken, error) {
	return one[SetupToken](ctx, r, "set-up token", "", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("hash = ?", hash) })
}

// InsertSetupToken adds a set-up token and removes all earlier ones.
func (tx *Tx) InsertSetupToken(ctx context.Context, t *SetupToken) error {
	if _, err := tx.w(ctx).NewDelete().Model((*SetupToken)(nil)).Where("1 = 1").Exec(ctx); err != nil {
		return failed("remove set-up tokens", err)
	}
	return insert(ctx, tx, "set-up token", t)
}

// UseSetupToken uses a token up. One that is unknown, used or expired is gone.
func (tx *Tx) UseSetupToken(ctx context.Context, hash []byte, now time.Time) error {
	err := set(ctx, "set-up token", "", tx.w(ctx).NewUpdate().Model((*SetupToken)(nil)).Set("used_at = ?", At(now)).
		Where("hash = ?", hash).Where("used_at IS NULL").Where("expires_at > ?", At(now)))
	if core.IsKind(err, core.KindNotFound) {
		return core.Errf(core.KindGone, "setup_token_gone", "This set-up link was used or has expired. Restart sallyport serve for a new one, or run sallyport init.")
	}
	return err
}

// RefreshToken renews access tokens, once each; a second use ends its whole family.
type RefreshToken struct {
	bun.BaseModel `bun:"table:refresh_tokens"`

	Hash        []byte      `bun:"hash,pk"`
	Family      string      `bun:"family"`
	UserID      string      `bun:"user_id"`
	WorkspaceID WorkspaceID `bun:"workspace_id"`
	Client      string      `bun:"client"`
	Scopes      []string    `bun:"scopes"`
	AuthTime    Time        `bun:"auth_time"`
	ExpiresAt   Time        `bun:"expires_at"`
	UsedAt      Time        `bun:"used_at"`
	RevokedAt   Time        `bun:"revoked_at"`
	CreatedAt   Time        `bun:"created_at"`
}

// SystemRefreshToken reads a refresh token by its hash, also a used one.
func (r Reader) SystemRefreshToken(ctx context.Context, hash []byte) (*RefreshToken, error) {
	return one[RefreshToken](ctx, r, "refresh token", "", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("hash = ?", hash) })
}

// InsertRefreshToken adds a refresh token.
func (tx *Tx) InsertRefreshToken(ctx context.Context, t *RefreshToken) error {
	return insert(ctx, tx, "refresh token", t)
}

// UseRefreshToken uses a token up; false means that it was used before.
func (tx *Tx) UseRefreshToken(ctx context.Context, hash []byte, now time.Time) (bool, error) {
	err := set(ctx, "refresh token", "", tx.w(ctx).NewUpdate().Model((*RefreshToken)(nil)).Set("used_at = ?", At(now)).
		Where("hash = ?", hash).Where("used_at IS NULL").Where("revoked_at IS NULL"))
	if core.IsKind(err, core.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}

// RevokeRefreshTokens ends a family of tokens.
func (tx *Tx) RevokeRefreshTokens(ctx context.Context, family string, now time.Time) error {
	return set(ctx, "refresh token", family, tx.w(ctx).NewUpdate().Model((*RefreshToken)(nil)).Set("revoked_at = ?", At(now)).Where("family = ?", family))
}

// Throttle counts attempts under a key, for example failed sign-ins from an address.
type Throttle struct {
	bun.BaseModel `bun:"table:throttles"`

	Key          string `bun:"key,pk"`
	Count        int    `bun:"count"`
	WindowStart  Time   `bun:"window_start"`
	BlockedUntil Time   `bun:"blocked_until"`
}

// Throttle reads the count under a key; an unknown key has none.
func (r Reader) Throttle(ctx context.Context, key string) (*Throttle, error) {
	t, err := one[Throttle](ctx, r, "throttle", key, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("key = ?", key) })
	if core.IsKind(err, core.KindNotFound) {
		return &Throttle{Key: key}, nil
	}
	return t, err
}

// PutThrottle writes the count under a key.
func (tx *Tx) PutThrottle(ctx context.Context, t *Throttle) error {
	_, err := tx.w(ctx).NewInsert().Model(t).On("CONFLICT (key) DO UPDATE").Set("count = EXCLUDED.count").
		Set("window_start = EXCLUDED.window_start").Set("blocked_until = EXCLUDED.blocked_until").Exec(ctx)
	if err != nil {
		return failed("write a throttle", err)
	}
	return nil
}

// PurgeThrottles removes counts whose window began before a moment.
func (tx *Tx) PurgeThrottles(ctx context.Context, before time.Time) (int, error) {
	return purge(ctx, "throttle", tx.w(ctx).NewDelete().Model((*Throttle)(nil)).Where("window_start < ?", At(before)))
}
