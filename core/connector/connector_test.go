package connector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

const whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestCatalogFitsItsSchemaAndTellsTheTruth(t *testing.T) {
	r := newRig(t)
	r.OAuth["google_analytics"] = Client{ID: "client"}
	list, err := r.Catalog(t.Context(), r.owner)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := schemas.Resource("connector")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]core.ConnectorStatus{"buffer": "setup_required", "google_ads": "not_configured", "google_analytics": "setup_required",
		"google_search_console": "not_configured", "meta_ads": "setup_required", "smtp": "setup_required", "webhook": "setup_required"}
	for _, c := range list {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(raw); err != nil {
			t.Errorf("%s: %v", c.Provider, err)
		}
		if c.Status != want[c.Provider] || c.SetupGuidance == nil {
			t.Errorf("%s is %s", c.Provider, c.Status)
		}
		delete(want, c.Provider)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if _, err := r.Catalog(t.Context(), core.Anonymous()); code(err) != "unauthenticated" {
		t.Errorf("anonymous: %v", err)
	}
}

func TestPutChecksFields(t *testing.T) {
	r := newRig(t)
	good := map[string]string{"url": "https://hooks.example.com/x", "secret": whsec}
	with := func(k, v string) map[string]string {
		m := map[string]string{"url": good["url"], "secret": good["secret"]}
		m[k] = v
		return m
	}
	for _, c := range []struct {
		provider, pointer string
		in                Credentials
	}{
		{"webhook", "/name", Credentials{Fields: good}},
		{"webhook", "/name", Credentials{Name: "Bad Name", Fields: good}},
		{"webhook", "/fields/url", Credentials{Name: "a", Fields: with("url", "ftp://x")}},
		{"webhook", "/fields/url", Credentials{Name: "a", Fields: with("url", "http://example.com/plain")}},
		{"webhook", "/fields/url", Credentials{Name: "a", Fields: with("url", "https://2130706433/")}},
		{"webhook", "/fields/secret", Credentials{Name: "a", Fields: with("secret", "short")}},
		{"webhook", "/fields/token", Credentials{Name: "a", Fields: with("token", "x")}},
		{"webhook", "/fields/secret", Credentials{Name: "a", Fields: map[string]string{"url": good["url"]}}},
		{"smtp", "/name", Credentials{Name: "x", Fields: map[string]string{}}},
		{"smtp", "/audiences/0/lawfulBasis", Credentials{Fields: map[string]string{}, Audiences: []Audience{{Name: "beta", Addresses: []string{"a@example.com"}}}}},
		{"smtp", "/audiences/0/addresses/1", Credentials{Fields: map[string]string{}, Audiences: []Audience{{Name: "beta", LawfulBasis: "consent", Addresses: []string{"a@example.com", "no"}}}}},
	} {
		_, err := r.Put(t.Context(), r.owner, c.provider, c.in)
		e := core.AsError(err)
		if err == nil || e.Kind != core.KindInvalid || len(e.Fields) == 0 || e.Fields[0].Pointer != c.pointer {
			t.Errorf("%s %+v: %v", c.pointer, c.in, err)
		}
	}
	if _, err := r.Put(t.Context(), r.owner, "nothing", Credentials{}); !core.IsKind(err, core.KindNotFound) {
		t.Errorf("unknown provider: %v", err)
	}
	member := r.owner
	member.Role, member.Scopes = core.UserRoleMember, core.ScopesOfRole(core.UserRoleMember)
	if _, err := r.Put(t.Context(), member, "webhook", Credentials{Name: "a", Fields: good}); code(err) != "missing_scope" {
		t.Errorf("member: %v", err)
	}
	r.clock.add(6 * time.Minute)
	if _, err := r.Put(t.Context(), r.owner, "webhook", Credentials{Name: "a", Fields: good}); code(err) != "weak_proof" {
		t.Errorf("old sign-in: %v", err)
	}
}

