package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

func TestTokenLivesFifteenMinutes(t *testing.T) {
	f, owner := settled(t)
	token, err := f.MintToken(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.VerifyToken(t.Context(), token.Token)
	if err != nil || p.ID != owner.ID || p.WorkspaceID != owner.WorkspaceID || p.ProofAt(f.ticks.Now()) != core.ProofP2 {
		t.Fatalf("%+v, %v", p, err)
	}
	f.ticks.pass(core.RecentSignIn + time.Second)
	if p, err = f.VerifyToken(t.Context(), token.Token); err != nil || p.ProofAt(f.ticks.Now()) != core.ProofP1 {
		t.Fatalf("%+v, %v", p, err)
	}
	f.ticks.pass(TokenTTL - core.RecentSignIn)
	_, err = f.VerifyToken(t.Context(), token.Token)
	wantCode(t, err, "token_expired")
}

func TestTokensMadeBesideAHostAreForIt(t *testing.T) {
	f, owner := settled(t)
	beside := on(t, f.database, f.ticks, f.dir) // the command line: same data, default address
	beside.baseURL = "http://localhost:8080"
	if err := f.Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	token, err := beside.MintToken(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.VerifyToken(t.Context(), token.Token); err != nil {
		t.Error(err)
	}
	_, err = beside.VerifyToken(t.Context(), token.Token)
	wantCode(t, err, "invalid_token")
}

func TestTokensAreNarrowed(t *testing.T) {
	f, owner := settled(t)
	token, err := f.MintToken(t.Context(), owner, core.ScopeRunsRead)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.VerifyToken(t.Context(), token.Token)
	if err != nil || !p.Can(core.ScopeRunsRead) || p.Can(core.ScopeRunsWrite) || p.Can(core.ScopeAdmin) {
		t.Fatalf("%+v, %v", p, err)
	}
	_, err = f.MintToken(t.Context(), owner, "everything")
	wantCode(t, err, "unknown_scope")
	_, err = f.MintToken(t.Context(), core.Principal{Kind: core.ActorKindKey, ID: "key_x"})
	wantCode(t, err, "not_a_person")
}

// TestForgedTokens signs with the right key wherever only the content is wrong, so that
// each rule is tested alone.
func TestForgedTokens(t *testing.T) {
	f, owner := settled(t)
	kid, private := f.keeper.JWTKey()
	public := f.publics[kid]
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := f.ticks.Now()
	good := func() jwt.MapClaims {
		return jwt.MapClaims{"iss": testBase, "aud": testBase, "sub": owner.ID, "ws": owner.WorkspaceID, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "auth_time": now.Unix(), "client_id": "x"}
	}
	header := func() map[string]any { return map[string]any{"typ": tokenType, "kid": kid} }
	sign := func(method jwt.SigningMethod, key any, h map[string]any, c jwt.MapClaims) string {
		tok := jwt.NewWithClaims(method, c)
		for name, v := range h {
			if v == nil {
				delete(tok.Header, name)
				continue
			}
			tok.Header[name] = v
		}
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	edit := func(name string, v any) string {
		c := good()
		c[name] = v
		if v == nil {
			delete(c, name)
		}
		return sign(jwt.SigningMethodEdDSA, private, header(), c)
	}
	head := func(name string, v any) string {
		h := header()
		h[name] = v
		return sign(jwt.SigningMethodEdDSA, private, h, good())
	}
	if _, err := f.VerifyToken(t.Context(), sign(jwt.SigningMethodEdDSA, private, header(), good())); err != nil {
		t.Fatalf("the honest one is refused: %v", err)
	}
	honest := sign(jwt.SigningMethodEdDSA, private, header(), good())
	parts := strings.Split(honest, ".")
	var payload map[string]any
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(raw, &payload); err != nil {
		t.Fatal(err)
	}
	payload["sub"] = "usr_someoneelse"
	changed, _ := json.Marshal(payload)
	for name, token := range map[string]string{
		"none":               sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, header(), good()),
		"public key as HMAC": sign(jwt.SigningMethodHS256, []byte(public), header(), good()),
		"another key":        sign(jwt.SigningMethodEdDSA, other, header(), good()),
		"unknown kid":        head("kid", "../../etc/passwd"),
		"no kid":             head("kid", nil),
		"kid not text":       head("kid", 7),
		"type JWT":           head("typ", "JWT"),
		"no type":            head("typ", nil),
		"critical header":    head("crit", []string{"b64"}),
		"alg lies":           head("alg", "none"),
		"own key in header":  sign(jwt.SigningMethodEdDSA, other, map[string]any{"typ": tokenType, "kid": kid, "jwk": map[string]any{"kty": "OKP"}}, good()),
		"another audience":   edit("aud", "https://other.example"),
		"no audience":        edit("aud", nil),
		"another issuer":     edit("iss", "https://other.example"),
		"no issuer":          edit("iss", nil),
		"no expiry":          edit("exp", nil),
		"expired":            edit("exp", now.Add(-time.Second).Unix()),
		"from the future":    edit("iat", now.Add(time.Hour).Unix()),
		"not yet":            edit("nbf", now.Add(time.Hour).Unix()),
		"no subject":         edit("sub", nil),
		"no workspace":       edit("ws", nil),
		"foreign workspace":  edit("ws", core.NewID(core.PrefixWorkspace, now)),
		"no sign-in":         edit("auth_time", nil),
		"unknown person":     edit("sub", core.NewID(core.PrefixUser, now)),
		"changed payload":    parts[0] + "." + base64.RawURLEncoding.EncodeToString(changed) + "." + parts[2],
		"cut signature":      parts[0] + "." + parts[1] + ".",
		"no dots":            "abc",
		"four parts":         honest + ".x",
		"trailing bits":      honest + "=",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := f.VerifyToken(t.Context(), token)
			if !core.IsKind(err, core.KindUnauthenticated) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	soon := f.ticks.Now().Add(time.Hour)
	made, err := f.CreateKey(ctx, owner, NewKey{Name: "agent", Kind: core.APIKeyKindAgent, ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.FromKey(ctx, *made.Key)
	if err != nil || p.ID != made.ID || p.OnBehalfOf != owner.ID || !p.IsAgent() || !p.Can(core.ScopeRunsWrite) || p.Can(core.ScopeActionsApprove) {
		t.Fatalf("%+v, %v", p, err)
	}
	if !strings.HasPrefix(*made.Key, made.Prefix) {
		t.Errorf("prefix %s of %s", made.Prefix, *made.Key)
	}
	page, err := f.Keys(ctx, owner, core.Query{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Key != nil || page.Items[0].LastUsedAt == nil {
		t.Fatalf("%+v, %v", page, err)
	}
	used := *page.Items[0].LastUsedAt
	f.ticks.pass(touchEvery / 2)
	if _, err := f.FromKey(ctx, *made.Key); err != nil {
		t.Fatal(err)
	}
	if page, _ = f.Keys(ctx, owner, core.Query{}); !page.Items[0].LastUsedAt.Equal(used) {
		t.Error("the use was written twice in a minute")
	}
	f.ticks.pass(time.Hour)
	_, err = f.FromKey(ctx, *made.Key)
	wantCode(t, err, "invalid_key")

	other, err := f.CreateKey(ctx, f.owner(t), NewKey{Name: "svc", Kind: core.APIKeyKindService})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.RevokeKey(ctx, owner, other.ID); err != nil {
		t.Fatal(err)
	}
	_, err = f.FromKey(ctx, *other.Key)
	wantCode(t, err, "invalid_key")
	if err := f.RevokeKey(ctx, owner, other.ID); err != nil {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestMistypedAndForgedKeys(t *testing.T) {
	f, owner := settled(t)
	made, err := f.CreateKey(t.Context(), owner, NewKey{Name: "agent", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	key := *made.Key
	for i := range key { // any one character changed
		bad := []byte(key)
		bad[i] ^= 1
		if _, ok := parseKey(string(bad)); ok {
			t.Fatalf("character %d changed goes unnoticed", i)
		}
	}
	forged := makeKey(core.APIKeyKindAgent, made.ID) // true id, another secret
	_, err = f.FromKey(t.Context(), forged)
	wantCode(t, err, "invalid_key")
	asService := strings.Replace(key[:strings.LastIndex(key, "_")], "agent", "service", 1)
	_, err = f.FromKey(t.Context(), asService+"_"+checkValue(asService))
	wantCode(t, err, "invalid_key")
	unknown := makeKey(core.APIKeyKindAgent, core.NewID(core.PrefixKey, f.ticks.Now()))
	_, err = f.FromKey(t.Context(), unknown)
	wantCode(t, err, "invalid_key")
}

func TestWhoMayGiveWhichScopes(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	if _, err := f.AddUser(ctx, owner, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleApprover}); err != nil {
		t.Fatal(err)
	}
	approver, err := f.OnThisMachine(ctx, "grace@example.com")
	if err != nil {
		t.Fatal(err)
	}
	manager, err := f.CreateKey(ctx, owner, NewKey{Name: "manager", Kind: core.APIKeyKindService, Scopes: []string{core.ScopeKeysManage, core.ScopeRunsRead, core.ScopeActionsApprove}})
	if err != nil {
		t.Fatal(err)
	}
	viaKey, err := f.FromKey(ctx, *manager.Key)
	if err != nil {
		t.Fatal(err)
	}
	stale := owner
	stale.AuthTime = f.ticks.Now().Add(-time.Hour)
	service := func(scopes ...string) NewKey { return NewKey{Name: "k", Kind: core.APIKeyKindService, Scopes: scopes} }
	for name, c := range map[string]struct {
		p    core.Principal
		in   NewKey
		code string
	}{
		"agent that approves":     {owner, NewKey{Name: "k", Kind: core.APIKeyKindAgent, Scopes: []string{core.ScopeActionsApprove}}, "invalid_key"},
		"agent with admin":        {owner, NewKey{Name: "k", Kind: core.APIKeyKindAgent, Scopes: []string{core.ScopeAdmin}}, "invalid_key"},
		"agent that makes keys":   {owner, NewKey{Name: "k", Kind: core.APIKeyKindAgent, Scopes: []string{core.ScopeKeysManage}}, "invalid_key"},
		"unknown scope":           {owner, service("everything"), "invalid_key"},
		"unknown kind":            {owner, NewKey{Name: "k", Kind: "root"}, "invalid_key"},
		"no name":                 {owner, NewKey{Name: " ", Kind: core.APIKeyKindAgent}, "invalid_key"},
		"old sign-in":             {stale, service(core.ScopeActionsApprove), "weak_proof"},
		"approver":                {approver, service(core.ScopeRunsRead), "missing_scope"},
		"key gives approve":       {viaKey, service(core.ScopeActionsApprove), "owners_only"},
		"key gives what it lacks": {viaKey, service(core.ScopeAuditRead), "missing_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := f.CreateKey(ctx, c.p, c.in)
			if err == nil {
				t.Fatalf("made %+v", made)
			}
			wantCode(t, err, c.code)
		})
	}
	decider, err := f.CreateKey(ctx, owner, service(core.ScopeActionsApprove, core.ScopeRunsRead))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.FromKey(ctx, *decider.Key)
	if err != nil || p.LiftedTo != core.ProofP2 || p.ProofAt(f.ticks.Now()) != core.ProofP2 || !p.Can(core.ScopeActionsApprove) {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestAgentKeyChangedInTheDatabase: whoever writes into the database gains nothing.
func TestAgentKeyChangedInTheDatabase(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	made, err := f.CreateKey(ctx, owner, NewKey{Name: "agent", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	row, err := f.database.SystemAPIKey(ctx, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	row.Scopes, row.LiftedTo = core.Scopes(), core.ProofP3
	if err := f.database.InTx(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateAPIKey(ctx, row) }); err != nil {
		t.Fatal(err)
	}
	p, err := f.FromKey(ctx, *made.Key)
	if err != nil || p.Can(core.ScopeActionsApprove) || p.Can(core.ScopeAdmin) || p.LiftedTo != "" {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestKeyOfAClosedOwnerDies(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	if _, err := f.AddUser(ctx, owner, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleOwner}); err != nil {
		t.Fatal(err)
	}
	grace, err := f.OnThisMachine(ctx, "grace@example.com")
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.CreateKey(ctx, grace, NewKey{Name: "k", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	closed := true
	if _, err := f.EditUser(ctx, owner, grace.ID, nil, &closed); err != nil {
		t.Fatal(err)
	}
	_, err = f.FromKey(ctx, *made.Key)
	wantCode(t, err, "invalid_key")
}

func TestCredentialsOfARequest(t *testing.T) {
	f, owner := settled(t)
	key, err := f.CreateKey(t.Context(), owner, NewKey{Name: "k", Kind: core.APIKeyKindAgent})
	if err != nil {
		t.Fatal(err)
	}
	token, err := f.MintToken(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	type headers map[string][]string
	for name, c := range map[string]struct {
		headers headers
		code    string // empty: accepted
	}{
		"token":               {headers{"Authorization": {"Bearer " + token.Token}}, ""},
		"scheme in any case":  {headers{"Authorization": {"bearer " + token.Token}}, ""},
		"key as bearer":       {headers{"Authorization": {"Bearer " + *key.Key}}, ""},
		"key in its header":   {headers{"X-Api-Key": {*key.Key}}, ""},
		"the same key twice":  {headers{"X-Api-Key": {*key.Key}, "Authorization": {"Bearer " + *key.Key}}, ""},
		"nothing":             {headers{}, "unauthenticated"},
		"two that differ":     {headers{"X-Api-Key": {*key.Key}, "Authorization": {"Bearer " + token.Token}}, "two_credentials"},
		"header twice":        {headers{"Authorization": {"Bearer " + token.Token, "Bearer " + *key.Key}}, "two_credentials"},
		"basic":               {headers{"Authorization": {"Basic YTpi"}}, "unknown_scheme"},
		"no value":            {headers{"Authorization": {"Bearer"}}, "invalid_credential"},
		"empty key":           {headers{"X-Api-Key": {""}}, "invalid_credential"},
		"space inside":        {headers{"Authorization": {"Bearer a b"}}, "invalid_credential"},
		"endless":             {headers{"Authorization": {"Bearer " + strings.Repeat("a", maxCredential+1)}}, "invalid_credential"},
		"garbage":             {headers{"Authorization": {"Bearer garbage"}}, "invalid_token"},
		"token in key header": {headers{"X-Api-Key": {"garbage"}}, "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, testBase+"/api/runs", nil)
			r.Header = http.Header(c.headers)
			p, err := f.FromRequest(r)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil || p.WorkspaceID != owner.WorkspaceID {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func TestWithoutSetupThe401Helps(t *testing.T) {
	f := fresh(t)
	_, err := f.FromRequest(httptest.NewRequest(http.MethodGet, testBase+"/api/me", nil))
	if e := wantCode(t, err, "unauthenticated"); !strings.Contains(e.Detail, "sallyport init") {
		t.Errorf("%s", e.Detail)
	}
}
