package connector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/plugins/connector/buffer"
	googleads "github.com/sallyport-dev/sallyport/plugins/connector/google_ads"
	analytics "github.com/sallyport-dev/sallyport/plugins/connector/google_analytics"
	searchconsole "github.com/sallyport-dev/sallyport/plugins/connector/google_search_console"
	metaads "github.com/sallyport-dev/sallyport/plugins/connector/meta_ads"
	"github.com/sallyport-dev/sallyport/plugins/connector/smtp"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

type fixedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fixedClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *fixedClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type rig struct {
	*Service
	t     *testing.T
	db    *store.DB
	clock *fixedClock
	owner core.Principal
}

func manifests() []schemas.Manifest {
	var out []schemas.Manifest
	for _, p := range []sdk.Plugin{webhook.Plugin(), smtp.Plugin(), searchconsole.Plugin(), analytics.Plugin(), googleads.Plugin(), metaads.Plugin(), buffer.Plugin()} {
		out = append(out, sdk.ManifestOf(p))
	}
	return out
}

func newRig(t *testing.T, allow ...string) *rig {
	t.Helper()
	clock := &fixedClock{now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	db := testdb.Open(t, testdb.SQLiteURL(t), clock)
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	out, err := egress.New(egress.Config{AllowPrivate: allow, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, db: db, clock: clock}
	r.Service = New(Deps{DB: db, Audit: audit.New(db, keys, clock, nil), Events: event.NewBus(db, clock, nil), Keys: keys, Egress: out, Clock: clock,
		Manifests: manifests, BaseURL: "https://ops.example.com/", OAuth: map[string]Client{}})
	r.owner = r.person("owner@example.com", core.UserRoleOwner)
	return r
}

func (r *rig) person(email string, role core.UserRole) core.Principal {
	r.t.Helper()
	now := r.clock.Now()
	ws, id := core.NewID(core.PrefixWorkspace, now), core.NewID(core.PrefixUser, now)
	err := r.db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		return tx.InsertWorkspace(ctx, &store.Workspace{ID: store.WorkspaceID(ws), Name: email, CreatedAt: store.At(now)})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return core.Principal{Kind: core.ActorKindPerson, ID: id, Label: email, WorkspaceID: ws, Role: role, Scopes: core.ScopesOfRole(role), AuthTime: now}
}

func code(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}
