package storetest

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

func (t *T) newRun(seed int) *store.Run {
	r := filled[store.Run](seed)
	r.ID, r.WorkspaceID = t.id(core.PrefixRun), mine
	r.CreatedAt = at(time.Duration(seed) * time.Second)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertRun(ctx, r) })
	return r
}

func runs(t *T) {
	r := t.newRun(1)
	same(t, ok(t.db.Run(t.ctx, mine, r.ID))(t), r)
	same(t, ok(t.db.SystemRun(t.ctx, r.ID))(t), r)
	_, err := t.db.Run(t.ctx, theirs, r.ID)
	t.hasCode("not_found", err)
	stale := *r
	t.write(func(ctx context.Context, tx *store.Tx) error {
		locked := ok(tx.LockRun(ctx, mine, r.ID))(t)
		if _, err := tx.LockRun(ctx, theirs, r.ID); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("locked from another workspace: %v", err)
		}
		locked.Next, locked.Skills, locked.Status, locked.Work, locked.LeaseUntil = nil, nil, core.RunStatusMeasuring, store.WorkWanted, store.Time{}
		*r = *locked
		return tx.UpdateRun(ctx, r)
	})
	if r.Version != stale.Version+1 {
		t.Errorf("version %d after %d", r.Version, stale.Version)
	}
	same(t, ok(t.db.Run(t.ctx, mine, r.ID))(t), r)
	t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateRun(ctx, &stale) })
	if stale.Version != r.Version-1 {
		t.Error("a refused update changed the version of the row")
	}
	count(t, "measuring", len(ok(t.db.SystemRunsMeasuring(t.ctx, 10))(t)), 1)

	count(t, "wanted", len(ok(t.db.SystemRunsToAdvance(t.ctx, moment, 10))(t)), 1)
	r.Work, r.LeaseOwner, r.LeaseUntil = store.WorkRunning, "host_1", at(time.Minute)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateRun(ctx, r) })
	count(t, "running", len(ok(t.db.SystemRunsToAdvance(t.ctx, moment, 10))(t)), 0)
	count(t, "silent", len(ok(t.db.SystemRunsToAdvance(t.ctx, moment.Add(time.Minute), 10))(t)), 1)
	r.Work = store.WorkDone
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateRun(ctx, r) })
	count(t, "done", len(ok(t.db.SystemRunsToAdvance(t.ctx, moment.Add(time.Hour), 10))(t)), 0)

	other := t.newRun(2)
	if list := ok(t.db.ListRuns(t.ctx, mine, core.Query{}))(t); len(list.Items) != 2 || list.Items[0].ID != other.ID {
		t.Errorf("%d runs, newest %s", len(list.Items), list.Items[0].ID)
	}
	count(t, "by status", len(ok(t.db.ListRuns(t.ctx, mine, core.Query{Status: string(core.RunStatusMeasuring)}))(t).Items), 1)
	count(t, "since", len(ok(t.db.ListRuns(t.ctx, mine, core.Query{Since: moment.Add(2 * time.Second)}))(t).Items), 1)
	count(t, "theirs", len(ok(t.db.ListRuns(t.ctx, theirs, core.Query{}))(t).Items), 0)
}