func TestWebhooksAreNamedSealedAndBound(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	put := func(name, url string) effect.Connection {
		t.Helper()
		fields := map[string]string{"url": url, "secret": whsec}
		if _, err := r.Put(ctx, r.owner, "webhook", Credentials{Name: name, Fields: fields}); err != nil {
			t.Fatal(err)
		}
		c, err := r.Bind(ctx, r.owner.WorkspaceID, "webhook", name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, other := put("launch", "https://hooks.example.com/a"), put("ops", "https://hooks.example.com/b")
	if first.ID == other.ID || first.Binding == other.Binding || first.BaseURL != "https://hooks.example.com/a" {
		t.Errorf("%+v %+v", first, other)
	}
	if again := put("launch", "https://hooks.example.com/a"); again != first {
		t.Errorf("the same address changed the connection: %+v", again)
	}
	if moved := put("launch", "https://hooks.example.com/c"); moved.Binding == first.Binding || moved.ID != first.ID {
		t.Errorf("another address kept the binding: %+v", moved)
	}
	entry, err := r.Get(ctx, r.owner, "webhook")
	if err != nil || len(entry.Endpoints) != 2 || entry.Status != core.ConnectorStatusConnected {
		t.Fatalf("%+v, %v", entry, err)
	}
	everything, err := json.Marshal(entry)
	if err != nil || strings.Contains(string(everything), whsec) {
		t.Error("the secret is in the catalog")
	}
	stranger := r.person("stranger@example.com", core.UserRoleOwner)
	if _, err := r.Bind(ctx, stranger.WorkspaceID, "webhook", "launch"); code(err) != "connector_not_connected" {
		t.Errorf("another workspace: %v", err)
	}
	if _, err := r.Credential(ctx, stranger.WorkspaceID, first.ID); !core.IsKind(err, core.KindNotFound) {
		t.Errorf("another workspace's credential: %v", err)
	}
	if err := r.Delete(ctx, r.owner, "webhook", "ops"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Bind(ctx, r.owner.WorkspaceID, "webhook", "ops"); code(err) != "connector_not_connected" {
		t.Errorf("after delete: %v", err)
	}
}

func TestSecretsAreNotInTheDatabase(t *testing.T) {
	r := newRig(t)
	const password = "canary-password-93117"
	_, err := r.Put(t.Context(), r.owner, "smtp", Credentials{Fields: map[string]string{"host": "127.0.0.1", "port": "9", "from": "a@example.com", "username": "u", "password": password},
		Audiences: []Audience{{Name: "beta", LawfulBasis: "consent", Addresses: []string{"b@example.com"}}}})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := r.Get(t.Context(), r.owner, "smtp")
	if err != nil || entry.Status != core.ConnectorStatusError || !strings.Contains(entry.StatusReason, "egress.allowPrivate") {
		t.Errorf("a refused server: %+v, %v", entry, err)
	}
	list, err := r.Connections(t.Context(), r.owner.WorkspaceID)
	if err != nil || len(list) != 1 || list[0].Audiences[0].Addresses[0] != "b@example.com" || len(list[0].WriteTools) != 1 || list[0].WriteTools[0] != "smtp_send" {
		t.Errorf("%+v, %v", list, err)
	}
	rows, err := r.db.WriterSQL().Query(`SELECT fields || coalesce(audiences,'') || coalesce(status_reason,'') FROM connections UNION ALL SELECT hex(sealed) FROM secrets UNION ALL SELECT coalesce(details,'') FROM audit_entries`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		n++
		if strings.Contains(text, password) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", password)) {
			t.Errorf("the password is stored in %q", text)
		}
	}
	if n < 3 || rows.Err() != nil {
		t.Errorf("%d rows looked at, %v", n, rows.Err())
	}
}

func TestSnapshotGuidesOrReads(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	schema, err := schemas.Resource("snapshot")
	if err != nil {
		t.Fatal(err)
	}
	check := func(s *core.Snapshot, err error) *core.Snapshot {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		raw, merr := json.Marshal(s)
		if merr != nil {
			t.Fatal(merr)
		}
		if err := schema.Validate(raw); err != nil {
			t.Error(err)
		}
		return s
	}
	for _, provider := range []string{"google_search_console", "google_analytics", "google_ads", "meta_ads", "buffer"} {
		s := check(r.Snapshot(ctx, r.owner, provider))
		if s.Source != core.SnapshotSourceSetupGuidance || s.SetupGuidance.Status != core.SetupGuidanceStatusSetupRequired || len(s.SetupGuidance.Steps) < 3 {
			t.Errorf("%s: %+v", provider, s)
		}
	}
	if s := check(r.Snapshot(ctx, r.owner, "google_ads")); *s.SetupGuidance.RedirectUri != "https://ops.example.com/api/connectors/google_ads/oauth/callback" {
		t.Errorf("redirect %v", s.SetupGuidance.RedirectUri)
	}
	if _, err := r.Put(ctx, r.owner, "meta_ads", Credentials{Fields: map[string]string{"adAccount": "act_1234567", "token": strings.Repeat("t", 40)}}); err != nil {
		t.Fatal(err)
	}
	if s := check(r.Snapshot(ctx, r.owner, "meta_ads")); s.SetupGuidance.Error == nil || s.SetupGuidance.Error.Code != "no_snapshot" {
		t.Errorf("connected without snapshot: %+v", s)
	}
	r.grant("google_search_console", time.Hour)
	fail := error(core.Errf(core.KindInvalid, "provider_quota", "Wait."))
	r.CallTool = func(_ context.Context, _ core.Principal, tool string, _ json.RawMessage) (json.RawMessage, error) {
		if tool != "google_search_console_snapshot" {
			t.Errorf("called %s", tool)
		}
		return json.RawMessage(`{"account":"sc-domain:example.com","window":{"from":"2026-01-01","to":"2026-01-28"},"metrics":{"current":{"clicks":5}},"rows":[{"kind":"page"}]}`), fail
	}
	if s := check(r.Snapshot(ctx, r.owner, "google_search_console")); s.SetupGuidance.Error.Code != "provider_quota" {
		t.Errorf("a failed read: %+v", s)
	}
	fail = nil
	s := check(r.Snapshot(ctx, r.owner, "google_search_console"))
	if s.Source != core.SnapshotSourceLive || s.Window.From != "2026-01-01" || len(s.Rows) != 1 {
		t.Errorf("%+v", s)
	}
	entry, err := r.Get(ctx, r.owner, "google_search_console")
	if err != nil || entry.LastSnapshotAt == nil || entry.Account != "sc-domain:example.com" {
		t.Errorf("%+v, %v", entry, err)
	}
	fail = core.Errf(core.KindConflict, "needs_reauth", "Connect again.")
	if s := check(r.Snapshot(ctx, r.owner, "google_search_console")); s.SetupGuidance.Status != core.SetupGuidanceStatusNeedsReauth {
		t.Errorf("%+v", s)
	}
}

// grant stores a sign-in as the callback would.
func (r *rig) grant(provider string, life time.Duration) effect.Connection {
	r.t.Helper()
	m, err := r.manifest(provider)
	if err != nil {
		r.t.Fatal(err)
	}
	g := &grant{AccessToken: "access-token-1", RefreshToken: "refresh-token-1", ExpiresIn: int64(life.Seconds())}
	if err := r.storeGrant(r.t.Context(), r.owner, *m, g); err != nil {
		r.t.Fatal(err)
	}
	c, err := r.Bind(r.t.Context(), r.owner.WorkspaceID, provider, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// tokenServer is a provider's token endpoint that follows a script.
func tokenServer(t *testing.T, answer func(form url.Values) (int, string)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		status, body := answer(r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestFiftyCallsRenewOnce(t *testing.T) {
	var renewals atomic.Int64
	s := tokenServer(t, func(form url.Values) (int, string) {
		renewals.Add(1)
		if form.Get("grant_type") != "refresh_token" || form.Get("refresh_token") != "refresh-token-1" {
			t.Errorf("form %v", form)
		}
		return 200, `{"access_token":"access-token-2","expires_in":3600}`
	})
	r := newRig(t, s.Listener.Addr().String())
	r.OAuth["google_analytics"] = Client{ID: "client", Secret: "sec", TokenURL: s.URL}
	c := r.grant("google_analytics", time.Minute)
	r.clock.add(2 * time.Minute)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := r.Credential(context.Background(), r.owner.WorkspaceID, c.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := renewals.Load(); n != 1 {
		t.Errorf("%d renewals", n)
	}
}

func TestRefusedRenewalAsksToConnectAgain(t *testing.T) {
	status, body := 503, `{}`
	s := tokenServer(t, func(url.Values) (int, string) { return status, body })
	r := newRig(t, s.Listener.Addr().String())
	r.OAuth["google_analytics"] = Client{ID: "client", TokenURL: s.URL}
	c := r.grant("google_analytics", time.Minute)
	r.clock.add(time.Hour)
	if _, err := r.Credential(t.Context(), r.owner.WorkspaceID, c.ID); code(err) != "oauth_unavailable" {
		t.Errorf("outage: %v", err)
	}
	if _, err := r.Bind(t.Context(), r.owner.WorkspaceID, "google_analytics", ""); err != nil {
		t.Errorf("an outage disconnected it: %v", err)
	}
	status, body = 400, `{"error":"invalid_grant"}`
	if _, err := r.Credential(t.Context(), r.owner.WorkspaceID, c.ID); code(err) != "needs_reauth" {
		t.Errorf("revoked: %v", err)
	}
	entry, err := r.Get(t.Context(), r.owner, "google_analytics")
	if err != nil || entry.Status != core.ConnectorStatusNeedsReauth || entry.SetupGuidance.Status != core.SetupGuidanceStatusNeedsReauth {
		t.Errorf("%+v, %v", entry, err)
	}
}
