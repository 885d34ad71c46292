package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

func transactions(t *T) {
	boom := errors.New("boom")
	id := t.id("whk")
	hook := func(ctx context.Context, tx *store.Tx) error {
		h := filled[store.Webhook](1)
		h.ID, h.WorkspaceID = id, mine
		return tx.InsertWebhook(ctx, h)
	}
	committed := 0
	err := t.db.InTx(t.ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { committed++ })
		if err := hook(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Webhook(ctx, mine, id); err != nil {
			t.Errorf("a transaction does not see its own row: %v", err)
		}
		if _, err := t.db.Webhook(store.Detached(ctx), mine, id); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("a row that is not committed is visible: %v", err)
		}
		return boom
	})
	if !errors.Is(err, boom) || committed != 0 {
		t.Errorf("%v, AfterCommit ran %d times", err, committed)
	}
	_, err = t.db.Webhook(t.ctx, mine, id)
	t.hasCode("not_found", err)

	func() {
		defer func() { _ = recover() }()
		_ = t.db.InTx(t.ctx, func(ctx context.Context, tx *store.Tx) error {
			_ = hook(ctx, tx)
			panic("rolled back too")
		})
	}()
	_, err = t.db.Webhook(t.ctx, mine, id)
	t.hasCode("not_found", err)

	t.write(func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { committed++ })
		if err := t.db.InTx(ctx, hook); !errors.Is(err, store.ErrNested) {
			t.Errorf("a transaction in a transaction: %v", err)
		}
		if !store.InTransaction(ctx) || store.InTransaction(store.Detached(ctx)) || store.InTransaction(t.ctx) {
			t.Error("InTransaction is wrong")
		}
		strict(t, ctx)
		if tx.SQL() == nil || tx.Driver() != t.db.Driver() {
			t.Error("the transaction of the job queue is missing")
		}
		return hook(ctx, tx)
	})
	if _, err := t.db.Webhook(t.ctx, mine, id); err != nil || committed != 1 {
		t.Errorf("after commit: %v, AfterCommit ran %d times", err, committed)
	}
	t.refused("already_exists", hook)
}

// strict checks that reads beside a transaction are refused in tests.
func strict(t *T, ctx context.Context) {
	was := store.StrictTx
	store.StrictTx = true
	defer func() {
		store.StrictTx = was
		if recover() == nil {
			t.Error("a read on the DB inside a transaction was let through")
		}
	}()
	_, _ = t.db.Webhook(ctx, mine, "x")
}

func installation(t *T) {
	id := ok(t.db.InstallationID(t.ctx))(t)
	if !core.HasPrefix(id, "ins") {
		t.Errorf("installation %q", id)
	}
	if err := t.db.Migrate(t.ctx); err != nil {
		t.Fatalf("migrating again: %v", err)
	}
	if again := ok(t.db.InstallationID(t.ctx))(t); again != id {
		t.Errorf("the installation changed its name: %s, %s", id, again)
	}
	if pending := ok(t.db.CheckSchema(t.ctx))(t); len(pending) > 0 {
		t.Errorf("pending migrations %v", pending)
	}
	_, err := t.db.InstanceValue(t.ctx, "k")
	t.hasCode("not_found", err)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if v := ok(tx.InsertInstanceValue(ctx, "k", "one"))(t); v != "one" {
			t.Errorf("k = %s", v)
		}
		if v := ok(tx.InsertInstanceValue(ctx, "k", "two"))(t); v != "one" {
			t.Errorf("k = %s", v)
		}
		return tx.PutInstanceValue(ctx, "k", "three")
	})
	if v := ok(t.db.InstanceValue(t.ctx, "k"))(t); v != "three" {
		t.Errorf("k = %s", v)
	}
	before := ok(t.db.Now(t.ctx))(t)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if now := ok(tx.Now(ctx))(t); now.Before(before) || now.Sub(before) > time.Minute || now.Location() != time.UTC {
			t.Errorf("now is %v after %v", now, before)
		}
		return nil
	})
	if err := t.db.WriterSQL().PingContext(t.ctx); err != nil {
		t.Error(err)
	}
	if (t.db.Driver() == store.SQLite) != (t.db.Path() != "") {
		t.Errorf("driver %s has the path %q", t.db.Driver(), t.db.Path())
	}
	hosts(t)
}