func drafts(t *T) {
	a := filled[store.Asset](1)
	a.ID, a.WorkspaceID, a.RunID, a.Status = t.id(core.PrefixAsset), mine, "run_drafts", core.AssetStatusDraftUnapproved
	b := *a
	b.ID = t.id(core.PrefixAsset)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		if err := tx.InsertAsset(ctx, a); err != nil {
			return err
		}
		return tx.InsertAsset(ctx, &b)
	})
	same(t, ok(t.db.Asset(t.ctx, mine, a.ID))(t), a)
	_, err := t.db.Asset(t.ctx, theirs, a.ID)
	t.hasCode("not_found", err)
	stale := *a
	a.Status, a.Data = core.AssetStatusApproved, store.JSON(`{}`)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateAsset(ctx, a) })
	same(t, ok(t.db.Asset(t.ctx, mine, a.ID))(t), a)
	t.refused("changed_meanwhile", func(ctx context.Context, tx *store.Tx) error { return tx.UpdateAsset(ctx, &stale) })
	count(t, "their assets", len(ok(t.db.ListAssets(t.ctx, theirs, core.Query{RunID: "run_drafts"}))(t).Items), 0)
	count(t, "approved", len(ok(t.db.ListAssets(t.ctx, mine, core.Query{RunID: "run_drafts", Status: "approved"}))(t).Items), 1)
	count(t, "of a run", len(ok(t.db.ListAssets(t.ctx, mine, core.Query{RunID: "run_none"}))(t).Items), 0)

	rows := []store.Evidence{*filled[store.Evidence](1), *filled[store.Evidence](2)}
	for i := range rows {
		rows[i].WorkspaceID, rows[i].RunID = mine, "run_drafts"
	}
	insert := func(ctx context.Context, tx *store.Tx) error { return tx.InsertEvidence(ctx, rows) }
	t.write(insert)
	contents := []store.Content{{RunID: a.RunID, ID: a.ID, Genericity: a.Genericity}, {RunID: b.RunID, ID: b.ID, Genericity: b.Genericity},
		{RunID: "run_drafts", ID: rows[0].ID, Evidence: true}, {RunID: "run_drafts", ID: rows[1].ID, Evidence: true}}
	same(t, ok(t.db.ContentsOf(t.ctx, mine, "run_drafts", "run_none"))(t), contents)
	t.write(func(ctx context.Context, tx *store.Tx) error {
		same(t, ok(tx.ContentsOf(ctx, mine, "run_drafts"))(t), contents)
		return nil
	})
	count(t, "their contents", len(ok(t.db.ContentsOf(t.ctx, theirs, "run_drafts"))(t)), 0)
	count(t, "contents of nothing", len(ok(t.db.ContentsOf(t.ctx, mine))(t)), 0)
	same(t, ok(t.db.Evidence(t.ctx, mine, rows[0].ID))(t), &rows[0])
	_, err = t.db.Evidence(t.ctx, theirs, rows[0].ID)
	t.hasCode("not_found", err)
	first := rows[0].Ord
	t.write(insert) // the same again
	if got := ok(t.db.ListEvidence(t.ctx, mine, core.Query{RunID: "run_drafts"}))(t).Items; len(got) != 2 || got[1].Ord != first {
		t.Errorf("evidence stored again: %+v", got)
	}
	page := ok(t.db.ListEvidence(t.ctx, mine, core.Query{RunID: "run_drafts", Limit: 1}))(t)
	if len(page.Items) != 1 || page.Items[0].ID != rows[1].ID {
		t.Errorf("newest evidence %+v", page.Items)
	}
	if next := ok(t.db.ListEvidence(t.ctx, mine, core.Query{RunID: "run_drafts", Limit: 1, Cursor: page.NextCursor}))(t); len(next.Items) != 1 || next.Items[0].ID != rows[0].ID || next.NextCursor != "" {
		t.Errorf("second page %+v", next)
	}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertEvidence(ctx, nil) })
}

func (t *T) newAction(run string, seed int, change func(*store.Action)) *store.Action {
	a := filled[store.Action](seed)
	a.ID, a.WorkspaceID, a.RunID = t.id(core.PrefixAction), mine, run
	a.Status, a.Executor = core.ActionStatusPending, core.ActionExecutorConnector
	if change != nil {
		change(a)
	}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertAction(ctx, a) })
	return a
}

