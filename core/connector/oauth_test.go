package connector

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

func TestStartRefusesWhatCannotBegin(t *testing.T) {
	r := newRig(t)
	for provider, want := range map[string]string{"google_ads": "oauth_client_missing", "meta_ads": "oauth_not_offered", "buffer": "oauth_not_offered", "nothing": "connector_not_found"} {
		if _, err := r.OAuthStart(t.Context(), r.owner, provider); code(err) != want {
			t.Errorf("%s: %v, want %s", provider, err, want)
		}
	}
}

// signIn is a provider that answers one code with a grant.
type signIn struct {
	challenge string
	scope     string
	exchanges int
}

func startSignIn(t *testing.T, p *signIn) (*rig, string) {
	t.Helper()
	s := tokenServer(t, func(form url.Values) (int, string) {
		p.exchanges++
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if form.Get("code") != "the-code" || base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge || form.Get("client_secret") != "sec" {
			return 400, `{"error":"invalid_grant"}`
		}
		return 200, `{"access_token":"access-token-9","refresh_token":"refresh-token-9","expires_in":3600,"scope":"` + p.scope + `"}`
	})
	r := newRig(t, s.Listener.Addr().String())
	r.OAuth["google_search_console"] = Client{ID: "client", Secret: "sec", TokenURL: s.URL}
	return r, begin(t, r, p)
}

