package run_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/event"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

const ws = "ws_01ARZ3NDEKTSV4RRFFQ69G5FAV"

type turned struct {
	mu sync.Mutex
	at time.Time
}

func (c *turned) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *turned) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func service(t *testing.T, db *store.DB, c core.Clock) *run.Service {
	t.Helper()
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return run.New(run.Deps{DB: db, Audit: audit.New(db, keys, c, nil), Events: event.NewBus(db, c, nil), Clock: c, BaseURL: "http://localhost:8080/"})
}

func key(id string) core.Principal {
	return core.Principal{Kind: core.ActorKindKey, KeyKind: core.APIKeyKindAgent, ID: id, Label: id, WorkspaceID: ws, Scopes: core.ScopesOfKey(core.APIKeyKindAgent)}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func refused(t *testing.T, err error, code string) *core.Error {
	t.Helper()
	e := core.AsError(err)
	if err == nil || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

func TestLifeOfARun(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		s, p := service(t, db, core.SystemClock{}), key("key_1")
		r := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "  Find users ", WorkspaceID: ws, ProjectID: "shop", Operator: "marketing"}))
		if r.Status != core.RunStatusCreated || r.Goal != "Find users" || r.ReviewURL != "http://localhost:8080/review/"+r.ID || r.Version != 1 || r.AssetIds == nil || r.ActionIds == nil || r.EvidenceIds == nil || r.Skills == nil || r.Counts == nil {
			t.Fatalf("created %+v", r)
		}
		for _, phase := range []core.RunPhase{core.PhaseGathering, core.PhaseDrafting, core.PhaseInReview} {
			if err := s.SetPhase(t.Context(), ws, r.ID, phase, ""); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Describe(t.Context(), ws, r.ID, run.Update{Intent: "launch", Confidence: 1.7, Skills: []string{"a", "b", "a"}, Next: &core.NextCall{Tool: "mkt_get_run", Reason: "look"}})
		if err != nil {
			t.Fatal(err)
		}
		got := must[*core.Run](t)(s.Get(t.Context(), p, r.ID))
		if got.Status != core.RunStatusCompleted || got.Intent.Confidence != 1 || len(got.Skills) != 2 || got.Next.Arguments == nil || got.Version != 5 || got.PackDigest != run.PackDigest(nil) {
			t.Errorf("%+v", got)
		}
		cancelled := must[*core.Run](t)(s.Cancel(t.Context(), p, r.ID))
		if cancelled.Status != core.RunStatusCancelled || !strings.Contains(cancelled.StatusReason, "key_1") {
			t.Errorf("%+v", cancelled)
		}
		refused(t, s.SetPhase(t.Context(), ws, r.ID, core.PhaseDrafting, ""), "run_ended")
		_, err = s.Cancel(t.Context(), p, r.ID)
		refused(t, err, "wrong_state")
	})
}

func TestRunsOfOthers(t *testing.T) {
	db := testdb.SQLite(t)
	s, p := service(t, db, core.SystemClock{}), key("key_1")
	r := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"}))
	other := key("key_1")
	other.WorkspaceID = "ws_other"
	_, err := s.Get(t.Context(), other, r.ID)
	refused(t, err, "not_found")
	_, err = s.Create(t.Context(), other, run.Create{Goal: "g", WorkspaceID: ws})
	refused(t, err, "not_found")
	_, err = s.Cancel(t.Context(), key("key_2"), r.ID)
	refused(t, err, "not_your_run")
	_, err = s.Create(t.Context(), core.Anonymous(), run.Create{Goal: "g"})
	refused(t, err, "unauthenticated")
	viewer := core.Principal{Kind: core.ActorKindPerson, ID: "usr_1", WorkspaceID: ws, Scopes: core.ScopesOfRole(core.UserRoleViewer)}
	_, err = s.Create(t.Context(), viewer, run.Create{Goal: "g"})
	refused(t, err, "missing_scope")
	page := must[core.Page[core.Run]](t)(s.List(t.Context(), other, core.Query{}))
	if page.Items == nil || len(page.Items) != 0 {
		t.Errorf("foreign list %+v", page)
	}
}

