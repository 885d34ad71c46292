package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

func TestSignInAndOut(t *testing.T) {
	f, _ := settled(t)
	ctx := t.Context()
	session, err := f.SignIn(ctx, SignIn{Email: " ADA@Example.com ", Password: testPassword, IP: "192.0.2.1", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.FromSession(ctx, session.Token)
	if err != nil || p.Role != core.UserRoleOwner || p.ProofAt(f.ticks.Now()) != core.ProofP2 {
		t.Fatalf("%+v, %v", p, err)
	}
	f.ticks.pass(core.RecentSignIn + time.Second)
	if p.ProofAt(f.ticks.Now()) != core.ProofP1 {
		t.Error("the sign-in still counts as recent")
	}
	if p, err = f.Reauthenticate(ctx, p, testPassword); err != nil || p.ProofAt(f.ticks.Now()) != core.ProofP2 {
		t.Fatalf("%+v, %v", p, err)
	}
	_, err = f.Reauthenticate(ctx, p, "not the password")
	wantCode(t, err, "wrong_password")
	if err := f.SignOut(ctx, p); err != nil {
		t.Fatal(err)
	}
	_, err = f.FromSession(ctx, session.Token)
	wantCode(t, err, "session_ended")
	_, err = f.FromSession(ctx, "guess")
	wantCode(t, err, "session_ended")
}

func TestSessionsEnd(t *testing.T) {
	f, _ := settled(t)
	ctx := t.Context()
	session, err := f.SignIn(ctx, SignIn{Email: testEmail, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	for end := f.ticks.Now().Add(SessionMax); f.ticks.Now().Add(SessionIdle / 2).Before(end); {
		f.ticks.pass(SessionIdle / 2) // used again and again, it lives on
		if _, err := f.FromSession(ctx, session.Token); err != nil {
			t.Fatalf("at %v: %v", f.ticks.Now(), err)
		}
	}
	f.ticks.pass(SessionIdle / 2)
	_, err = f.FromSession(ctx, session.Token)
	wantCode(t, err, "session_ended") // too old, however busy

	idle, err := f.SignIn(ctx, SignIn{Email: testEmail, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	f.ticks.pass(SessionIdle)
	_, err = f.FromSession(ctx, idle.Token)
	wantCode(t, err, "session_ended")
}

func TestWrongSignInsLookAlike(t *testing.T) {
	f, _ := settled(t)
	_, wrong := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: "not the password", IP: "192.0.2.1"})
	_, unknown := f.SignIn(t.Context(), SignIn{Email: "nobody@example.com", Password: "not the password", IP: "192.0.2.2"})
	_, noAddress := f.SignIn(t.Context(), SignIn{Email: "nobody", Password: "not the password", IP: "192.0.2.2"})
	for _, err := range []error{wrong, unknown, noAddress} {
		if wantCode(t, err, "wrong_password").Error() != wrong.Error() {
			t.Errorf("%v differs from %v", err, wrong)
		}
	}
}

func TestSignInIsThrottled(t *testing.T) {
	f, _ := settled(t)
	ctx := t.Context()
	try := func(ip, password string) error {
		_, err := f.SignIn(ctx, SignIn{Email: testEmail, Password: password, IP: ip})
		return err
	}
	for range perPair.most {
		wantCode(t, try("192.0.2.1", "not the password"), "wrong_password")
	}
	e := wantCode(t, try("192.0.2.1", testPassword), "too_many_sign_ins") // the right one, too late
	if e.Kind != core.KindRateLimited || e.RetryAfter <= 0 || e.RetryAfter > perPair.longest {
		t.Errorf("%+v", e)
	}
	if err := try("198.51.100.7", testPassword); err != nil {
		t.Errorf("another address is locked out: %v", err)
	}
	f.ticks.pass(e.RetryAfter)
	if err := try("192.0.2.1", testPassword); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestManyAccountsFromOneAddress(t *testing.T) {
	f, _ := settled(t)
	for i := range perAddress.most {
		email := strings.Repeat("x", i+1) + "@example.com"
		_, err := f.SignIn(t.Context(), SignIn{Email: email, Password: "not the password", IP: "2001:db8::" + string("123456789"[i%9])})
		wantCode(t, err, "wrong_password")
	}
	_, err := f.SignIn(t.Context(), SignIn{Email: "y@example.com", Password: "not the password", IP: "2001:db8::ffff"})
	wantCode(t, err, "too_many_sign_ins") // one /64 is one address
}

func TestAttemptsAtOnceAreAllCounted(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		if _, err := f.Init(t.Context(), Init{Email: testEmail, Password: testPassword}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[string]int{}
		for range 40 {
			wg.Go(func() {
				_, err := f.SignIn(context.Background(), SignIn{Email: testEmail, Password: "not the password", IP: "192.0.2.1"})
				mu.Lock()
				codes[core.AsError(err).Code]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if codes["wrong_password"] != perPair.most || codes["too_many_sign_ins"] != 40-perPair.most {
			t.Errorf("%v", codes)
		}
	})
}

func TestPurge(t *testing.T) {
	f, _ := settled(t)
	session, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Purge(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	f.ticks.pass(SessionIdle + SessionMax + time.Second)
	if n, err := f.Purge(t.Context()); n != 4 || err != nil { // the session and its three counts
		t.Errorf("%d, %v", n, err)
	}
	_, err = f.FromSession(t.Context(), session.Token)
	wantCode(t, err, "session_ended")
}

func TestCookie(t *testing.T) {
	f, _ := settled(t)
	session, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	f.SetCookie(rec, session)
	c := rec.Result().Cookies()[0]
	if c.Name != "__Host-sallyport" || !c.HttpOnly || !c.Secure || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("%+v", c)
	}
	get := httptest.NewRequest(http.MethodGet, testBase+"/api/me", nil)
	get.AddCookie(c)
	if p, err := f.FromRequest(get); err != nil || p.SessionID == "" {
		t.Errorf("reading with the cookie: %v", err)
	}
	post := httptest.NewRequest(http.MethodPost, testBase+"/api/runs", nil)
	post.AddCookie(c)
	_, err = f.FromRequest(post)
	wantCode(t, err, "unauthenticated") // a browser sends it without being asked
}

func TestFormTokenBelongsToTheSession(t *testing.T) {
	f, _ := settled(t)
	one, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	two, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CheckFormToken(one.Principal, f.FormToken(one.Principal)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "x", f.FormToken(two.Principal), f.FormToken(core.Principal{})} {
		wantCode(t, f.CheckFormToken(one.Principal, bad), "form_not_yours")
	}
	wantCode(t, f.CheckFormToken(core.Principal{}, f.FormToken(core.Principal{})), "form_not_yours")
}

func TestWeakHashIsRenewed(t *testing.T) {
	f, owner := settled(t)
	before, err := f.database.SystemUser(t.Context(), owner.ID)
	if err != nil {
		t.Fatal(err)
	}
	strong := cheap
	strong.Passes = 2
	f.hasher, err = newHasher(strong)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword}); err != nil {
		t.Fatal(err)
	}
	after, err := f.database.SystemUser(t.Context(), owner.ID)
	if err != nil || after.PasswordHash == before.PasswordHash || !strings.Contains(after.PasswordHash, "t=2") {
		t.Fatalf("%s → %s, %v", before.PasswordHash, after.PasswordHash, err)
	}
	if _, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword}); err != nil {
		t.Error(err)
	}
}

func TestHostileStoredHashesAreRefused(t *testing.T) {
	h, err := newHasher(cheap)
	if err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{"x", "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$", "$argon2i$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
		"$argon2id$v=19$m=4294967295,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA", "$argon2id$v=19$m=64,t=100000,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA",
		"$argon2id$v=19$m=64,t=1,p=0$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA"} {
		if ok, _, err := h.verify(t.Context(), stored, testPassword); ok || err == nil {
			t.Errorf("%q: %v, %v", stored, ok, err)
		}
	}
}

func TestClosedAccounts(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	member, err := f.AddUser(ctx, owner, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleApprover})
	if err != nil {
		t.Fatal(err)
	}
	session, err := f.SignIn(ctx, SignIn{Email: "grace@example.com", Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	token, err := f.MintToken(ctx, session.Principal)
	if err != nil {
		t.Fatal(err)
	}
	viewer := core.UserRoleViewer
	if _, err := f.EditUser(ctx, owner, member.ID, &viewer, nil); err != nil {
		t.Fatal(err)
	}
	p, err := f.VerifyToken(ctx, token.Token)
	if err != nil || p.Can(core.ScopeActionsApprove) {
		t.Fatalf("a lost role still decides: %+v, %v", p, err)
	}
	closed := true
	if _, err := f.EditUser(ctx, owner, member.ID, nil, &closed); err != nil {
		t.Fatal(err)
	}
	_, err = f.VerifyToken(ctx, token.Token)
	wantCode(t, err, "account_closed")
	_, err = f.FromSession(ctx, session.Token)
	wantCode(t, err, "session_ended")
	_, err = f.SignIn(ctx, SignIn{Email: "grace@example.com", Password: testPassword})
	wantCode(t, err, "wrong_password")
}

func TestTheLastOwnerStays(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	viewer, closed := core.UserRoleViewer, true
	_, err := f.EditUser(ctx, owner, owner.ID, &viewer, nil)
	wantCode(t, err, "last_owner")
	_, err = f.EditUser(ctx, owner, owner.ID, nil, &closed)
	wantCode(t, err, "last_owner")
	if _, err := f.AddUser(ctx, owner, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleOwner}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.EditUser(ctx, owner, owner.ID, &viewer, nil); err != nil {
		t.Error(err)
	}
}

func TestOwnersActsNeedARecentSignIn(t *testing.T) {
	f, owner := settled(t)
	f.ticks.pass(core.RecentSignIn + time.Second)
	_, err := f.AddUser(t.Context(), owner, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleApprover})
	wantCode(t, err, "weak_proof")
	wantCode(t, f.SetPassword(t.Context(), owner, owner.ID, "another long phrase"), "weak_proof")
	if err := f.SetPassword(t.Context(), f.owner(t), owner.ID, "another long phrase"); err != nil {
		t.Fatal(err)
	}
	_, err = f.SignIn(t.Context(), SignIn{Email: testEmail, Password: testPassword})
	wantCode(t, err, "wrong_password")
	if _, err := f.SignIn(t.Context(), SignIn{Email: testEmail, Password: "another long phrase", IP: "192.0.2.9"}); err != nil {
		t.Error(err)
	}
}

func TestOtherWorkspacesPeopleAreNotFound(t *testing.T) {
	f, owner := settled(t)
	foreign := owner
	foreign.WorkspaceID = core.NewID(core.PrefixWorkspace, f.ticks.Now())
	viewer := core.UserRoleViewer
	_, err := f.EditUser(t.Context(), foreign, owner.ID, &viewer, nil)
	if !core.IsKind(err, core.KindNotFound) {
		t.Errorf("%v", err)
	}
	key, err := f.CreateKey(t.Context(), owner, NewKey{Name: "k", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.RevokeKey(t.Context(), foreign, key.ID); !core.IsKind(err, core.KindNotFound) {
		t.Errorf("%v", err)
	}
	page, err := f.Keys(t.Context(), foreign, core.Query{})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := f.FromKey(t.Context(), *key.Key); err != nil {
		t.Errorf("revoked by a stranger: %v", err)
	}
	if _, err := f.database.Member(t.Context(), store.WorkspaceID(foreign.WorkspaceID), owner.ID); !core.IsKind(err, core.KindNotFound) {
		t.Errorf("%v", err)
	}
}
