package auth

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// SetupTTL is how long a set-up URL can be used.
const SetupTTL = 30 * time.Minute

// Initialised reports whether the installation has its first owner.
func (s *Service) Initialised(ctx context.Context) (bool, error) {
	if s.settled.Load() {
		return true, nil
	}
	n, err := s.db.CountUsers(ctx)
	if err != nil {
		return false, err
	}
	if n > 0 {
		s.settled.Store(true)
	}
	return n > 0, nil
}

// NewSetupToken makes the token of a set-up URL, good for one use within SetupTTL. An
// earlier one stops working. After Init there is nothing to set up: a conflict.
func (s *Service) NewSetupToken(ctx context.Context) (token string, expires time.Time, err error) {
	token = randomText(secretLen)
	now := s.now()
	expires = now.Add(SetupTTL)
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := notInitialised(ctx, tx); err != nil {
			return err
		}
		return tx.InsertSetupToken(ctx, &store.SetupToken{Hash: tokenHash("setup", token), ExpiresAt: store.At(expires), CreatedAt: store.At(now)})
	})
	return token, expires, err
}

// SetupURL is the address that a set-up token opens.
func (s *Service) SetupURL(token string) string { return s.baseURL + "/setup?token=" + token }

// CheckSetupToken tells whether a token would be taken, without using it up.
func (s *Service) CheckSetupToken(ctx context.Context, token string) error {
	t, err := s.db.SystemSetupToken(ctx, tokenHash("setup", token))
	if core.IsKind(err, core.KindNotFound) || err == nil && (!t.UsedAt.IsZero() || !s.now().Before(t.ExpiresAt.Time)) {
		return core.Errf(core.KindGone, "setup_token_gone", "This set-up link was used or has expired. Restart sallyport serve for a new one, or run sallyport init.")
	}
	return err
}

// Init is the first owner of an installation.
type Init struct {
	Email, Name, Password string
	Workspace             string // its name; "Workspace" when empty
	SetupToken            string // of the set-up URL; empty on this machine's command line
	RequestID, IP         string
}

// Init sets the installation up: a workspace and its owner, who may sign in at once.
// It works once; then it is a conflict, whoever asks.
func (s *Service) Init(ctx context.Context, in Init) (*core.User, error) {
	email, err := foldEmail(in.Email)
	if err != nil {
		return nil, err
	}
	if err := checkPassword(in.Password, email); err != nil {
		return nil, err
	}
	if in.SetupToken != "" { // hashing is costly: refuse a wrong link before it
		if err := s.CheckSetupToken(ctx, in.SetupToken); err != nil {
			return nil, err
		}
	}
	hash, err := s.hasher.hash(ctx, in.Password)
	if err != nil {
		return nil, err
	}
	now := s.now()
	w := store.Workspace{ID: store.WorkspaceID(core.NewID(core.PrefixWorkspace, now)), Name: orDefault(in.Workspace, "Workspace"), Plan: "free", CreatedAt: store.At(now), UpdatedAt: store.At(now)}
	u := store.User{ID: core.NewID(core.PrefixUser, now), Email: email, Name: orDefault(in.Name, strings.Split(email, "@")[0]), PasswordHash: hash, CreatedAt: store.At(now), UpdatedAt: store.At(now)}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		// Two first owners at once would both find nobody: the log's head makes them queue.
		if _, err := tx.LockLogHead(ctx); err != nil {
			return err
		}
		if err := notInitialised(ctx, tx); err != nil {
			return err
		}
		if in.SetupToken != "" {
			if err := tx.UseSetupToken(ctx, tokenHash("setup", in.SetupToken), now); err != nil {
				return err
			}
		}
		if err := tx.InsertWorkspace(ctx, &w); err != nil {
			return err
		}
		if err := tx.InsertUser(ctx, &u); err != nil {
			return err
		}
		if err := tx.PutMembership(ctx, &store.Membership{WorkspaceID: w.ID, UserID: u.ID, Role: core.UserRoleOwner, CreatedAt: store.At(now)}); err != nil {
			return err
		}
		return s.auditInit(ctx, tx, in, &w, &u)
	})
	if err != nil {
		return nil, err
	}
	s.settled.Store(true)
	return &core.User{ID: u.ID, Email: u.Email, Name: u.Name, Role: core.UserRoleOwner, CreatedAt: now}, nil
}

// auditInit records the set-up, and that with one approver nobody else can check what
// they approve.
func (s *Service) auditInit(ctx context.Context, tx *store.Tx, in Init, w *store.Workspace, u *store.User) error {
	way := "command line"
	if in.SetupToken != "" {
		way = "set-up link"
	}
	base := audit.Entry{Actor: core.Actor{Kind: core.ActorKindPerson, ID: u.ID, Label: u.Email}, WorkspaceID: string(w.ID), Outcome: string(core.AuditEntryOutcomeOk), RequestID: in.RequestID, IP: in.IP}
	made := base
	made.Action, made.Target, made.Details = "workspace.initialised", string(w.ID), map[string]any{"way": way}
	if _, err := s.audit.Append(ctx, tx, made); err != nil {
		return err
	}
	duties := base
	duties.Action, duties.Target = "policy.duties_rest", string(w.ID)
	duties.Details = map[string]any{"why": "The workspace has a single approver; separation of duties begins with the second."}
	_, err := s.audit.Append(ctx, tx, duties)
	return err
}

func notInitialised(ctx context.Context, tx *store.Tx) error {
	n, err := tx.CountUsers(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		return core.Errf(core.KindConflict, "already_initialised", "The installation is set up already. Sign in, or run sallyport user add.")
	}
	return nil
}

// tokenHash is how random secrets (keys, session and set-up tokens) are stored. They
// hold enough entropy that a fast hash is right, and looking one up by its hash tells
// nothing through time.
func tokenHash(purpose, token string) []byte {
	sum := sha256.Sum256([]byte("sallyport/" + purpose + "\x00" + token))
	return sum[:]
}

func orDefault(s, otherwise string) string {
	if s = strings.TrimSpace(s); s == "" {
		return otherwise
	}
	return s
}