func TestBadInput(t *testing.T) {
	s := service(t, testdb.SQLite(t), core.SystemClock{})
	for _, in := range []run.Create{{Goal: "  "}, {Goal: strings.Repeat("x", run.MaxGoal+1)}, {Goal: "\xff"}, {Goal: "g", ProjectID: strings.Repeat("x", run.MaxProject+1)}, {Goal: "g", Args: []byte("{")}} {
		_, err := s.Create(t.Context(), key("k"), in)
		if e := refused(t, err, "invalid"); len(e.Fields) == 0 {
			t.Errorf("%+v: no field is named", in)
		}
	}
}

func TestListPagesNewestFirst(t *testing.T) {
	s, p := service(t, testdb.SQLite(t), core.SystemClock{}), key("k")
	ids := []string{}
	for range 5 {
		ids = append(ids, must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"})).ID)
	}
	got, cursor := []string{}, ""
	for {
		page := must[core.Page[core.Run]](t)(s.List(t.Context(), p, core.Query{Limit: 2, Cursor: cursor}))
		for _, r := range page.Items {
			got = append(got, r.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for i := range ids {
		if got[i] != ids[4-i] {
			t.Fatalf("order %v of %v", got, ids)
		}
	}
}

func TestAssets(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		s, p := service(t, db, core.SystemClock{}), key("k")
		r := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"}))
		draft := core.Asset{Kind: "social_post", Skill: "socialposts", Channel: "x", Title: "t", Locale: "en", Content: core.AssetContent{"text": "hi"}, Origin: core.AssetOriginDeterministic,
			GenericityRisk: &core.GenericityRisk{Score: 0.25, WorstSentences: []core.WorstSentence{}}, Claims: []core.Claim{{Text: "c"}}}
		a := must[*core.Asset](t)(s.SaveAsset(t.Context(), ws, r.ID, draft))
		if a.Revision != 1 || a.Status != core.AssetStatusDraftUnapproved || len(a.Digest) != 64 || a.Checks == nil || a.Claims[0].EvidenceIds == nil {
			t.Errorf("%+v", a)
		}
		draft.ID, draft.Content = a.ID, core.AssetContent{"text": "ho"}
		b := must[*core.Asset](t)(s.SaveAsset(t.Context(), ws, r.ID, draft))
		if b.ID != a.ID || b.Revision != 2 || b.ParentRevision != 1 || b.Digest == a.Digest {
			t.Errorf("%+v", b)
		}
		got := must[*core.Asset](t)(s.Asset(t.Context(), p, a.ID))
		if got.Content["text"] != "ho" || got.Revision != 2 {
			t.Errorf("%+v", got)
		}
		shown := must[*core.Run](t)(s.Get(t.Context(), p, r.ID))
		if len(shown.AssetIds) != 1 || shown.Risk.Genericity != 0.25 || shown.Version != 3 {
			t.Errorf("%+v", shown)
		}
		draft.Origin = "magic"
		_, err := s.SaveAsset(t.Context(), ws, r.ID, draft)
		refused(t, err, "invalid_asset")
		draft.Origin, draft.Content = core.AssetOriginCaller, core.AssetContent{"text": strings.Repeat("x", run.MaxAssetBytes)}
		_, err = s.SaveAsset(t.Context(), ws, r.ID, draft)
		refused(t, err, "asset_too_large")
		elsewhere := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"}))
		draft.Content = core.AssetContent{"text": "x"}
		_, err = s.SaveAsset(t.Context(), ws, elsewhere.ID, draft)
		refused(t, err, "not_found")
		if page := must[core.Page[core.Asset]](t)(s.Assets(t.Context(), p, core.Query{RunID: r.ID})); len(page.Items) != 1 {
			t.Errorf("%+v", page)
		}
	})
}

func TestEvidenceIsNamedByItsContent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		s, p := service(t, db, core.SystemClock{}), key("k")
		one := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"}))
		two := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"}))
		quote := "We ship \xffcookies" + strings.Repeat("é", run.MaxQuote)
		item := core.Evidence{Source: "https://acme.example", Kind: core.EvidenceKindPageText, Locator: "p[1]", Quote: &quote, Trust: core.EvidenceTrustObserved}
		a := must[[]core.Evidence](t)(s.SaveEvidence(t.Context(), ws, one.ID, []core.Evidence{item, item}))
		b := must[[]core.Evidence](t)(s.SaveEvidence(t.Context(), ws, two.ID, []core.Evidence{item}))
		if a[0].ID != a[1].ID || a[0].ID == b[0].ID || a[0].Digest != b[0].Digest || len(a[0].ID) != 23 || a[0].CapturedAt.IsZero() {
			t.Errorf("%+v %+v", a, b)
		}
		if n := len([]rune(*a[0].Quote)); n != run.MaxQuote {
			t.Errorf("the quote has %d characters", n)
		}
		other := item
		other.Locator = "p[2]"
		if c := must[[]core.Evidence](t)(s.SaveEvidence(t.Context(), ws, one.ID, []core.Evidence{other, item})); c[0].ID == a[0].ID || c[1].ID != a[0].ID {
			t.Errorf("%+v", c)
		}
		page := must[core.Page[core.Evidence]](t)(s.EvidenceOf(t.Context(), p, core.Query{RunID: one.ID}))
		if len(page.Items) != 2 {
			t.Errorf("%d pieces are stored", len(page.Items))
		}
		got := must[*core.Evidence](t)(s.Evidence(t.Context(), p, a[0].ID))
		if got.Locator != "p[1]" || *got.Quote != *a[0].Quote {
			t.Errorf("%+v", got)
		}
		_, err := s.SaveEvidence(t.Context(), ws, one.ID, []core.Evidence{{Source: "x"}})
		refused(t, err, "invalid_evidence")
	})
}

