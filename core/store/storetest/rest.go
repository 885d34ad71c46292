package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

func connections(t *T) {
	c := filled[store.Connection](1)
	c.ID, c.WorkspaceID, c.Provider, c.Name = t.id(core.PrefixConnection), mine, "webhook", "crm"
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertConnection(ctx, c) })
	twin := *c
	twin.ID = t.id(core.PrefixConnection)
	t.refused("already_exists", func(ctx context.Context, tx *store.Tx) error { return tx.InsertConnection(ctx, &twin) })
	same(t, ok(t.db.Connection(t.ctx, mine, c.ID))(t), c)
	same(t, ok(t.db.ConnectionByName(t.ctx, mine, "webhook", "crm"))(t), c)
	_, err := t.db.Connection(t.ctx, theirs, c.ID)
	t.hasCode("not_found", err)
	_, err = t.db.ConnectionByName(t.ctx, theirs, "webhook", "crm")
	t.hasCode("not_found", err)
	count(t, "of the provider", len(ok(t.db.ConnectionsOf(t.ctx, mine, "webhook"))(t)), 1)
	count(t, "of another", len(ok(t.db.ConnectionsOf(t.ctx, mine, "smtp"))(t)), 0)
	count(t, "of all", len(ok(t.db.ConnectionsOf(t.ctx, mine, ""))(t)), 1)
	count(t, "theirs", len(ok(t.db.ConnectionsOf(t.ctx, theirs, ""))(t)), 0)
	stale := *c
	c.Status, c.Fields, c.Audiences = core.ConnectorStatusConnected, nil, nil
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateConnection(ctx, c) })
	same(t, ok(t.db.Connection(t.ctx, mine, c.ID))(t), c)
	t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateConnection(ctx, &stale) })
	count(t, "connected", len(ok(t.db.ListConnections(t.ctx, mine, core.Query{Status: "connected"}))(t).Items), 1)
	count(t, "their list", len(ok(t.db.ListConnections(t.ctx, theirs, core.Query{}))(t).Items), 0)
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DeleteConnection(ctx, theirs, c.ID) })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteConnection(ctx, mine, c.ID) })

	o := filled[store.OAuthState](1)
	o.UsedAt, o.ExpiresAt = store.Time{}, at(time.Minute)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertOAuthState(ctx, o) })
	use := func(now time.Time) func(context.Context, *store.Tx) error {
		return func(ctx context.Context, tx *store.Tx) error {
			got, err := tx.UseOAuthState(ctx, o.Hash, now)
			if err == nil {
				o.UsedAt = store.At(now)
				same(t, got, o)
			}
			return err
		}
	}
	t.refused("oauth_state_gone", use(moment.Add(time.Minute)))
	t.write(use(moment))
	t.refused("oauth_state_gone", use(moment))

	var newest *store.Snapshot
	for i := range 2 {
		newest = filled[store.Snapshot](i + 1)
		newest.ID, newest.WorkspaceID, newest.Provider = t.id(core.PrefixSnapshot), mine, "buffer"
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertSnapshot(ctx, newest) })
	}
	same(t, ok(t.db.LatestSnapshot(t.ctx, mine, "buffer"))(t), newest)
	same(t, ok(t.db.Snapshot(t.ctx, mine, newest.ID))(t), newest)
	_, err = t.db.Snapshot(t.ctx, theirs, newest.ID)
	t.hasCode("not_found", err)
	_, err = t.db.LatestSnapshot(t.ctx, theirs, "buffer")
	t.hasCode("not_found", err)
	count(t, "snapshots", len(ok(t.db.ListSnapshots(t.ctx, mine, "buffer", core.Query{}))(t).Items), 2)
	count(t, "snapshots of all", len(ok(t.db.ListSnapshots(t.ctx, mine, "", core.Query{}))(t).Items), 2)
	count(t, "their snapshots", len(ok(t.db.ListSnapshots(t.ctx, theirs, "", core.Query{}))(t).Items), 0)
}

func datasets(t *T) {
	d := filled[store.Dataset](1)
	d.ID, d.WorkspaceID = t.id(core.PrefixDataset), mine
	rows := make([]store.JSON, 1203)
	for i := range rows {
		rows[i] = store.JSON(fmt.Sprintf(`{"i":%d}`, i))
	}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertDataset(ctx, d, rows) })
	same(t, ok(t.db.Dataset(t.ctx, mine, d.ID))(t), d)
	count(t, "datasets", len(ok(t.db.ListDatasets(t.ctx, mine, core.Query{}))(t).Items), 1)
	count(t, "theirs", len(ok(t.db.ListDatasets(t.ctx, theirs, core.Query{}))(t).Items), 0)
	part := ok(t.db.DatasetRows(t.ctx, mine, d.ID, 1200, 10))(t)
	if len(part) != 3 || part[2].N != 1202 || string(part[2].Data) != `{"i":1202}` {
		t.Errorf("last rows %+v", part)
	}
	_, err := t.db.DatasetRows(t.ctx, theirs, d.ID, 0, 10)
	t.hasCode("not_found", err)
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DeleteDataset(ctx, theirs, d.ID) })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteDataset(ctx, mine, d.ID) })
	_, err = t.db.Dataset(t.ctx, mine, d.ID)
	t.hasCode("not_found", err)
}

