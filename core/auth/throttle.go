package auth

import (
	"context"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// rule bounds attempts under one key: most within window, then a pause that doubles
// with each further attempt up to longest.
type rule struct {
	most            int
	window          time.Duration
	pause, longest  time.Duration
	clearsOnSuccess bool
}

// The pair of account and address is what a person who forgot runs into; the address
// alone stops trying many accounts, the account alone stops many addresses, loosely
// enough that nobody can lock an owner out for long.
var (
	perPair    = rule{most: 5, window: 15 * time.Minute, pause: 30 * time.Second, longest: 15 * time.Minute, clearsOnSuccess: true}
	perAddress = rule{most: 50, window: 15 * time.Minute, pause: time.Minute, longest: 15 * time.Minute}
	perAccount = rule{most: 100, window: time.Hour, pause: time.Minute, longest: 5 * time.Minute, clearsOnSuccess: true}
)

type counted struct {
	key  string
	rule rule
}

func throttles(email, ip string) []counted {
	address := network(ip)
	name := func(parts ...string) string {
		all := ""
		for _, p := range parts {
			all += p + "\x00"
		}
		return hex.EncodeToString(tokenHash("throttle", all))
	}
	return []counted{{"pair:" + name(email, address), perPair}, {"address:" + name(address), perAddress}, {"account:" + name(email), perAccount}}
}

// network is the address, or for IPv6 the /64 that one subscriber has.
func network(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// checkAttempt counts an attempt, then compares the password. Counting comes first,
// in its own transaction, so that a thousand attempts at once are a thousand attempts.
func (s *Service) checkAttempt(ctx context.Context, email, password, ip, requestID string) (*store.User, error) {
	if len(password) > MaxPassword {
		return nil, wrongPassword()
	}
	keys := throttles(email, ip)
	if err := s.count(ctx, keys); err != nil {
		s.refused(ctx, "user.sign_in_throttled", email, ip, requestID)
		return nil, err
	}
	u, err := s.db.SystemUserByEmail(ctx, email)
	if err != nil && !core.IsKind(err, core.KindNotFound) {
		return nil, err
	}
	stored := ""
	if err == nil && !u.Disabled {
		stored = u.PasswordHash
	}
	ok, weak, err := s.hasher.verify(ctx, stored, password)
	if err != nil {
		return nil, err
	}
	if !ok {
		s.refused(ctx, "user.sign_in_failed", email, ip, requestID)
		return nil, wrongPassword()
	}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range keys {
			if k.rule.clearsOnSuccess {
				if err := tx.PutThrottle(ctx, &store.Throttle{Key: k.key, WindowStart: store.At(s.now())}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if weak {
		s.renewHash(ctx, u, password)
	}
	return u, nil
}

// count notes one attempt under every key, or refuses it when one of them is full.
func (s *Service) count(ctx context.Context, keys []counted) error {
	now := s.now()
	var wait time.Duration
	err := s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		wait = 0
		// Attempts on several hosts must queue, or they would all read the same count.
		if _, err := tx.LockLogHead(ctx); err != nil {
			return err
		}
		rows := make([]*store.Throttle, len(keys))
		for i, k := range keys {
			t, err := tx.Throttle(ctx, k.key)
			if err != nil {
				return err
			}
			if left := t.BlockedUntil.Sub(now); !t.BlockedUntil.IsZero() && left > 0 {
				wait = max(wait, left)
			}
			if t.WindowStart.IsZero() || now.Sub(t.WindowStart.Time) > k.rule.window {
				t.Count, t.WindowStart, t.BlockedUntil = 0, store.At(now), store.Time{}
			}
			t.Count++
			if over := t.Count - k.rule.most; over >= 0 {
				t.BlockedUntil = store.At(now.Add(min(k.rule.pause<<min(over, 10), k.rule.longest)))
			}
			rows[i] = t
		}
		if wait > 0 {
			return nil // a refused attempt does not prolong the pause
		}
		for _, t := range rows {
			if err := tx.PutThrottle(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if wait > 0 {
		e := core.Errf(core.KindRateLimited, "too_many_sign_ins", "Too many sign-in attempts. Wait as long as Retry-After says.")
		e.RetryAfter = wait
		return e
	}
	return nil
}

// refused leaves an entry in the log. The address that was tried may belong to nobody,
// so that it stands among the erasable fields.
func (s *Service) refused(ctx context.Context, action, email, ip, requestID string) {
	e := audit.Entry{Actor: core.Anonymous().Actor(), Action: action, Outcome: string(core.AuditEntryOutcomeRefused), RequestID: requestID, IP: ip, Personal: map[string]any{"email": email}}
	if u, err := s.db.SystemUserByEmail(ctx, email); err == nil {
		e.Target = u.ID
		if m, err := s.db.MembershipsOf(ctx, u.ID); err == nil && len(m) > 0 {
			e.WorkspaceID = string(m[0].WorkspaceID)
		}
	}
	if err := s.audit.AppendNow(ctx, e); err != nil {
		s.log.Error("refused sign-in not audited", "error", err)
	}
}

// renewHash stores the password under today's cost. It may fail: the old hash holds.
func (s *Service) renewHash(ctx context.Context, u *store.User, password string) {
	hash, err := s.hasher.hash(ctx, password)
	if err == nil {
		u.PasswordHash, u.UpdatedAt = hash, store.At(s.now())
		err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateUser(ctx, u) })
	}
	if err != nil {
		s.log.Warn("password hash not renewed", "user", u.ID, "error", err)
	}
}

func wrongPassword() error {
	return core.Errf(core.KindUnauthenticated, "wrong_password", "E-mail address or password is wrong. An owner of the machine can run sallyport user reset.")
}
