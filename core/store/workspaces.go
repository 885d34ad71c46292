package store

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/sallyport-dev/sallyport/core"
)

// Workspace owns everything else.
type Workspace struct {
	bun.BaseModel `bun:"table:workspaces"`

	ID        WorkspaceID `bun:"id,pk"`
	Name      string      `bun:"name"`
	Plan      string      `bun:"plan"`   // name of a plan of core/usage
	Policy    JSON        `bun:"policy"` // approval policy; NULL is the default
	Frozen    bool        `bun:"frozen"` // nothing is sent while set
	CreatedAt Time        `bun:"created_at"`
	UpdatedAt Time        `bun:"updated_at"`
	Version   int64       `bun:"version"`
}

func (w *Workspace) ref() (string, string, *int64) { return "workspace", string(w.ID), &w.Version }

// Workspace reads a workspace.
func (r Reader) Workspace(ctx context.Context, id WorkspaceID) (*Workspace, error) {
	return lookup[Workspace](ctx, r, "workspace", string(id), "id = ?", id)
}

// AllWorkspaces reads every workspace of the installation, oldest first.
func (r Reader) AllWorkspaces(ctx context.Context) ([]Workspace, error) {
	return all[Workspace](ctx, r, "workspace", func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("id") })
}

// InsertWorkspace adds a workspace.
func (tx *Tx) InsertWorkspace(ctx context.Context, w *Workspace) error {
	return insert(ctx, tx, "workspace", w)
}

// UpdateWorkspace writes w if it was not changed since it was read.
func (tx *Tx) UpdateWorkspace(ctx context.Context, w *Workspace) error { return swap(ctx, tx, w) }

// User is a person. E-mail addresses are kept as given by core/auth, which folds them.
type User struct {
	bun.BaseModel `bun:"table:users"`

	ID           string `bun:"id,pk"`
	Email        string `bun:"email"`
	Name         string `bun:"name"`
	PasswordHash string `bun:"password_hash"`
	Disabled     bool   `bun:"disabled"`
	CreatedAt    Time   `bun:"created_at"`
	UpdatedAt    Time   `bun:"updated_at"`
	Version      int64  `bun:"version"`
}

func (u *User) ref() (string, string, *int64) { return "user", u.ID, &u.Version }

// SystemUser reads a person by identifier, whatever workspaces they belong to.
func (r Reader) SystemUser(ctx context.Context, id string) (*User, error) {
	return lookup[User](ctx, r, "user", id, "id = ?", id)
}

// SystemUserByEmail reads a person by e-mail address.
func (r Reader) SystemUserByEmail(ctx context.Context, email string) (*User, error) {
	return one[User](ctx, r, "user", email, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("email = ?", email) })
}

// CountUsers counts the people of the installation; none means that it is not set up.
func (r Reader) CountUsers(ctx context.Context) (int, error) {
	n, err := r.q(ctx).NewSelect().Model((*User)(nil)).Count(ctx)
	if err != nil {
		return 0, failed("count users", err)
	}
	return int(n), nil
}

// InsertUser adds a person. A taken e-mail address is a conflict.
func (tx *Tx) InsertUser(ctx context.Context, u *User) error { return insert(ctx, tx, "user", u) }

// UpdateUser writes u if it was not changed since it was read.
func (tx *Tx) UpdateUser(ctx context.Context, u *User) error { return swap(ctx, tx, u) }

// Membership is the role of a person in a workspace.
type Membership struct {
	bun.BaseModel `bun:"table:memberships"`

	WorkspaceID WorkspaceID   `bun:"workspace_id,pk"`
	UserID      string        `bun:"user_id,pk"`
	Role        core.UserRole `bun:"role"`
	CreatedAt   Time          `bun:"created_at"`
}

// Member is a person of a workspace with their role.
type Member struct {
	bun.BaseModel `bun:"table:users"`

	User
	Role core.UserRole `bun:"role,scanonly"`
}

func members(q *bun.SelectQuery) *bun.SelectQuery {
	return q.ColumnExpr("?TableAlias.*").ColumnExpr("m.role").Join("JOIN memberships AS m ON m.user_id = ?TableAlias.id")
}

// Member reads a person of the workspace.
func (r Reader) Member(ctx context.Context, ws WorkspaceID, userID string) (*Member, error) {
	return lookupIn[Member](ctx, r, "user", userID, members, "m.workspace_id = ? AND m.user_id = ?", ws, userID)
}

// ListMembers lists the people of the workspace.
func (r Reader) ListMembers(ctx context.Context, ws WorkspaceID, q core.Query) (core.Page[Member], error) {
	l := listing[Member]{noun: "user", key: "id", keyOf: func(m *Member) string { return m.ID }}
	return l.page(ctx, r, q, func(s *bun.SelectQuery) *bun.SelectQuery { return members(s).Where("m.workspace_id = ?", ws) })
}

// MembershipsOf reads the workspaces of a person, oldest first.
func (r Reader) MembershipsOf(ctx context.Context, userID string) ([]Membership, error) {
	return all[Membership](ctx, r, "membership", func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id = ?", userID).Order("workspace_id")
	})
}

// CountApprovers counts the enabled people of the workspace who may approve.
func (r Reader) CountApprovers(ctx context.Context, ws WorkspaceID) (int, error) {
	n, err := r.q(ctx).NewSelect().Model((*Membership)(nil)).Join("JOIN users AS u ON u.id = ?TableAlias.user_id").
		Where("?TableAlias.workspace_id = ?", ws).Where("u.disabled = ?", false).
		Where("?TableAlias.role IN (?)", bun.List([]core.UserRole{core.UserRoleOwner, core.UserRoleApprover})).Count(ctx)
	if err != nil {
		return 0, failed("count approvers", err)
	}
	return int(n), nil
}

// PutMembership gives a person a role in a workspace, in place of an earlier one.
func (tx *Tx) PutMembership(ctx context.Context, m *Membership) error {
	_, err := tx.w(ctx).NewInsert().Model(m).On("CONFLICT (workspace_id, user_id) DO UPDATE").Set("role = EXCLUDED.role").Exec(ctx)
	if err != nil {
		return failed("write a membership", err)
	}
	return nil
}

// DeleteMembership takes a person out of a workspace.
func (tx *Tx) DeleteMembership(ctx context.Context, ws WorkspaceID, userID string) error {
	return remove(ctx, "user", userID, tx.w(ctx).NewDelete().Model((*Membership)(nil)).Where("workspace_id = ?", ws).Where("user_id = ?", userID))
}