func audit(t *T) {
	rows := []store.AuditEntry{*filled[store.AuditEntry](1), *filled[store.AuditEntry](2)}
	nodes := []store.AuditHash{}
	for i := range rows {
		rows[i].Seq, rows[i].WorkspaceID = int64(i), mine
	}
	for i := range int64(3) {
		nodes = append(nodes, store.AuditHash{Idx: i, Hash: []byte{byte(i)}})
	}
	t.write(func(ctx context.Context, tx *store.Tx) error {
		head := ok(tx.LockLogHead(ctx))(t)
		head.AuditSize, head.Frontier = 2, []byte("frontier")
		if again := ok(tx.LockLogHead(ctx))(t); again != head {
			t.Error("a transaction has two heads")
		}
		if err := tx.InsertAuditEntries(ctx, rows, nodes); err != nil {
			return err
		}
		return tx.SaveLogHead(ctx)
	})
	if err := t.db.InTx(t.ctx, func(ctx context.Context, tx *store.Tx) error { return tx.SaveLogHead(ctx) }); err == nil {
		t.Error("a head was saved that was not locked")
	}
	if head := ok(t.db.LogHead(t.ctx))(t); head.AuditSize != 2 || string(head.Frontier) != "frontier" {
		t.Errorf("%+v", head)
	}
	same(t, ok(t.db.AllAuditEntries(t.ctx, 0, 10))(t), rows)
	count(t, "from the second", len(ok(t.db.AllAuditEntries(t.ctx, 1, 10))(t)), 1)
	same(t, ok(t.db.AllAuditHashes(t.ctx, 0, 10))(t), nodes)
	count(t, "named nodes", len(ok(t.db.AuditHashes(t.ctx, []int64{2, 0, 9}))(t)), 2)
	count(t, "no nodes", len(ok(t.db.AuditHashes(t.ctx, nil))(t)), 0)
	same(t, ok(t.db.ListAuditEntries(t.ctx, mine, core.Query{}))(t).Items, []store.AuditEntry{rows[1], rows[0]})
	count(t, "on a target", len(ok(t.db.ListAuditEntries(t.ctx, mine, core.Query{RunID: rows[0].Target}))(t).Items), 1)
	count(t, "with an outcome", len(ok(t.db.ListAuditEntries(t.ctx, mine, core.Query{Status: string(rows[1].Outcome)}))(t).Items), 1)
	count(t, "theirs", len(ok(t.db.ListAuditEntries(t.ctx, theirs, core.Query{}))(t).Items), 0)
	page := ok(t.db.ListAuditEntries(t.ctx, mine, core.Query{Limit: 1}))(t)
	if next := ok(t.db.ListAuditEntries(t.ctx, mine, core.Query{Limit: 1, Cursor: page.NextCursor}))(t); len(next.Items) != 1 || next.Items[0].Seq != 0 {
		t.Errorf("second page %+v", next)
	}
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.EraseAuditPersonal(ctx, theirs, 0) })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.EraseAuditPersonal(ctx, mine, 0) })
	if got := ok(t.db.AllAuditEntries(t.ctx, 0, 1))(t)[0]; got.Personal != nil || got.PersonalSalt != nil || got.PersonalCommit == nil {
		t.Errorf("erased: %+v", got)
	}

	_, err := t.db.LatestAuditCheckpoint(t.ctx)
	t.hasCode("not_found", err)
	for i := range 2 {
		c := filled[store.AuditCheckpoint](i + 1)
		c.TreeSize = int64(i)
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutAuditCheckpoint(ctx, c) })
		same(t, ok(t.db.LatestAuditCheckpoint(t.ctx))(t), c)
		other := filled[store.AuditCheckpoint](9)
		other.TreeSize = c.TreeSize
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutAuditCheckpoint(ctx, other) })
		same(t, ok(t.db.LatestAuditCheckpoint(t.ctx))(t), c)
	}
	count(t, "checkpoints", len(ok(t.db.AllAuditCheckpoints(t.ctx, 1, 10))(t)), 1)
}