func hosts(t *T) {
	release, err := t.db.LockHost(t.ctx)
	if err != nil {
		t.Fatal(err)
	}
	now := ok(t.db.Now(t.ctx))(t)
	if !ok(t.db.HostAlive(t.ctx, t.db.HostID(), now))(t) {
		t.Error("this host does not live")
	}
	if ok(t.db.HostAlive(t.ctx, t.db.HostID(), now.Add(store.HostDeadAfter+time.Second)))(t) {
		t.Error("a silent host lives")
	}
	if ok(t.db.HostAlive(t.ctx, "host_unknown", now))(t) {
		t.Error("an unknown host lives")
	}
	release()
	release()
	if ok(t.db.HostAlive(t.ctx, t.db.HostID(), now))(t) {
		t.Error("a stopped host lives")
	}
	count(t, "hosts", len(ok(t.db.SystemHosts(t.ctx))(t)), 1)
}

func people(t *T) {
	for i, ws := range []store.WorkspaceID{mine, theirs} {
		w := filled[store.Workspace](i + 1)
		w.ID = ws
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertWorkspace(ctx, w) })
		same(t, ok(t.db.Workspace(t.ctx, ws))(t), w)
		stale := *w
		w.Name, w.Frozen, w.Policy = "renamed", false, nil
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateWorkspace(ctx, w) })
		same(t, ok(t.db.Workspace(t.ctx, ws))(t), w)
		t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateWorkspace(ctx, &stale) })
	}
	count(t, "workspaces", len(ok(t.db.AllWorkspaces(t.ctx))(t)), 2)
	_, err := t.db.Workspace(t.ctx, "ws_none")
	t.hasCode("not_found", err)

	count(t, "users", ok(t.db.CountUsers(t.ctx))(t), 0)
	users := []*store.User{}
	for i, role := range []core.UserRole{core.UserRoleOwner, core.UserRoleMember} {
		u := filled[store.User](i + 1)
		u.ID, u.Disabled = t.id(core.PrefixUser), false
		users = append(users, u)
		t.write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.InsertUser(ctx, u); err != nil {
				return err
			}
			return tx.PutMembership(ctx, &store.Membership{WorkspaceID: mine, UserID: u.ID, Role: role, CreatedAt: at(0)})
		})
		same(t, ok(t.db.SystemUser(t.ctx, u.ID))(t), u)
		same(t, ok(t.db.SystemUserByEmail(t.ctx, u.Email))(t), u)
	}
	count(t, "users", ok(t.db.CountUsers(t.ctx))(t), 2)
	twin := *users[0]
	twin.ID = t.id(core.PrefixUser)
	t.refused("already_exists", func(ctx context.Context, tx *store.Tx) error { return tx.InsertUser(ctx, &twin) })

	members := ok(t.db.ListMembers(t.ctx, mine, core.Query{}))(t)
	count(t, "members", len(members.Items), 2)
	if m := members.Items[0]; m.ID != users[1].ID || m.Role != core.UserRoleMember || m.Email != users[1].Email {
		t.Errorf("newest member %+v", m)
	}
	if m := ok(t.db.Member(t.ctx, mine, users[0].ID))(t); m.Role != core.UserRoleOwner || m.Name != users[0].Name {
		t.Errorf("member %+v", m)
	}
	_, err = t.db.Member(t.ctx, theirs, users[0].ID)
	t.hasCode("not_found", err)
	count(t, "their members", len(ok(t.db.ListMembers(t.ctx, theirs, core.Query{}))(t).Items), 0)
	count(t, "approvers", ok(t.db.CountApprovers(t.ctx, mine))(t), 1)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		return tx.PutMembership(ctx, &store.Membership{WorkspaceID: mine, UserID: users[1].ID, Role: core.UserRoleApprover})
	})
	count(t, "approvers", ok(t.db.CountApprovers(t.ctx, mine))(t), 2)
	users[1].Disabled = true
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateUser(ctx, users[1]) })
	count(t, "enabled approvers", ok(t.db.CountApprovers(t.ctx, mine))(t), 1)
	count(t, "memberships", len(ok(t.db.MembershipsOf(t.ctx, users[1].ID))(t)), 1)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteMembership(ctx, mine, users[1].ID) })
	count(t, "memberships", len(ok(t.db.MembershipsOf(t.ctx, users[1].ID))(t)), 0)
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DeleteMembership(ctx, mine, users[1].ID) })
}

