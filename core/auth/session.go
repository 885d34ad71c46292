package auth

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Lives of sessions: idle for so long, or this old, and the person signs in again.
const (
	SessionIdle = 12 * time.Hour
	SessionMax  = 14 * 24 * time.Hour
	// touchEvery spares a write per request.
	touchEvery = time.Minute
)

// SignIn is an attempt of a person.
type SignIn struct {
	Email, Password          string
	RequestID, IP, UserAgent string
}

// Session is a fresh sign-in. Token goes into the cookie and is kept nowhere else.
type Session struct {
	Token     string
	Expires   time.Time
	Principal core.Principal
}

// SignIn checks a password and begins a session. A wrong address and a wrong password
// are told apart by nobody, not by the clock either. Too many attempts: rate_limited.
func (s *Service) SignIn(ctx context.Context, in SignIn) (*Session, error) {
	email, err := foldEmail(in.Email)
	if err != nil {
		return nil, wrongPassword()
	}
	u, err := s.checkAttempt(ctx, email, in.Password, in.IP, in.RequestID)
	if err != nil {
		return nil, err
	}
	memberships, err := s.db.MembershipsOf(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	if len(memberships) == 0 {
		return nil, core.Errf(core.KindForbidden, "no_workspace", "You belong to no workspace any more. Ask an owner.")
	}
	ws := memberships[0].WorkspaceID
	p, err := s.personPrincipal(ctx, ws, u.ID)
	if err != nil {
		return nil, err
	}
	now := s.now()
	token := randomText(secretLen)
	row := store.Session{ID: core.NewID(core.PrefixSession, now), TokenHash: tokenHash("session", token), UserID: u.ID, WorkspaceID: ws, AuthTime: store.At(now), LastSeenAt: store.At(now),
		ExpiresAt: store.At(now.Add(SessionIdle)), UserAgent: cut(in.UserAgent, 200), IP: in.IP, CreatedAt: store.At(now)}
	p.AuthTime, p.SessionID, p.RequestID, p.IP = now, row.ID, in.RequestID, in.IP
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertSession(ctx, &row); err != nil {
			return err
		}
		_, err := s.audit.Append(ctx, tx, audit.By(p, "user.signed_in", row.ID))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Session{Token: token, Expires: row.ExpiresAt.Time, Principal: p}, nil
}

// Reauthenticate checks the password again, so that the session counts as recent.
func (s *Service) Reauthenticate(ctx context.Context, p core.Principal, password string) (core.Principal, error) {
	if p.Kind != core.ActorKindPerson || p.SessionID == "" {
		return p, core.Errf(core.KindForbidden, "no_session", "Only a browser session can be renewed. Sign in.")
	}
	if _, err := s.checkAttempt(ctx, p.Label, password, p.IP, p.RequestID); err != nil {
		return p, err
	}
	now := s.now()
	err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.ReauthSession(ctx, p.SessionID, now); err != nil {
			return err
		}
		_, err := s.audit.Append(ctx, tx, audit.By(p, "user.reauthenticated", p.SessionID))
		return err
	})
	if err == nil {
		p.AuthTime = now
	}
	return p, err
}

// SignOut ends the principal's session; it holds for the next request.
func (s *Service) SignOut(ctx context.Context, p core.Principal) error {
	if p.SessionID == "" {
		return nil
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.RevokeSession(ctx, p.SessionID, s.now()); err != nil {
			return err
		}
		_, err := s.audit.Append(ctx, tx, audit.By(p, "user.signed_out", p.SessionID))
		return err
	})
}

// FromSession is who a session token stands for.
func (s *Service) FromSession(ctx context.Context, token string) (core.Principal, error) {
	ended := core.Errf(core.KindUnauthenticated, "session_ended", "The session has ended. Sign in again.")
	row, err := s.db.SystemSessionByHash(ctx, tokenHash("session", token))
	if core.IsKind(err, core.KindNotFound) {
		return core.Principal{}, ended
	}
	if err != nil {
		return core.Principal{}, err
	}
	now := s.now()
	if !row.RevokedAt.IsZero() || !now.Before(row.ExpiresAt.Time) || !now.Before(row.CreatedAt.Add(SessionMax)) {
		return core.Principal{}, ended
	}
	p, err := s.personPrincipal(ctx, row.WorkspaceID, row.UserID)
	if err != nil {
		return p, err
	}
	p.AuthTime, p.SessionID = row.AuthTime.Time, row.ID
	if now.Sub(row.LastSeenAt.Time) >= touchEvery {
		err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return tx.TouchSession(ctx, row.ID, now, now.Add(SessionIdle))
		})
		if err != nil {
			s.log.Warn("session not touched", "session", row.ID, "error", err)
		}
	}
	return p, nil
}

// FormToken is what forms of a session carry, so that no other page can post them.
func (s *Service) FormToken(p core.Principal) string {
	return base64.RawURLEncoding.EncodeToString(s.keeper.MAC("form", []byte(p.SessionID)))
}

// CheckFormToken refuses a form that was not made for the session.
func (s *Service) CheckFormToken(p core.Principal, token string) error {
	sum, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || p.SessionID == "" || !s.keeper.CheckMAC("form", sum, []byte(p.SessionID)) {
		return core.Errf(core.KindForbidden, "form_not_yours", "This form was made for another session. Load the page again and repeat it.")
	}
	return nil
}

// CookieName is the name of the session cookie. Browsers take the __Host- prefix on
// https only, so that plain http on this machine goes without.
func (s *Service) CookieName() string {
	if s.secure() {
		return "__Host-sallyport"
	}
	return "sallyport"
}

func (s *Service) secure() bool { return strings.HasPrefix(s.baseURL, "https://") }

// SetCookie hands a session to the browser.
func (s *Service) SetCookie(w http.ResponseWriter, session *Session) {
	// The cookie outlives the idle time, which rises with use; the database decides.
	s.cookie(w, session.Token, int(SessionMax/time.Second))
}

// ClearCookie takes it back.
func (s *Service) ClearCookie(w http.ResponseWriter) { s.cookie(w, "", -1) }

func (s *Service) cookie(w http.ResponseWriter, value string, maxAge int) {
	// Lax, not Strict: the review link in a mail or a chat must find the person signed in.
	http.SetCookie(w, &http.Cookie{Name: s.CookieName(), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode})
}

// FromCookie is who the request's session cookie stands for; unauthenticated without one.
func (s *Service) FromCookie(r *http.Request) (core.Principal, error) {
	c, err := r.Cookie(s.CookieName())
	if err != nil || c.Value == "" {
		return core.Principal{}, s.noCredential(r.Context())
	}
	return s.FromSession(r.Context(), c.Value)
}

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