func actions(t *T) {
	a := t.newAction("run_actions", 1, nil)
	b := t.newAction("run_actions", 2, func(a *store.Action) { a.Status = core.ActionStatusSucceeded })
	same(t, ok(t.db.Action(t.ctx, mine, a.ID))(t), a)
	same(t, ok(t.db.SystemAction(t.ctx, a.ID))(t), a)
	_, err := t.db.Action(t.ctx, theirs, a.ID)
	t.hasCode("not_found", err)
	same(t, ok(t.db.ActionsOfRun(t.ctx, mine, "run_actions"))(t), []store.Action{*a, *b})
	count(t, "their actions", len(ok(t.db.ActionsOfRun(t.ctx, theirs, "run_actions"))(t)), 0)
	list := ok(t.db.ListActions(t.ctx, mine, core.Query{RunID: "run_actions"}))(t)
	same(t, list.Items, []store.Action{*b, *a})
	count(t, "pending", len(ok(t.db.ListActions(t.ctx, mine, core.Query{RunID: "run_actions", Status: "pending"}))(t).Items), 1)
	count(t, "theirs", len(ok(t.db.ListActions(t.ctx, theirs, core.Query{}))(t).Items), 0)

	briefs := ok(t.db.ActionBriefs(t.ctx, mine, "run_actions", "run_actions", "", "run_none"))(t)
	want := store.ActionBrief{ID: a.ID, RunID: a.RunID, Status: a.Status, Revision: a.Revision, Digest: a.Digest, Proof: a.Proof,
		Reversibility: a.Reversibility, Reach: a.Reach, CostMicros: a.CostMicros, Currency: a.Currency, ExpiresAt: a.ExpiresAt, FinishedAt: a.FinishedAt}
	if len(briefs) != 2 {
		t.Fatalf("%d briefs", len(briefs))
	}
	same(t, briefs[0], want)
	count(t, "briefs of none", len(ok(t.db.ActionBriefs(t.ctx, mine))(t)), 0)
	count(t, "their briefs", len(ok(t.db.ActionBriefs(t.ctx, theirs, "run_actions"))(t)), 0)
	counts := ok(t.db.CountActions(t.ctx, mine))(t)
	if counts[core.ActionStatusPending] != 1 || counts[core.ActionStatusSucceeded] != 1 {
		t.Errorf("counts %v", counts)
	}

	stale := *a
	t.write(func(ctx context.Context, tx *store.Tx) error {
		locked := ok(tx.LockAction(ctx, mine, a.ID))(t)
		if _, err := tx.LockAction(ctx, theirs, a.ID); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("locked from another workspace: %v", err)
		}
		count(t, "locked", len(ok(tx.LockActionsOfRun(ctx, mine, "run_actions"))(t)), 2)
		locked.Status, locked.ExecError, locked.LeaseUntil, locked.Steps = core.ActionStatusApproved, nil, store.Time{}, nil
		locked.CreatedByID = "not written"
		if err := tx.UpdateAction(ctx, locked); err != nil {
			return err
		}
		locked.CreatedByID = a.CreatedByID
		*a = *locked
		return nil
	})
	same(t, ok(t.db.Action(t.ctx, mine, a.ID))(t), a)
	err = t.db.InTx(t.ctx, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateAction(ctx, &stale) })
	if t.hasCode("changed_meanwhile", err); !store.IsChanged(err) || store.IsChanged(nil) {
		t.Error("IsChanged is wrong")
	}

	count(t, "of the plugin", len(ok(t.db.SystemActionsOfPlugin(t.ctx, a.Plugin))(t)), 1)
	count(t, "of the other plugin, final", len(ok(t.db.SystemActionsOfPlugin(t.ctx, b.Plugin))(t)), 0)
	count(t, "of the connection", len(ok(t.db.ActionsOfConnection(t.ctx, mine, a.ConnectionID))(t)), 1)
	count(t, "of their connection", len(ok(t.db.ActionsOfConnection(t.ctx, theirs, a.ConnectionID))(t)), 0)
	in := ok(t.db.SystemActionsIn(t.ctx, "", 10, core.ActionStatusApproved, core.ActionStatusSucceeded))(t)
	same(t, in, []store.Action{*a, *b})
	count(t, "after the first", len(ok(t.db.SystemActionsIn(t.ctx, a.ID, 10, core.ActionStatusApproved, core.ActionStatusSucceeded))(t)), 1)
}