func events(t *T) {
	var rows []store.Event
	for i := range 3 {
		e := filled[store.Event](i + 1)
		e.ID, e.WorkspaceID = t.id(core.PrefixEvent), mine
		if i == 2 {
			e.WorkspaceID = theirs
		}
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertEvent(ctx, e) })
		rows = append(rows, *e)
	}
	if rows[1].Seq != rows[0].Seq+1 || rows[2].Seq != rows[1].Seq+1 {
		t.Errorf("numbers %d, %d, %d", rows[0].Seq, rows[1].Seq, rows[2].Seq)
	}
	same(t, ok(t.db.EventsAfter(t.ctx, mine, "", 0, 10))(t), rows[:2])
	same(t, ok(t.db.EventsAfter(t.ctx, mine, "", rows[0].Seq, 10))(t), rows[1:2])
	same(t, ok(t.db.EventsAfter(t.ctx, mine, rows[0].RunID, 0, 10))(t), rows[:1])
	same(t, ok(t.db.AllEventsAfter(t.ctx, 0, 10))(t), rows)
	count(t, "limited", len(ok(t.db.AllEventsAfter(t.ctx, 0, 1))(t)), 1)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		count(t, "purged", ok(tx.PurgeEvents(ctx, moment.Add(time.Hour)))(t), 3)
		return nil
	})
}

func webhooks(t *T) {
	w := filled[store.Webhook](1)
	w.ID, w.WorkspaceID = t.id(core.PrefixHook), mine
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertWebhook(ctx, w) })
	same(t, ok(t.db.Webhook(t.ctx, mine, w.ID))(t), w)
	_, err := t.db.Webhook(t.ctx, theirs, w.ID)
	t.hasCode("not_found", err)
	stale := *w
	w.Disabled = false
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateWebhook(ctx, w) })
	same(t, ok(t.db.ListWebhooks(t.ctx, mine, core.Query{Limit: 1}))(t).Items, []store.Webhook{*w})
	t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateWebhook(ctx, &stale) })
	count(t, "theirs", len(ok(t.db.ListWebhooks(t.ctx, theirs, core.Query{}))(t).Items), 0)

	d := filled[store.WebhookDelivery](1)
	d.ID, d.WorkspaceID, d.WebhookID, d.Status, d.NextTryAt = t.id("dlv"), mine, w.ID, "pending", at(0)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertWebhookDelivery(ctx, d) })
	same(t, ok(t.db.SystemDueDeliveries(t.ctx, moment, 10))(t), []store.WebhookDelivery{*d})
	count(t, "not yet due", len(ok(t.db.SystemDueDeliveries(t.ctx, moment.Add(-time.Second), 10))(t)), 0)
	staleDelivery := *d
	d.Attempt++
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateWebhookDelivery(ctx, d) })
	t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateWebhookDelivery(ctx, &staleDelivery) })
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DeleteWebhook(ctx, theirs, w.ID) })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteWebhook(ctx, mine, w.ID) })
	count(t, "deliveries of a removed webhook", len(ok(t.db.SystemDueDeliveries(t.ctx, moment, 10))(t)), 0)
}

func usageAndMemory(t *T) {
	u := &store.Usage{WorkspaceID: mine, Period: "2026-11", Tool: "a", Calls: 1, Errors: 1, Credits: 0.5, CostMicros: 7}
	for range 2 {
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.AddUsage(ctx, u) })
	}
	same(t, ok(t.db.UsageOf(t.ctx, mine, "2026-11"))(t), []store.Usage{{WorkspaceID: mine, Period: "2026-11", Tool: "a", Calls: 2, Errors: 2, Credits: 1, CostMicros: 14}})
	count(t, "their usage", len(ok(t.db.UsageOf(t.ctx, theirs, "2026-11"))(t)), 0)
	count(t, "another period", len(ok(t.db.UsageOf(t.ctx, mine, "2026-12"))(t)), 0)

	for i := range 2 {
		m := filled[store.Memory](i + 1)
		m.WorkspaceID, m.Key = mine, "k"
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutMemory(ctx, m) })
		same(t, ok(t.db.Memory(t.ctx, mine, "k"))(t), m)
	}
	_, err := t.db.Memory(t.ctx, theirs, "k")
	t.hasCode("not_found", err)
	same(t, ok(t.db.MemoryKeys(t.ctx, mine))(t), []string{"k"})
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DeleteMemory(ctx, theirs, "k") })
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteMemory(ctx, mine, "k") })
	count(t, "keys", len(ok(t.db.MemoryKeys(t.ctx, mine))(t)), 0)
}

