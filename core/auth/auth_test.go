package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

const (
	testBase     = "https://sallyport.example"
	testPassword = "correct horse battery"
	testEmail    = "ada@example.com"
)

// cheap keeps tests quick; the form of the hash is the same.
var cheap = Hashing{MemoryKiB: 64, Passes: 1, Lanes: 1}

type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type fixture struct {
	*Service
	database *store.DB
	ticks    *fakeClock
	dir      string
}

// fresh is a service on an empty database.
func fresh(t *testing.T) *fixture {
	t.Helper()
	store.StrictTx = true
	dir := t.TempDir()
	clock := &fakeClock{at: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + filepath.Join(dir, "test.db"), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return on(t, db, clock, dir)
}

// each runs a test on fresh databases of both kinds.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		test(t, on(t, db, &fakeClock{at: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}, t.TempDir()))
	})
}

func on(t *testing.T, db *store.DB, clock *fakeClock, dir string) *fixture {
	t.Helper()
	keys, err := secret.Open(filepath.Join(dir, "keys"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s, err := New(Deps{DB: db, Audit: audit.New(db, keys, clock, log), Keeper: keys, Clock: clock, Log: log, BaseURL: testBase, Hashing: cheap})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Service: s, database: db, ticks: clock, dir: dir}
}

// settled is a service with its first owner.
func settled(t *testing.T) (*fixture, core.Principal) {
	t.Helper()
	f := fresh(t)
	if _, err := f.Init(t.Context(), Init{Email: testEmail, Password: testPassword}); err != nil {
		t.Fatal(err)
	}
	return f, f.owner(t)
}

// owner is the first owner, just signed in.
func (f *fixture) owner(t *testing.T) core.Principal {
	t.Helper()
	p, err := f.OnThisMachine(t.Context(), testEmail)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantCode(t *testing.T, err error, code string) *core.Error {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	return e
}

func TestSetupTokenWorksOnceAndForHalfAnHour(t *testing.T) {
	f := fresh(t)
	ctx := t.Context()
	if ok, err := f.Initialised(ctx); ok || err != nil {
		t.Fatalf("initialised %v, %v", ok, err)
	}
	first, _, err := f.NewSetupToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, expires, err := f.NewSetupToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if expires.Sub(f.ticks.Now()) != SetupTTL {
		t.Errorf("expires %v", expires)
	}
	in := Init{Email: testEmail, Password: testPassword, SetupToken: first}
	_, err = f.Init(ctx, in)
	wantCode(t, err, "setup_token_gone") // the second replaced it
	f.ticks.pass(SetupTTL)
	in.SetupToken = second
	_, err = f.Init(ctx, in)
	wantCode(t, err, "setup_token_gone")
	third, _, err := f.NewSetupToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	in.SetupToken = third
	u, err := f.Init(ctx, in)
	if err != nil || u.Role != core.UserRoleOwner || u.Email != testEmail {
		t.Fatalf("%+v, %v", u, err)
	}
	_, err = f.Init(ctx, in)
	wantCode(t, err, "setup_token_gone")
	_, _, err = f.NewSetupToken(ctx)
	wantCode(t, err, "already_initialised")
	_, err = f.Init(ctx, Init{Email: "eve@example.com", Password: testPassword})
	wantCode(t, err, "already_initialised")
}

func TestOnlyOneOfManyInitsWins(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		var wins, conflicts atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := f.Init(context.Background(), Init{Email: fmt.Sprintf("p%d@example.com", i), Password: testPassword})
				switch {
				case err == nil:
					wins.Add(1)
				case core.AsError(err).Code == "already_initialised":
					conflicts.Add(1)
				default:
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || conflicts.Load() != 7 {
			t.Errorf("%d wins, %d conflicts", wins.Load(), conflicts.Load())
		}
	})
}

func TestTwoOwnersCannotDemoteEachOther(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		_, err := f.Init(ctx, Init{Email: testEmail, Password: testPassword})
		if err != nil {
			t.Fatal(err)
		}
		ada := f.owner(t)
		grace, err := f.AddUser(ctx, ada, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleOwner})
		if err != nil {
			t.Fatal(err)
		}
		viewer := core.UserRoleViewer
		var refused atomic.Int32
		var wg sync.WaitGroup
		for _, id := range []string{ada.ID, grace.ID} {
			wg.Go(func() {
				if _, err := f.EditUser(ctx, ada, id, &viewer, nil); err != nil {
					wantCodeOf(t, err, "last_owner")
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		if refused.Load() != 1 {
			t.Errorf("%d of two refused", refused.Load())
		}
	})
}

func wantCodeOf(t *testing.T, err error, code string) {
	t.Helper()
	if core.AsError(err).Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

func TestInitRefusesBadInput(t *testing.T) {
	f := fresh(t)
	for name, c := range map[string]struct {
		in   Init
		code string
	}{
		"no address":       {Init{Email: "ada", Password: testPassword}, "invalid_email"},
		"display name":     {Init{Email: "Ada <ada@example.com>", Password: testPassword}, "invalid_email"},
		"header injection": {Init{Email: "ada@example.com\r\nBcc: x@y.z", Password: testPassword}, "invalid_email"},
		"short":            {Init{Email: testEmail, Password: "short"}, "weak_password"},
		"own name":         {Init{Email: "longlongname@example.com", Password: "LongLongName"}, "weak_password"},
		"repeated":         {Init{Email: testEmail, Password: "aaaaaaaaaaaaaa"}, "weak_password"},
		"endless":          {Init{Email: testEmail, Password: string(bytes.Repeat([]byte("ab"), 600))}, "weak_password"},
		"forged token":     {Init{Email: testEmail, Password: testPassword, SetupToken: "guess"}, "setup_token_gone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Init(t.Context(), c.in)
			wantCode(t, err, c.code)
		})
	}
	if ok, _ := f.Initialised(t.Context()); ok {
		t.Error("a refused init set the installation up")
	}
}

func TestNoCredentialStandsInTheDatabase(t *testing.T) {
	f := fresh(t)
	ctx := t.Context()
	setup, _, err := f.NewSetupToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Init(ctx, Init{Email: testEmail, Password: testPassword, SetupToken: setup}); err != nil {
		t.Fatal(err)
	}
	session, err := f.SignIn(ctx, SignIn{Email: testEmail, Password: testPassword, IP: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := f.MintToken(ctx, session.Principal)
	if err != nil {
		t.Fatal(err)
	}
	key, err := f.CreateKey(ctx, session.Principal, NewKey{Name: "k", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(f.dir, "test.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no database file", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"password": testPassword, "session": session.Token, "setup": setup, "token": token.Token, "key": *key.Key} {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s stands in %s in the clear", name, filepath.Base(file))
			}
		}
	}
}

func TestMe(t *testing.T) {
	f, owner := settled(t)
	me, err := f.Me(t.Context(), owner)
	if err != nil || me.Kind != core.MeKindPerson || me.User.Email != testEmail || len(me.Workspaces) != 1 || me.Workspaces[0].Role != "owner" {
		t.Fatalf("%+v, %v", me, err)
	}
	key, err := f.CreateKey(t.Context(), owner, NewKey{Name: "k", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.FromKey(t.Context(), *key.Key)
	if err != nil {
		t.Fatal(err)
	}
	me, err = f.Me(t.Context(), p)
	if err != nil || me.Kind != core.MeKindKey || me.User.ID != owner.ID || me.Role != "agent" {
		t.Fatalf("%+v, %v", me, err)
	}
	_, err = f.Me(t.Context(), core.Anonymous())
	wantCode(t, err, "unauthenticated")
}
