package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/jobs"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

const workspace = "ws_01ARZ3NDEKTSV4RRFFQ69G5FAV"

// perRun keeps runs within what one review page holds.
const perRun = 20

// decisions compares proposing and approving actions, each with its audit leaf, event and
// queued job, to the raw rate of one-row commits of the same database on one connection.
func (b *bench) decisions(ctx context.Context) error {
	b.head("one caller, durable", "raw commits /s", "proposals /s", "ratio", "approvals /s", "ratio")
	for _, kind := range []string{store.SQLite, store.Postgres} {
		if err := b.decisionsOn(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	b.end()
	return nil
}

func (b *bench) decisionsOn(ctx context.Context, kind string) error {
	dir, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address := "sqlite:" + filepath.Join(dir, "bench.db")
	if kind == store.Postgres {
		server, err := testdb.StartPostgres()
		if err != nil {
			b.row("%s\tnot run: %v", kind, err)
			return nil
		}
		defer server.Stop()
		address = server.URL
	}
	f, err := newDecider(ctx, address, dir)
	if err != nil {
		return err
	}
	defer f.db.Close()
	var raw, proposed, approved []float64
	for range *rounds {
		r, err := f.raw(ctx)
		if err != nil {
			return err
		}
		p, a, err := f.round(ctx)
		if err != nil {
			return err
		}
		raw, proposed, approved = append(raw, r), append(proposed, p), append(approved, a)
	}
	r, p, a := middle(raw), middle(proposed), middle(approved)
	b.row("%s\t%.0f\t%.0f\t%.2f\t%.0f\t%.2f", kind, r, p, p/r, a, a/r)
	return nil
}

func middle(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }

// decider is the approval gate on a database, with the real log and the real queue.
type decider struct {
	db    *store.DB
	runs  *run.Service
	gate  *approval.Service
	agent core.Principal
	owner core.Principal
	clock core.SystemClock
}

type unchanged struct{}

func (unchanged) CurrentDigests(string, string) (string, string, bool) {
	return "manifest", "tool", true
}

func newDecider(ctx context.Context, address, dir string) (*decider, error) {
	f := &decider{}
	var err error
	if f.db, err = store.Open(ctx, store.Options{URL: address}); err != nil {
		return nil, err
	}
	if f.db.Driver() == store.Postgres { // servers for tests run without; a measurement needs it
		for _, sql := range []string{"ALTER SYSTEM SET fsync = on", "ALTER SYSTEM SET full_page_writes = on", "SELECT pg_reload_conf()"} {
			if _, err := f.db.WriterSQL().ExecContext(ctx, sql); err != nil {
				return nil, err
			}
		}
	}
	if err := f.db.Migrate(ctx); err != nil {
		return nil, err
	}
	keys, err := secret.Open(filepath.Join(dir, "keys"), func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	queue, err := jobs.New(f.db, f.clock, nil)
	if err != nil {
		return nil, err
	}
	if err := queue.Migrate(ctx); err != nil {
		return nil, err
	}
	log, bus := audit.New(f.db, keys, f.clock, nil), event.NewBus(f.db, f.clock, nil)
	f.runs = run.New(run.Deps{DB: f.db, Audit: log, Events: bus, Clock: f.clock, BaseURL: "http://localhost:8080"})
	f.gate = approval.New(approval.Deps{DB: f.db, Audit: log, Events: bus, Clock: f.clock, Runs: f.runs, Keys: keys, Enqueue: queue, Plugins: unchanged{}})
	f.owner = core.Principal{Kind: core.ActorKindPerson, ID: "usr_owner", Label: "owner@example.org", WorkspaceID: workspace, Role: core.UserRoleOwner, Scopes: core.Scopes(), AuthTime: f.clock.Now()}
	f.agent = core.Principal{Kind: core.ActorKindKey, ID: "key_agent", Label: "agent", WorkspaceID: workspace, KeyKind: core.APIKeyKindAgent, OnBehalfOf: "usr_owner", Scopes: core.Scopes()}
	return f, f.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now := store.At(f.clock.Now())
		if err := tx.InsertWorkspace(ctx, &store.Workspace{ID: workspace, Name: "Bench", Plan: "free", CreatedAt: now, UpdatedAt: now, Version: 1}); err != nil {
			return err
		}
		if err := tx.InsertUser(ctx, &store.User{ID: f.owner.ID, Email: f.owner.Label, CreatedAt: now, UpdatedAt: now, Version: 1}); err != nil {
			return err
		}
		if err := tx.PutMembership(ctx, &store.Membership{UserID: f.owner.ID, WorkspaceID: workspace, Role: core.UserRoleOwner, CreatedAt: now}); err != nil {
			return err
		}
		return tx.InsertConnection(ctx, &store.Connection{ID: "con_1", WorkspaceID: workspace, Provider: "webhook", Name: "hook", Account: "Hook", Address: "https://hook.example/in",
			Fields: map[string]string{}, Scopes: []string{}, Status: core.ConnectorStatusConnected, BindingDigest: "bound", CreatedBy: f.owner.Actor(), CreatedAt: now, UpdatedAt: now, Version: 1})
	})
}

// raw is the rate of commits of one small row each on one connection.
func (f *decider) raw(ctx context.Context) (float64, error) {
	conn, err := f.db.WriterSQL().Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS bench_raw (id bigint, text text)"); err != nil {
		return 0, err
	}
	n, start := 0, time.Now()
	for ; time.Since(start) < *length; n++ {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("INSERT INTO bench_raw VALUES (%d, 'one row of a hundred bytes or so, as a small fact would be, to be durable when the call returns')", n)); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// round proposes actions for the length of a measurement and then approves them all.
func (f *decider) round(ctx context.Context) (proposals, approvals float64, err error) {
	var made []*core.Action
	var spent time.Duration
	for spent < *length {
		r, err := f.runs.Create(ctx, f.agent, run.Create{Goal: "Tell the world", WorkspaceID: workspace, Operator: "marketing"})
		if err != nil {
			return 0, 0, err
		}
		if err := f.runs.SetPhase(ctx, workspace, r.ID, core.PhaseDrafting, ""); err != nil {
			return 0, 0, err
		}
		start := time.Now()
		for range perRun {
			act, err := f.gate.Propose(ctx, f.agent, f.proposal(r.ID, len(made)))
			if err != nil {
				return 0, 0, err
			}
			made = append(made, act)
		}
		spent += time.Since(start)
		if err := f.gate.Ready(ctx, workspace, r.ID); err != nil {
			return 0, 0, err
		}
	}
	start := time.Now()
	for _, act := range made {
		if _, err := f.gate.Approve(ctx, f.owner, approval.Decide{ActionID: act.ID, ExpectedDigest: act.Digest, Channel: "rest"}); err != nil {
			return 0, 0, err
		}
	}
	n := float64(len(made))
	return n / spent.Seconds(), n / time.Since(start).Seconds(), nil
}

func (f *decider) proposal(runID string, n int) approval.Proposal {
	body, _ := json.Marshal(map[string]any{"text": "CSV export is out.", "n": n})
	method, path := schemas.ManifestNeedsEndpointsElemMethodPOST, "$connection"
	return approval.Proposal{WorkspaceID: workspace, RunID: runID, ActionID: core.NewID(core.PrefixAction, f.clock.Now()), Tool: "webhook_post", Plugin: "webhook", Connector: "webhook", Channel: "webhook",
		PluginDigest: "binary", ManifestDigest: "manifest", ToolDigest: "tool", Input: body, Reversibility: "irreversible",
		Endpoints:  []schemas.Endpoint{{ID: "post", Class: schemas.ClassWrite, Host: schemas.HostConnection, Method: &method, Path: &path, Signers: []schemas.Signer{"standard_webhooks"}}},
		Connection: effect.Connection{ID: "con_1", Provider: "webhook", Name: "hook", AccountID: "hook", Account: "Hook", BaseURL: "https://hook.example/in", Binding: "bound"},
		Sealed: effect.Sealed{Kind: "webhook.post", Target: effect.Target{AccountID: "hook", Label: "Hook"},
			Steps: []effect.Step{{Endpoint: "post", HTTP: &effect.HTTPStep{Headers: []effect.Pair{{Name: "Content-Type", Value: "application/json"}}, Body: body}}}}}
}