func idempotency(t *T) {
	row := func() *store.Idempotency {
		return &store.Idempotency{WorkspaceID: mine, PrincipalID: "usr_1", Key: "k", BodyHash: "h", At: at(0)}
	}
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if there := ok(tx.BeginIdempotent(ctx, row()))(t); there != nil {
			t.Errorf("a free key is taken: %+v", there)
		}
		return nil
	})
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if there := ok(tx.BeginIdempotent(ctx, row()))(t); there == nil || there.Done || there.BodyHash != "h" {
			t.Errorf("a taken key is free or done: %+v", there)
		}
		other := row()
		other.PrincipalID = "usr_2"
		if there := ok(tx.BeginIdempotent(ctx, other))(t); there != nil {
			t.Errorf("taken by another principal: %+v", there)
		}
		done := row()
		done.Status, done.Headers, done.Body = 201, map[string]string{"Location": "/x"}, []byte{0, 1, 0xff}
		return tx.FinishIdempotent(ctx, done)
	})
	t.write(func(ctx context.Context, tx *store.Tx) error {
		there := ok(tx.BeginIdempotent(ctx, row()))(t)
		if there == nil || !there.Done || there.Status != 201 || !slices.Equal(there.Body, []byte{0, 1, 0xff}) || there.Headers["Location"] != "/x" {
			t.Errorf("answer %+v", there)
		}
		if err := tx.DropIdempotent(ctx, mine, "usr_1", "k"); err != nil {
			return err
		}
		if there := ok(tx.BeginIdempotent(ctx, row()))(t); there != nil {
			t.Errorf("a dropped key is taken: %+v", there)
		}
		count(t, "purged", ok(tx.PurgeIdempotency(ctx, moment.Add(time.Second)))(t), 2)
		return nil
	})
	t.refused("not_found", func(ctx context.Context, tx *store.Tx) error { return tx.DropIdempotent(ctx, mine, "usr_1", "k") })
}

// pages reads a list in pages while rows are added: none comes twice or is left out.
func pages(t *T) {
	const total = 23
	written := []string{}
	add := func(n int) {
		for range n {
			w := filled[store.Webhook](1)
			w.ID, w.WorkspaceID = t.id(core.PrefixHook), "ws_pages"
			t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertWebhook(ctx, w) })
			written = append(written, w.ID)
		}
	}
	add(total)
	want := slices.Clone(written)
	slices.Reverse(want)
	got, cursor := []string{}, ""
	for {
		page := ok(t.db.ListWebhooks(t.ctx, "ws_pages", core.Query{Limit: 5, Cursor: cursor}))(t)
		for _, w := range page.Items {
			got = append(got, w.ID)
		}
		add(1) // newer than the first page
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	same(t, got, want)
	count(t, "by default", len(ok(t.db.ListWebhooks(t.ctx, "ws_pages", core.Query{}))(t).Items), total+5)
	exact := ok(t.db.ListWebhooks(t.ctx, "ws_pages", core.Query{Limit: total + 5}))(t)
	if exact.NextCursor != "" {
		t.Error("a list that just fits has a further page")
	}
	for _, limit := range []int{-1, core.MaxLimit + 1} {
		_, err := t.db.ListWebhooks(t.ctx, "ws_pages", core.Query{Limit: limit})
		t.hasCode("bad_limit", err)
	}
	runs := ok(t.db.ListWebhooks(t.ctx, "ws_pages", core.Query{Limit: 1}))(t).NextCursor
	for _, cursor := range []string{"x", "!!", "d2ViaG9vawA", runs + "x", runs[:len(runs)-1] + "\n"} {
		_, err := t.db.ListWebhooks(t.ctx, "ws_pages", core.Query{Cursor: cursor})
		if err != nil {
			t.hasCode("bad_cursor", err)
		}
	}
	_, err := t.db.ListRuns(t.ctx, mine, core.Query{Cursor: runs}) // of another list
	t.hasCode("bad_cursor", err)
	_, err = t.db.ListAuditEntries(t.ctx, mine, core.Query{Cursor: "YXVkaXQgZW50cnkAYWJj"}) // not a number
	t.hasCode("bad_cursor", err)
}

// text checks that values cannot leave their quotes and come back as they went in.
func text(t *T) {
	for i, value := range []string{"'; DROP TABLE runs; --", `\'`, `"`, "?", "?0 ?name ?TableAlias", "%s", "line\nbreak\r\ttab", "ünï 漢 🏰", `\u0000`, "$1", "$$", "E'\\x00'", "--", "/*"} {
		m := &store.Memory{WorkspaceID: mine, Key: fmt.Sprint("text", i) + value, Value: store.JSONOf(value), UpdatedBy: value}
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutMemory(ctx, m) })
		same(t, ok(t.db.Memory(t.ctx, mine, m.Key))(t), m)
	}
	err := t.db.InTx(t.ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.PutMemory(ctx, &store.Memory{WorkspaceID: mine, Key: "k", Value: store.JSON("\"\xff\"")})
	})
	if err == nil {
		t.Error("a document that is not UTF-8 was stored")
	}
}