func dueActions(t *T) {
	now := moment.Add(100 * 24 * time.Hour)
	when := func(d time.Duration) store.Time { return store.At(now.Add(d)) }
	due := func(change func(*store.Action)) string {
		return t.newAction("run_due", 3, func(a *store.Action) {
			a.Status, a.ExecuteAt, a.NextTryAt, a.NotBefore, a.ExpiresAt = core.ActionStatusApproved, when(0), store.Time{}, store.Time{}, when(time.Hour)
			change(a)
		}).ID
	}
	first := due(func(a *store.Action) { a.ExecuteAt = when(-time.Minute) })
	second := due(func(a *store.Action) { a.NextTryAt, a.NotBefore = when(0), when(0) })
	due(func(a *store.Action) { a.ExecuteAt = when(time.Second) })
	due(func(a *store.Action) { a.NextTryAt = when(time.Second) })
	due(func(a *store.Action) { a.NotBefore = when(time.Second) })
	due(func(a *store.Action) { a.Executor = core.ActionExecutorManual })
	got := ids(ok(t.db.SystemDueActions(t.ctx, now, 10))(t), "run_due")
	same(t, got, []string{first, second})

	late := due(func(a *store.Action) { a.ExpiresAt, a.ExecuteAt = when(0), when(time.Hour) })
	waits := due(func(a *store.Action) { a.ExpiresAt, a.Status = when(-time.Second), core.ActionStatusPending })
	due(func(a *store.Action) { a.ExpiresAt, a.Status = when(-time.Second), core.ActionStatusSending })
	same(t, ids(ok(t.db.SystemOverdueActions(t.ctx, now, 100))(t), "run_due"), []string{waits, late})

	claimed := due(func(a *store.Action) { a.Status, a.LeaseUntil = core.ActionStatusClaimed, when(-time.Minute) })
	sending := due(func(a *store.Action) { a.Status, a.LeaseUntil = core.ActionStatusSending, when(0) })
	due(func(a *store.Action) { a.Status, a.LeaseUntil = core.ActionStatusSending, when(time.Second) })
	got = ids(ok(t.db.SystemEndedLeases(t.ctx, now, 100))(t), "run_due")
	if len(got) < 2 || got[len(got)-2] != claimed || got[len(got)-1] != sending {
		t.Errorf("ended leases %v, want %s and %s last", got, claimed, sending)
	}
}

func ids(rows []store.Action, run string) []string {
	out := []string{}
	for _, r := range rows {
		if r.RunID == run {
			out = append(out, r.ID)
		}
	}
	return out
}

func decisions(t *T) {
	v := filled[store.ActionRevision](1)
	v.WorkspaceID = mine
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertActionRevision(ctx, v) })
	t.refused("already_exists", func(ctx context.Context, tx *store.Tx) error { return tx.InsertActionRevision(ctx, v) })
	same(t, ok(t.db.ActionRevision(t.ctx, mine, v.ActionID, v.Revision))(t), v)
	same(t, ok(t.db.ActionRevisions(t.ctx, mine, v.ActionID))(t), []store.ActionRevision{*v})
	_, err := t.db.ActionRevision(t.ctx, theirs, v.ActionID, v.Revision)
	t.hasCode("not_found", err)
	count(t, "their revisions", len(ok(t.db.ActionRevisions(t.ctx, theirs, v.ActionID))(t)), 0)

	d := filled[store.Decision](1)
	d.ID, d.WorkspaceID, d.Void = t.id(core.PrefixDecision), mine, false
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.InsertDecision(ctx, d) })
	same(t, ok(t.db.DecisionsOf(t.ctx, mine, d.ActionID, "act_none"))(t), []store.Decision{*d})
	count(t, "their decisions", len(ok(t.db.DecisionsOf(t.ctx, theirs, d.ActionID))(t)), 0)
	count(t, "decisions on nothing", len(ok(t.db.DecisionsOf(t.ctx, mine))(t)), 0)
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.VoidDecisions(ctx, theirs, d.ActionID) })
	if ok(t.db.DecisionsOf(t.ctx, mine, d.ActionID))(t)[0].Void {
		t.Error("voided from another workspace")
	}
	t.write(func(ctx context.Context, tx *store.Tx) error { return tx.VoidDecisions(ctx, mine, d.ActionID) })
	if !ok(t.db.DecisionsOf(t.ctx, mine, d.ActionID))(t)[0].Void {
		t.Error("not voided")
	}

	for i := range 2 { // written twice: the second replaces the first
		p := filled[store.Delivery](i + 1)
		p.WorkspaceID, p.PrincipalID, p.RunID = mine, "usr_1", "run_1"
		t.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutDelivery(ctx, p) })
		same(t, ok(t.db.Delivery(t.ctx, mine, "usr_1", "run_1"))(t), p)
	}
	for _, c := range [][3]string{{string(theirs), "usr_1", "run_1"}, {string(mine), "usr_2", "run_1"}, {string(mine), "usr_1", "run_2"}} {
		_, err := t.db.Delivery(t.ctx, store.WorkspaceID(c[0]), c[1], c[2])
		t.hasCode("not_found", err)
	}
}
