package auth

import (
	"context"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// NewUser is a person to be added to the workspace.
type NewUser struct {
	Email, Name, Password string
	Role                  core.UserRole
}

// Users lists the people of the workspace.
func (s *Service) Users(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.User], error) {
	if err := p.Require(core.ScopeAdmin); err != nil {
		return core.Page[core.User]{}, err
	}
	rows, err := s.db.ListMembers(ctx, store.WorkspaceID(p.WorkspaceID), q)
	page := core.Page[core.User]{Items: []core.User{}, NextCursor: rows.NextCursor}
	for i := range rows.Items {
		page.Items = append(page.Items, userResource(&rows.Items[i]))
	}
	return page, err
}

// AddUser adds a person to the principal's workspace. It needs a recent sign-in: a new
// approver is worth as much as an approval.
func (s *Service) AddUser(ctx context.Context, p core.Principal, in NewUser) (*core.User, error) {
	if err := s.ownersAct(p, "Adding a person"); err != nil {
		return nil, err
	}
	email, err := foldEmail(in.Email)
	if err != nil {
		return nil, err
	}
	if err := checkRole(in.Role); err != nil {
		return nil, err
	}
	if err := checkPassword(in.Password, email); err != nil {
		return nil, err
	}
	hash, err := s.hasher.hash(ctx, in.Password)
	if err != nil {
		return nil, err
	}
	now := s.now()
	ws := store.WorkspaceID(p.WorkspaceID)
	m := store.Member{User: store.User{ID: core.NewID(core.PrefixUser, now), Email: email, Name: orDefault(in.Name, email), PasswordHash: hash, CreatedAt: store.At(now), UpdatedAt: store.At(now)}, Role: in.Role}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertUser(ctx, &m.User); err != nil {
			return err
		}
		if err := tx.PutMembership(ctx, &store.Membership{WorkspaceID: ws, UserID: m.ID, Role: in.Role, CreatedAt: store.At(now)}); err != nil {
			return err
		}
		e := audit.By(p, "user.added", m.ID)
		e.Details, e.Personal = map[string]any{"role": string(in.Role)}, map[string]any{"email": email}
		_, err := s.audit.Append(ctx, tx, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	u := userResource(&m)
	return &u, nil
}

// EditUser changes role or standing of a person; nil leaves a field as it is. Closing
// an account ends its sessions. The last owner stays one.
func (s *Service) EditUser(ctx context.Context, p core.Principal, id string, role *core.UserRole, disabled *bool) (*core.User, error) {
	if err := s.ownersAct(p, "Changing a person"); err != nil {
		return nil, err
	}
	if role != nil {
		if err := checkRole(*role); err != nil {
			return nil, err
		}
	}
	ws := store.WorkspaceID(p.WorkspaceID)
	var changed *store.Member
	err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		// Two owners who demote each other at once must queue.
		if _, err := tx.LockLogHead(ctx); err != nil {
			return err
		}
		m, err := tx.Member(ctx, ws, id)
		if err != nil {
			return err
		}
		if role != nil {
			m.Role = *role
		}
		if disabled != nil {
			m.Disabled = *disabled
		}
		if m.Role != core.UserRoleOwner || m.Disabled {
			if err := anotherOwner(ctx, tx, ws, id); err != nil {
				return err
			}
		}
		changed = m
		return s.writeMember(ctx, tx, p, ws, m)
	})
	if err != nil {
		return nil, err
	}
	u := userResource(changed)
	return &u, nil
}

func (s *Service) writeMember(ctx context.Context, tx *store.Tx, p core.Principal, ws store.WorkspaceID, m *store.Member) error {
	now := s.now()
	m.UpdatedAt = store.At(now)
	if err := tx.UpdateUser(ctx, &m.User); err != nil {
		return err
	}
	if err := tx.PutMembership(ctx, &store.Membership{WorkspaceID: ws, UserID: m.ID, Role: m.Role, CreatedAt: store.At(now)}); err != nil {
		return err
	}
	if m.Disabled {
		if err := tx.RevokeSessionsOf(ctx, m.ID, now); err != nil {
			return err
		}
	}
	e := audit.By(p, "user.changed", m.ID)
	e.Details = map[string]any{"role": string(m.Role), "disabled": m.Disabled}
	_, err := s.audit.Append(ctx, tx, e)
	return err
}

// anotherOwner refuses to leave the workspace without an owner.
func anotherOwner(ctx context.Context, tx *store.Tx, ws store.WorkspaceID, except string) error {
	q := core.Query{Limit: core.MaxLimit}
	for {
		page, err := tx.ListMembers(ctx, ws, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if m := &page.Items[i]; m.ID != except && m.Role == core.UserRoleOwner && !m.Disabled {
				return nil
			}
		}
		if page.NextCursor == "" {
			return core.Errf(core.KindConflict, "last_owner", "This is the last owner of the workspace. Make somebody else an owner first.")
		}
		q.Cursor = page.NextCursor
	}
}

// SetPassword gives a person a new password and ends their sessions. The principal is
// the person themself, an owner, or an operator with the data directory in hand.
func (s *Service) SetPassword(ctx context.Context, p core.Principal, userID, password string) error {
	if p.ID != userID {
		if err := p.Require(core.ScopeAdmin); err != nil {
			return err
		}
	}
	if err := s.requireRecent(p, "A new password"); err != nil {
		return err
	}
	m, err := s.db.Member(ctx, store.WorkspaceID(p.WorkspaceID), userID)
	if err != nil {
		return err
	}
	if err := checkPassword(password, m.Email); err != nil {
		return err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now := s.now()
		m, err := tx.Member(ctx, store.WorkspaceID(p.WorkspaceID), userID)
		if err != nil {
			return err
		}
		m.PasswordHash, m.UpdatedAt = hash, store.At(now)
		if err := tx.UpdateUser(ctx, &m.User); err != nil {
			return err
		}
		if err := tx.RevokeSessionsOf(ctx, userID, now); err != nil {
			return err
		}
		_, err = s.audit.Append(ctx, tx, audit.By(p, "user.password_set", userID))
		return err
	})
}

func (s *Service) ownersAct(p core.Principal, what string) error {
	if err := p.Require(core.ScopeAdmin); err != nil {
		return err
	}
	return s.requireRecent(p, what)
}

func checkRole(role core.UserRole) error {
	if core.ScopesOfRole(role) != nil {
		return nil
	}
	e := core.Errf(core.KindInvalid, "unknown_role", "There is no role %q. The roles are owner, approver, member, viewer.", role)
	e.Fields = []core.FieldError{{Pointer: "/role", Message: "is owner, approver, member or viewer"}}
	return e
}

func userResource(m *store.Member) core.User {
	u := core.User{ID: m.ID, Email: m.Email, Name: m.Name, Role: m.Role, CreatedAt: m.CreatedAt.Time}
	if m.Disabled {
		u.Disabled = &m.Disabled
	}
	return u
}
