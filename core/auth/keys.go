package auth

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// NewKey is a key to be made.
type NewKey struct {
	Name      string
	Kind      core.APIKeyKind
	Scopes    []string // those of core.ScopesOfKey when empty
	ExpiresAt *time.Time
}

// neverForAgents are scopes that a key of kind agent cannot hold: whoever drafts must
// not decide, nor end the time in which a person may take a yes back, nor say where
// things are sent, nor make credentials that do.
var neverForAgents = []string{core.ScopeActionsApprove, core.ScopeActionsExecute, core.ScopeAdmin, core.ScopeConnectorsManage, core.ScopeKeysManage, core.ScopePluginsManage}

// ownersOnly are scopes that only an owner who just signed in gives to a key.
var ownersOnly = []string{core.ScopeActionsApprove, core.ScopeAdmin, core.ScopeKeysManage, core.ScopePluginsManage}

// CreateKey makes a key; its secret stands in the result and nowhere else. The maker
// gives at most what they hold. actions:approve lifts the decisions of a service key
// to proof level P2, so that it is an owner's act at that level.
func (s *Service) CreateKey(ctx context.Context, p core.Principal, in NewKey) (*core.APIKey, error) {
	if err := p.Require(core.ScopeKeysManage); err != nil {
		return nil, err
	}
	now := s.now()
	if len(in.Scopes) == 0 {
		in.Scopes = core.ScopesOfKey(in.Kind)
	}
	if err := s.checkKey(p, &in, now); err != nil {
		return nil, err
	}
	row := store.APIKey{ID: core.NewID(core.PrefixKey, now), WorkspaceID: store.WorkspaceID(p.WorkspaceID), Name: in.Name, Kind: in.Kind, Scopes: in.Scopes, OwnerID: ownerOf(p),
		ExpiresAt: store.AtPtr(in.ExpiresAt), CreatedAt: store.At(now)}
	if slices.Contains(in.Scopes, core.ScopeActionsApprove) {
		row.LiftedTo = core.ProofP2
	}
	key := makeKey(in.Kind, row.ID)
	row.Prefix, row.Hash = keyPrefix(in.Kind, row.ID), tokenHash("key", key)
	err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertAPIKey(ctx, &row); err != nil {
			return err
		}
		e := audit.By(p, "key.created", row.ID)
		e.Details = map[string]any{"name": row.Name, "kind": string(row.Kind), "scopes": row.Scopes, "liftedTo": string(row.LiftedTo)}
		_, err := s.audit.Append(ctx, tx, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	made := keyResource(&row)
	made.Key = &key
	return &made, nil
}

func (s *Service) checkKey(p core.Principal, in *NewKey, now time.Time) error {
	invalid := func(pointer, message string) error {
		e := core.Errf(core.KindInvalid, "invalid_key", "The key cannot be made: %s %s.", strings.TrimPrefix(pointer, "/"), message)
		e.Fields = []core.FieldError{{Pointer: pointer, Message: message}}
		return e
	}
	if in.Name = strings.TrimSpace(in.Name); in.Name == "" || len(in.Name) > 200 {
		return invalid("/name", "needs 1 to 200 bytes")
	}
	if in.Kind != core.APIKeyKindAgent && in.Kind != core.APIKeyKindService {
		return invalid("/kind", "is agent or service")
	}
	if in.ExpiresAt != nil && !now.Before(*in.ExpiresAt) {
		return invalid("/expiresAt", "lies in the past")
	}
	in.Scopes = slices.Compact(slices.Sorted(slices.Values(in.Scopes)))
	restricted := false
	for _, scope := range in.Scopes {
		switch {
		case !slices.Contains(core.Scopes(), scope):
			return invalid("/scopes", "holds "+scope+", which does not exist; there are "+strings.Join(core.Scopes(), ", "))
		case in.Kind == core.APIKeyKindAgent && slices.Contains(neverForAgents, scope):
			return invalid("/scopes", "holds "+scope+", which a key of kind agent can never hold; a person decides on the review page")
		case !p.Can(scope):
			return core.Errf(core.KindForbidden, "missing_scope", "You cannot give the scope %s, which you do not hold.", scope)
		}
		restricted = restricted || slices.Contains(ownersOnly, scope)
	}
	if !restricted {
		return nil
	}
	if p.Kind != core.ActorKindPerson || p.Role != core.UserRoleOwner {
		return core.Errf(core.KindForbidden, "owners_only", "Only an owner gives one of the scopes %s to a key.", strings.Join(ownersOnly, ", "))
	}
	return s.requireRecent(p, "Giving this scope to a key")
}

func ownerOf(p core.Principal) string {
	if p.Kind == core.ActorKindPerson {
		return p.ID
	}
	return p.OnBehalfOf
}

// Keys lists the keys of the workspace, without their secrets.
func (s *Service) Keys(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.APIKey], error) {
	if err := p.Require(core.ScopeKeysManage); err != nil {
		return core.Page[core.APIKey]{}, err
	}
	rows, err := s.db.ListAPIKeys(ctx, store.WorkspaceID(p.WorkspaceID), q)
	page := core.Page[core.APIKey]{Items: []core.APIKey{}, NextCursor: rows.NextCursor}
	for i := range rows.Items {
		page.Items = append(page.Items, keyResource(&rows.Items[i]))
	}
	return page, err
}