func TestMeasurementClosesByItself(t *testing.T) {
	c := &turned{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	db := testdb.Open(t, testdb.SQLiteURL(t), c)
	s, p := service(t, db, c), key("k")
	r := must[*core.Run](t)(s.Create(t.Context(), p, run.Create{Goal: "g"}))
	err := db.InTx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.InsertAction(ctx, &store.Action{ID: "act_1", WorkspaceID: ws, RunID: r.ID, Status: core.ActionStatusSucceeded, Digest: "d", Revision: 1, Executor: core.ActionExecutorManual,
			FinishedAt: store.At(c.Now()), ExpiresAt: store.At(c.Now().Add(time.Hour)), CreatedAt: store.At(c.Now()), UpdatedAt: store.At(c.Now()), Version: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetPhase(t.Context(), ws, r.ID, core.PhaseInReview, ""); err != nil {
		t.Fatal(err)
	}
	if n := must[int](t)(s.Settle(t.Context())); n != 0 {
		t.Errorf("settled %d too early", n)
	}
	got := must[*core.Run](t)(s.Get(t.Context(), p, r.ID))
	if got.Status != core.RunStatusMeasuring || got.Counts["succeeded"] != 1 || *got.Measurement.OpensAt != c.Now() {
		t.Errorf("%+v", got)
	}
	c.turn(core.MeasurementWindow)
	if n := must[int](t)(s.Settle(t.Context())); n != 1 {
		t.Errorf("settled %d", n)
	}
	if page := must[core.Page[core.Run]](t)(s.List(t.Context(), p, core.Query{Status: string(core.RunStatusCompleted)})); len(page.Items) != 1 {
		t.Errorf("not in the list of completed runs: %+v", page)
	}
	events, err := db.EventsAfter(t.Context(), ws, r.ID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if last := events[len(events)-1]; last.Type != "measurement.closed" {
		t.Errorf("last event %s", last.Type)
	}
}

func TestPackDigestHasBorders(t *testing.T) {
	base := []run.PackItem{{ID: "a", Revision: 1, Digest: "bc"}}
	for _, other := range [][]run.PackItem{nil, {{ID: "ab", Revision: 1, Digest: "c"}}, {{ID: "a", Revision: 2, Digest: "bc"}}, {{ID: "a", Revision: 1, Digest: "bc"}, {}}} {
		if run.PackDigest(base) == run.PackDigest(other) {
			t.Errorf("%v has the digest of %v", other, base)
		}
	}
}