func sessions(t *T) {
	s := filled[store.Session](1)
	s.ID, s.RevokedAt, s.ExpiresAt = t.id(core.PrefixSession), store.Time{}, at(time.Hour)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertSession(ctx, s) })
	same(t, ok(t.db.SystemSession(t.ctx, s.ID))(t), s)
	same(t, ok(t.db.SystemSessionByHash(t.ctx, s.TokenHash))(t), s)
	_, err := t.db.SystemSessionByHash(t.ctx, []byte("another"))
	t.hasCode("not_found", err)
	count(t, "sessions", len(ok(t.db.SessionsOf(t.ctx, s.UserID, moment))(t)), 1)
	count(t, "sessions after expiry", len(ok(t.db.SessionsOf(t.ctx, s.UserID, moment.Add(time.Hour)))(t)), 0)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.TouchSession(ctx, s.ID, moment.Add(time.Minute), moment.Add(2*time.Hour)); err != nil {
			return err
		}
		return tx.ReauthSession(ctx, s.ID, moment.Add(time.Second))
	})
	s.LastSeenAt, s.ExpiresAt, s.AuthTime = at(time.Minute), at(2*time.Hour), at(time.Second)
	same(t, ok(t.db.SystemSession(t.ctx, s.ID))(t), s)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.RevokeSession(ctx, s.ID, moment) })
	count(t, "sessions after the end", len(ok(t.db.SessionsOf(t.ctx, s.UserID, moment))(t)), 0)
	other := *s
	other.ID, other.TokenHash, other.RevokedAt = t.id(core.PrefixSession), []byte("other"), store.Time{}
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertSession(ctx, &other); err != nil {
			return err
		}
		return tx.RevokeSessionsOf(ctx, s.UserID, moment.Add(time.Minute))
	})
	if first := ok(t.db.SystemSession(t.ctx, s.ID))(t); first.RevokedAt != at(0) {
		t.Errorf("the end of an ended session moved to %v", first.RevokedAt)
	}
	t.write(func(ctx context.Context, tx *store.Tx) error {
		count(t, "purged", ok(tx.PurgeSessions(ctx, moment.Add(time.Hour)))(t), 0)
		count(t, "purged", ok(tx.PurgeSessions(ctx, moment.Add(3*time.Hour)))(t), 2)
		return nil
	})
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.RevokeSession(ctx, s.ID, moment) })

	m := filled[store.MCPSession](1)
	m.ID, m.EndedAt = "mcp-1", store.Time{}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertMCPSession(ctx, m) })
	same(t, ok(t.db.SystemMCPSession(t.ctx, m.ID))(t), m)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.EndMCPSession(ctx, m.ID, moment) })
	if !ok(t.db.SystemMCPSession(t.ctx, m.ID))(t).EndedAt.Equal(moment) {
		t.Error("the session did not end")
	}
}

func tokens(t *T) {
	setup := &store.SetupToken{Hash: []byte("h1"), ExpiresAt: at(time.Minute), CreatedAt: at(0)}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertSetupToken(ctx, setup) })
	same(t, ok(t.db.SystemSetupToken(t.ctx, setup.Hash))(t), setup)
	use := func(hash string, now time.Time) func(context.Context, *store.Tx) error {
		return func(ctx context.Context, tx *store.Tx) error { return tx.UseSetupToken(ctx, []byte(hash), now) }
	}
	t.refused("setup_token_gone", use("h1", moment.Add(time.Minute)))
	t.refused("setup_token_gone", use("h0", moment))
	t.write(use("h1", moment))
	t.refused("setup_token_gone", use("h1", moment))
	t.write(func(ctx context.Context, tx *store.Tx) error {
		return tx.InsertSetupToken(ctx, &store.SetupToken{Hash: []byte("h2"), ExpiresAt: at(time.Minute)})
	})
	_, err := t.db.SystemSetupToken(t.ctx, setup.Hash)
	t.hasCode("not_found", err)

	r := filled[store.RefreshToken](1)
	r.UsedAt, r.RevokedAt = store.Time{}, store.Time{}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertRefreshToken(ctx, r) })
	same(t, ok(t.db.SystemRefreshToken(t.ctx, r.Hash))(t), r)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if !ok(tx.UseRefreshToken(ctx, r.Hash, moment))(t) || ok(tx.UseRefreshToken(ctx, r.Hash, moment))(t) {
			t.Error("a refresh token works once, and only once")
		}
		return tx.RevokeRefreshTokens(ctx, r.Family, moment)
	})
	if got := ok(t.db.SystemRefreshToken(t.ctx, r.Hash))(t); got.UsedAt != at(0) || got.RevokedAt != at(0) {
		t.Errorf("%+v", got)
	}

	if th := ok(t.db.Throttle(t.ctx, "k"))(t); th.Count != 0 || th.Key != "k" {
		t.Errorf("%+v", th)
	}
	for i := range 2 {
		th := filled[store.Throttle](i + 1)
		th.Key = "k"
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutThrottle(ctx, th) })
		same(t, ok(t.db.Throttle(t.ctx, "k"))(t), th)
	}
	t.write(func(ctx context.Context, tx *store.Tx) error {
		count(t, "purged", ok(tx.PurgeThrottles(ctx, moment.Add(time.Hour)))(t), 1)
		return nil
	})
}