// RevokeKey ends a key from the next request on. Doing it again changes nothing.
func (s *Service) RevokeKey(ctx context.Context, p core.Principal, id string) error {
	if err := p.Require(core.ScopeKeysManage); err != nil {
		return err
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.RevokeAPIKey(ctx, store.WorkspaceID(p.WorkspaceID), id, s.now()); err != nil {
			return err
		}
		_, err := s.audit.Append(ctx, tx, audit.By(p, "key.revoked", id))
		return err
	})
}

// FromKey is who a key stands for. A mistyped key is refused without asking the
// database; an unknown, wrong, revoked or expired one is refused with the same words.
func (s *Service) FromKey(ctx context.Context, key string) (core.Principal, error) {
	refused := core.Errf(core.KindUnauthenticated, "invalid_key", "The key does not hold: it is mistyped, revoked, expired or unknown. An owner makes a new one with sallyport key create.")
	parts, ok := parseKey(key)
	if !ok {
		return core.Principal{}, refused
	}
	row, err := s.db.SystemAPIKey(ctx, parts.id)
	if core.IsKind(err, core.KindNotFound) {
		return core.Principal{}, refused
	}
	if err != nil {
		return core.Principal{}, err
	}
	now := s.now()
	same := subtle.ConstantTimeCompare(row.Hash, tokenHash("key", key)) == 1
	if !same || row.Kind != parts.kind || !row.RevokedAt.IsZero() || !row.ExpiresAt.IsZero() && !now.Before(row.ExpiresAt.Time) {
		return core.Principal{}, refused
	}
	// A key acts for its owner: when they left, nobody answers for it.
	owner, err := s.db.Member(ctx, row.WorkspaceID, row.OwnerID)
	if core.IsKind(err, core.KindNotFound) || err == nil && owner.Disabled {
		return core.Principal{}, refused
	}
	if err != nil {
		return core.Principal{}, err
	}
	// Nor can it do more than the owner may do now, whatever they could when it was made.
	may := core.ScopesOfRole(owner.Role)
	scopes := slices.DeleteFunc(slices.Clone(row.Scopes), func(scope string) bool { return !slices.Contains(may, scope) })
	s.touchKey(ctx, row, now)
	return core.Principal{Kind: core.ActorKindKey, ID: row.ID, Label: row.Name, WorkspaceID: string(row.WorkspaceID), KeyKind: row.Kind, OnBehalfOf: row.OwnerID,
		Scopes: scopes, LiftedTo: liftedTo(row)}, nil
}

// liftedTo never gives an agent key a level, nor any key P3, whatever is stored.
func liftedTo(row *store.APIKey) core.Proof {
	if row.Kind != core.APIKeyKindService || row.LiftedTo != core.ProofP2 {
		return ""
	}
	return row.LiftedTo
}

// touchKey notes the use, at most once a minute. It may fail: the key holds anyway.
func (s *Service) touchKey(ctx context.Context, row *store.APIKey, now time.Time) {
	if now.Sub(row.LastUsedAt.Time) < touchEvery {
		return
	}
	err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.TouchAPIKey(ctx, row.ID, now) })
	if err != nil {
		s.log.Warn("use of a key not noted", "key", row.ID, "error", err)
	}
}

func keyResource(row *store.APIKey) core.APIKey {
	k := core.APIKey{ID: row.ID, Name: row.Name, Kind: row.Kind, Scopes: []string{}, Prefix: row.Prefix, CreatedAt: row.CreatedAt.Time, CreatedBy: row.OwnerID,
		ExpiresAt: row.ExpiresAt.Ptr(), LastUsedAt: row.LastUsedAt.Ptr(), RevokedAt: row.RevokedAt.Ptr()}
	k.Scopes = append(k.Scopes, row.Scopes...)
	return k
}
