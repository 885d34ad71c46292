package auth

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/mail"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Deps is what the service stands on.
type Deps struct {
	DB      *store.DB
	Audit   *audit.Log
	Keeper  *secret.Keeper
	Clock   core.Clock
	Log     *slog.Logger
	BaseURL string  // public address: issuer and audience of access tokens
	Hashing Hashing // cost of password hashes; DefaultHashing when zero
}

// Service is identity. It is safe for concurrent use; everything it knows stands in
// the database, so that several hosts agree and a revoked credential is refused by the
// next request.
type Service struct {
	db      *store.DB
	audit   *audit.Log
	keeper  *secret.Keeper
	clock   core.Clock
	log     *slog.Logger
	baseURL string
	hasher  *hasher
	publics map[string]ed25519.PublicKey // that verify access tokens, by kid
	settled atomic.Bool                  // somebody was set up: that never goes back
}

// New builds the service. It makes no key and writes nothing.
func New(d Deps) (*Service, error) {
	if d.Clock == nil {
		d.Clock = core.SystemClock{}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	h, err := newHasher(d.Hashing)
	if err != nil {
		return nil, err
	}
	return &Service{db: d.DB, audit: d.Audit, keeper: d.Keeper, clock: d.Clock, log: d.Log, baseURL: strings.TrimSuffix(d.BaseURL, "/"),
		hasher: h, publics: d.Keeper.JWTPublicKeys()}, nil
}

// now is the moment by which credentials are judged. The host's clock is enough: they
// live for minutes and more, and a database round trip per request would cost more.
func (s *Service) now() time.Time { return s.clock.Now().UTC() }

// personPrincipal is a person in a workspace, as the database knows them now.
func (s *Service) personPrincipal(ctx context.Context, ws store.WorkspaceID, userID string) (core.Principal, error) {
	m, err := s.db.Member(ctx, ws, userID)
	if core.IsKind(err, core.KindNotFound) || err == nil && m.Disabled {
		return core.Principal{}, core.Errf(core.KindUnauthenticated, "account_closed", "The account was closed or left the workspace. Ask an owner.")
	}
	if err != nil {
		return core.Principal{}, err
	}
	return core.Principal{Kind: core.ActorKindPerson, ID: m.ID, Label: m.Email, WorkspaceID: string(ws), Role: m.Role, Scopes: core.ScopesOfRole(m.Role)}, nil
}

// OnThisMachine is the person an operator acts as who has the data directory in their
// hands: the one with the address, or the first owner when it is empty. It counts as
// a sign-in of this moment.
func (s *Service) OnThisMachine(ctx context.Context, email string) (core.Principal, error) {
	workspaces, err := s.db.AllWorkspaces(ctx)
	if err != nil {
		return core.Principal{}, err
	}
	if len(workspaces) == 0 {
		return core.Principal{}, core.Errf(core.KindConflict, "not_initialised", "Nobody is set up yet. Run sallyport init first.")
	}
	userID, ws := "", workspaces[0].ID
	if email != "" {
		folded, err := foldEmail(email)
		if err != nil {
			return core.Principal{}, err
		}
		u, err := s.db.SystemUserByEmail(ctx, folded)
		if err != nil {
			return core.Principal{}, err
		}
		memberships, err := s.db.MembershipsOf(ctx, u.ID)
		if err != nil {
			return core.Principal{}, err
		}
		if len(memberships) == 0 {
			return core.Principal{}, core.Errf(core.KindForbidden, "no_workspace", "The person %s belongs to no workspace.", folded)
		}
		userID, ws = u.ID, memberships[0].WorkspaceID
	} else if userID, err = s.firstOwner(ctx, ws); err != nil {
		return core.Principal{}, err
	}
	p, err := s.personPrincipal(ctx, ws, userID)
	if err != nil {
		return p, err
	}
	p.AuthTime, p.Client = s.now(), "command line"
	return p, nil
}

func (s *Service) firstOwner(ctx context.Context, ws store.WorkspaceID) (string, error) {
	owner := ""
	err := s.eachMember(ctx, ws, func(m *store.Member) {
		if m.Role == core.UserRoleOwner && !m.Disabled {
			owner = m.ID // the list is newest first, so the last one is the first owner
		}
	})
	if err == nil && owner == "" {
		err = core.Errf(core.KindConflict, "no_owner", "The workspace has no owner. Name a person with --email.")
	}
	return owner, err
}

func (s *Service) eachMember(ctx context.Context, ws store.WorkspaceID, visit func(*store.Member)) error {
	q := core.Query{Limit: core.MaxLimit}
	for {
		page, err := s.db.ListMembers(ctx, ws, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if page.NextCursor == "" {
			return nil
		}
		q.Cursor = page.NextCursor
	}
}

// requireRecent asks for a sign-in of the last five minutes.
func (s *Service) requireRecent(p core.Principal, what string) error {
	if p.ProofAt(s.now()) == core.ProofP2 || p.ProofAt(s.now()) == core.ProofP3 {
		return nil
	}
	return core.Errf(core.KindForbidden, "weak_proof", "%s needs a sign-in not older than five minutes. Sign in again, or mint a new token, and repeat this.", what)
}

// foldEmail checks an address and brings it into the one form under which it is kept.
func foldEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > 320 || strings.ContainsAny(email, " \t\r\n\"") {
		e := core.Errf(core.KindInvalid, "invalid_email", "This is not an e-mail address. Write it as name@example.com.")
		e.Fields = []core.FieldError{{Pointer: "/email", Message: "is not an e-mail address"}}
		return "", e
	}
	return email, nil
}

// Me tells a principal who it is. A key stands for its owner.
func (s *Service) Me(ctx context.Context, p core.Principal) (*core.Me, error) {
	me := &core.Me{Kind: core.MeKindPerson, WorkspaceID: p.WorkspaceID, Role: string(p.Role), Scopes: []string{}, Workspaces: []core.MeWorkspace{}}
	me.Scopes = append(me.Scopes, p.Scopes...)
	userID := p.ID
	switch p.Kind {
	case core.ActorKindPerson:
	case core.ActorKindKey:
		me.Kind, userID = core.MeKindKey, p.OnBehalfOf
	default:
		return nil, core.Errf(core.KindUnauthenticated, codeNoCredential, "Sign in or send a key.")
	}
	u, err := s.db.SystemUser(ctx, userID)
	if err != nil {
		return nil, err
	}
	me.User = core.MeUser{ID: u.ID, Email: u.Email, Name: u.Name}
	memberships, err := s.db.MembershipsOf(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	for _, m := range memberships {
		if p.Kind == core.ActorKindKey && string(m.WorkspaceID) != p.WorkspaceID {
			continue // a key knows its own workspace only
		}
		w, err := s.db.Workspace(ctx, m.WorkspaceID)
		if err != nil {
			return nil, err
		}
		role := string(m.Role)
		if p.Kind == core.ActorKindKey {
			role = string(p.KeyKind)
		}
		me.Workspaces = append(me.Workspaces, core.MeWorkspace{ID: string(w.ID), Name: w.Name, Role: role})
	}
	if p.Kind == core.ActorKindKey {
		me.Role = string(p.KeyKind)
	}
	return me, nil
}

// Purge removes sessions that ended long ago and counts that no longer matter. Run it
// now and then.
func (s *Service) Purge(ctx context.Context) (removed int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		sessions, err := tx.PurgeSessions(ctx, s.now().Add(-SessionMax))
		if err != nil {
			return err
		}
		counts, err := tx.PurgeThrottles(ctx, s.now().Add(-24*time.Hour))
		removed = sessions + counts
		return err
	})
	return removed, err
}