func keys(t *T) {
	k := filled[store.APIKey](1)
	k.ID, k.WorkspaceID, k.RevokedAt = t.id(core.PrefixKey), mine, store.Time{}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertAPIKey(ctx, k) })
	same(t, ok(t.db.APIKey(t.ctx, mine, k.ID))(t), k)
	same(t, ok(t.db.SystemAPIKey(t.ctx, k.ID))(t), k)
	_, err := t.db.APIKey(t.ctx, theirs, k.ID)
	t.hasCode("not_found", err)
	count(t, "keys", len(ok(t.db.ListAPIKeys(t.ctx, mine, core.Query{}))(t).Items), 1)
	count(t, "their keys", len(ok(t.db.ListAPIKeys(t.ctx, theirs, core.Query{}))(t).Items), 0)
	stale := *k
	k.Name = "renamed"
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateAPIKey(ctx, k) })
	t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateAPIKey(ctx, &stale) })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.TouchAPIKey(ctx, k.ID, moment) })
	k.LastUsedAt = at(0)
	same(t, ok(t.db.APIKey(t.ctx, mine, k.ID))(t), k)
	revoke := func(ws store.WorkspaceID, now time.Time) func(context.Context, *store.Tx) error {
		return func(ctx context.Context, tx *store.Tx) error { return tx.RevokeAPIKey(ctx, ws, k.ID, now) }
	}
	t.refused("not_found", revoke(theirs, moment))
	t.write(revoke(mine, moment))
	t.write(revoke(mine, moment.Add(time.Hour)))
	if got := ok(t.db.APIKey(t.ctx, mine, k.ID))(t); got.RevokedAt != at(0) {
		t.Errorf("revoked at %v", got.RevokedAt)
	}

	sk := filled[store.SigningKey](1)
	sk.RetiredAt = store.Time{}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertSigningKey(ctx, sk) })
	same(t, ok(t.db.SystemSigningKeys(t.ctx, sk.Purpose))(t), []store.SigningKey{*sk})
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.RetireSigningKey(ctx, sk.KID, moment) })
	if got := ok(t.db.SystemSigningKeys(t.ctx, sk.Purpose))(t); got[0].RetiredAt != at(0) {
		t.Errorf("%+v", got)
	}
}

func secrets(t *T) {
	s := filled[store.Secret](1)
	s.ID, s.WorkspaceID = t.id("sec"), mine
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertSecret(ctx, s) })
	same(t, ok(t.db.Secret(t.ctx, mine, s.ID))(t), s)
	_, err := t.db.Secret(t.ctx, theirs, s.ID)
	t.hasCode("not_found", err)
	count(t, "under another key", len(ok(t.db.SystemSecretsNotUnder(t.ctx, "new", 10))(t)), 1)
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error {
		return tx.RewrapSecret(ctx, s.ID, "not its key", "new", []byte("w"))
	})
	t.write(func(ctx context.Context, tx *store.Tx) error {
		return tx.RewrapSecret(ctx, s.ID, s.KeyID, "new", []byte("w"))
	})
	count(t, "under another key", len(ok(t.db.SystemSecretsNotUnder(t.ctx, "new", 10))(t)), 0)
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DeleteSecret(ctx, theirs, s.ID) })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteSecret(ctx, mine, s.ID) })
	_, err = t.db.Secret(t.ctx, mine, s.ID)
	t.hasCode("not_found", err)
}