func begin(t *testing.T, r *rig, p *signIn) (state string) {
	t.Helper()
	start, err := r.OAuthStart(t.Context(), r.owner, "google_search_console")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(start.AuthorizationURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Host != "accounts.google.com" || q.Get("code_challenge_method") != "S256" || q.Get("access_type") != "offline" || q.Get("redirect_uri") != "https://ops.example.com/api/connectors/google_search_console/oauth/callback" ||
		q.Get("scope") != "https://www.googleapis.com/auth/webmasters.readonly" || len(q.Get("state")) < 40 {
		t.Errorf("address %s", start.AuthorizationURL)
	}
	p.challenge = q.Get("code_challenge")
	return q.Get("state")
}

const gscScope = "https://www.googleapis.com/auth/webmasters.readonly"

func TestSignInConnects(t *testing.T) {
	p := &signIn{scope: gscScope + " openid"}
	r, state := startSignIn(t, p)
	entry, err := r.OAuthCallback(t.Context(), r.owner, "google_search_console", Callback{State: state, Code: "the-code", Issuer: "https://accounts.google.com"})
	if err != nil || entry.Status != core.ConnectorStatusConnected || len(entry.Scopes) != 1 {
		t.Fatalf("%+v, %v", entry, err)
	}
	if _, err := r.OAuthCallback(t.Context(), r.owner, "google_search_console", Callback{State: state, Code: "the-code"}); code(err) != "oauth_state_gone" {
		t.Errorf("the same answer again: %v", err)
	}
	if p.exchanges != 1 {
		t.Errorf("%d exchanges", p.exchanges)
	}
}

func TestSignInFaults(t *testing.T) {
	for name, c := range map[string]struct {
		scope  string
		change func(*rig, *Callback, *core.Principal)
		want   string
		asked  int
	}{
		"refused by the person": {gscScope, func(_ *rig, c *Callback, _ *core.Principal) { c.Code, c.Error = "", "access_denied" }, "oauth_refused", 0},
		"foreign state":         {gscScope, func(_ *rig, c *Callback, _ *core.Principal) { c.State = "guessed" }, "oauth_state_gone", 0},
		"another person": {gscScope, func(r *rig, _ *Callback, p *core.Principal) {
			*p = r.person("victim@example.com", core.UserRoleOwner)
		}, "oauth_foreign_state", 0},
		"another issuer":    {gscScope, func(_ *rig, c *Callback, _ *core.Principal) { c.Issuer = "https://evil.example" }, "oauth_issuer", 0},
		"no code":           {gscScope, func(_ *rig, c *Callback, _ *core.Principal) { c.Code = "" }, "oauth_code_missing", 0},
		"injected code":     {gscScope, func(_ *rig, c *Callback, _ *core.Principal) { c.Code = "other" }, "oauth_rejected", 1},
		"too late":          {gscScope, func(r *rig, _ *Callback, _ *core.Principal) { r.clock.add(11 * time.Minute) }, "oauth_state_gone", 0},
		"scope not granted": {"openid", func(*rig, *Callback, *core.Principal) {}, "oauth_scope_missing", 1},
	} {
		p := &signIn{scope: c.scope}
		r, state := startSignIn(t, p)
		cb, who := Callback{State: state, Code: "the-code"}, r.owner
		c.change(r, &cb, &who)
		if _, err := r.OAuthCallback(t.Context(), who, "google_search_console", cb); code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if p.exchanges != c.asked {
			t.Errorf("%s: %d exchanges, want %d", name, p.exchanges, c.asked)
		}
		if _, err := r.Bind(t.Context(), r.owner.WorkspaceID, "google_search_console", ""); code(err) != "connector_not_connected" {
			t.Errorf("%s: connected", name)
		}
	}
}

func endpointOf(t *testing.T, provider, id string) schemas.Endpoint {
	t.Helper()
	for _, m := range manifests() {
		for _, e := range m.Needs.Endpoints {
			if m.Connector.Provider == provider && e.ID == id {
				return e
			}
		}
	}
	t.Fatalf("no endpoint %s", id)
	return schemas.Endpoint{}
}

func TestReadsStayWithinTheManifest(t *testing.T) {
	r := newRig(t)
	r.grant("google_search_console", time.Hour)
	query := endpointOf(t, "google_search_console", "gsc.query")
	body := []byte(`{"startDate":"2026-01-01","endDate":"2026-01-02"}`)
	site := map[string]string{"siteUrl": "sc-domain:example.com"}
	web := schemas.Endpoint{ID: "web", Class: schemas.ClassRead, Host: schemas.HostWeb}
	for name, q := range map[string]ReadRequest{
		"write endpoint":    {Provider: "webhook", Endpoint: endpointOf(t, "webhook", "webhook.post"), Body: []byte(`{}`)},
		"unknown parameter": {Endpoint: query, PathParams: map[string]string{"siteUrl": "x", "more": "y"}, Body: body},
		"missing parameter": {Endpoint: query, Body: body},
		"dot segment":       {Endpoint: query, PathParams: map[string]string{"siteUrl": ".."}, Body: body},
		"query key":         {Endpoint: query, PathParams: site, Body: body, Query: []effect.Pair{{Name: "alt", Value: "media"}}},
		"header":            {Endpoint: query, PathParams: site, Body: body, Headers: []effect.Pair{{Name: "X-Goog-User-Project", Value: "p"}}},
		"authorization":     {Endpoint: query, PathParams: site, Body: body, Headers: []effect.Pair{{Name: "Authorization", Value: "Bearer x"}}},
		"body":              {Endpoint: query, PathParams: site, Body: []byte(`{"startDate":"2026-01-01","endDate":"2026-01-02","extra":1}`)},
		"body on GET":       {Endpoint: endpointOf(t, "google_search_console", "gsc.sites"), Body: []byte(`{}`)},
		"address":           {Endpoint: query, PathParams: site, Body: body, URL: "https://evil.example/"},
		"web with body":     {Endpoint: web, URL: "https://example.com/", Body: []byte(`x`)},
		"web with query":    {Endpoint: web, URL: "https://example.com/", Query: []effect.Pair{{Name: "q", Value: "leak"}}},
		"wildcard host":     {Endpoint: schemas.Endpoint{ID: "x", Class: schemas.ClassRead, Host: "*.example.com"}},
	} {
		q.WorkspaceID = r.owner.WorkspaceID
		if q.Provider == "" {
			q.Provider = "google_search_console"
		}
		if _, err := r.Read(t.Context(), q); code(err) != "read_refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
	q := ReadRequest{WorkspaceID: r.person("x@example.com", core.UserRoleOwner).WorkspaceID, Provider: "google_search_console", Endpoint: query, PathParams: site, Body: body}
	if _, err := r.Read(t.Context(), q); code(err) != "connector_not_connected" {
		t.Errorf("another workspace: %v", err)
	}
}

func TestPathsAreEscapedAndSigned(t *testing.T) {
	r := newRig(t)
	c := r.grant("google_search_console", time.Hour)
	req := egress.Request{}
	q := ReadRequest{WorkspaceID: r.owner.WorkspaceID, Provider: "google_search_console", Endpoint: endpointOf(t, "google_search_console", "gsc.sitemaps"),
		PathParams: map[string]string{"siteUrl": "https://example.com/a b?c#d"}}
	if err := r.sign(context.Background(), q, &req); err != nil {
		t.Fatal(err)
	}
	if req.URL != "https://searchconsole.googleapis.com/webmasters/v3/sites/https:%2F%2Fexample.com%2Fa%20b%3Fc%23d/sitemaps" {
		t.Errorf("address %s", req.URL)
	}
	if len(req.Signers) != 1 || req.Credential.IsZero() || c.ID == "" {
		t.Errorf("not signed: %+v", req)
	}
}
