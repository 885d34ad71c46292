package connector

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/egress"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Client is an OAuth client that the owner registered at a provider.
type Client struct {
	ID     string
	Secret string // empty for public clients
	// AuthURL and TokenURL replace the provider's own addresses, for a proxy of the
	// installation; empty keeps them.
	AuthURL, TokenURL string
}

// Google's addresses. Plugins cannot reach them: signing in is core's own.
const (
	googleAuthURL  = "https://accounts.google.com/o/oauth2/v2/auth"
	googleTokenURL = "https://oauth2.googleapis.com/token"
	googleIssuer   = "https://accounts.google.com"
)

// signIns lists the providers that offer a sign-in, with the one scope each is asked for.
var signIns = map[string]string{
	"google_search_console": "https://www.googleapis.com/auth/webmasters.readonly",
	"google_analytics":      "https://www.googleapis.com/auth/analytics.readonly",
	"google_ads":            "https://www.googleapis.com/auth/adwords",
}

const (
	stateClass    = "oauth_state"
	stateLife     = 10 * time.Minute
	refreshBefore = time.Minute // a token that ends within it counts as ended
)

// Start is a sign-in that was begun.
type Start struct {
	Provider         string    `json:"provider"`
	AuthorizationURL string    `json:"authorizationUrl"`
	RedirectURI      string    `json:"redirectUri"`
	Scopes           []string  `json:"scopes"`
	ExpiresAt        time.Time `json:"expiresAt"`
}

func (s *Service) redirectURI(provider string) string {
	return strings.TrimSuffix(s.BaseURL, "/") + "/api/connectors/" + provider + "/oauth/callback"
}

// client is the OAuth client for a provider, or an error that says what is missing.
func (s *Service) client(provider string) (Client, error) {
	c := s.OAuth[provider]
	if c.ID == "" {
		method, address := "POST", "/api/connectors/"+provider+"/snapshot"
		return c, &core.Error{Kind: core.KindConflict, Code: "oauth_client_missing",
			Detail: fmt.Sprintf("This installation has no OAuth client for %s. Create one at the provider with the redirect URI %s and set oauth.%s.clientId and clientSecret in the configuration.", provider, s.redirectURI(provider), provider),
			Next:   &core.NextAction{Method: &method, URL: &address, Reason: "It answers the exact setup steps."}}
	}
	if c.AuthURL == "" {
		c.AuthURL = googleAuthURL
	}
	if c.TokenURL == "" {
		c.TokenURL = googleTokenURL
	}
	return c, nil
}

// OAuthStart begins a sign-in and returns the address where the person consents. It
// works for ten minutes and once, with PKCE, for this person alone.
func (s *Service) OAuthStart(ctx context.Context, p core.Principal, provider string) (*Start, error) {
	if err := s.mayManage(p); err != nil {
		return nil, err
	}
	if _, err := s.manifest(provider); err != nil {
		return nil, err
	}
	scope, offered := signIns[provider]
	if !offered {
		return nil, &core.Error{Kind: core.KindInvalid, Code: "oauth_not_offered", Detail: provider + " is connected with a credential, not by a sign-in. PUT /api/connectors/" + provider + ".",
			Fields: []core.FieldError{{Pointer: "/provider", Message: "must be google_search_console, google_analytics or google_ads"}}}
	}
	client, err := s.client(provider)
	if err != nil {
		return nil, err
	}
	state, verifier := random(), random()
	now := s.Clock.Now()
	out := &Start{Provider: provider, RedirectURI: s.redirectURI(provider), Scopes: []string{scope}, ExpiresAt: now.Add(stateLife).UTC().Truncate(time.Microsecond)}
	challenge := sha256.Sum256([]byte(verifier))
	out.AuthorizationURL = client.AuthURL + "?" + url.Values{
		"client_id": {client.ID}, "redirect_uri": {out.RedirectURI}, "response_type": {"code"}, "scope": {scope}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
		"access_type": {"offline"}, "prompt": {"consent"}, "include_granted_scopes": {"true"},
	}.Encode()
	hash := sha256.Sum256([]byte(state))
	ws := store.WorkspaceID(p.WorkspaceID)
	err = s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		sealed, err := s.Keys.Seal(ctx, tx, ws, stateClass, provider, []byte(verifier))
		if err != nil {
			return err
		}
		row := &store.OAuthState{Hash: hash[:], WorkspaceID: ws, Provider: provider, UserID: p.ID, SessionID: p.SessionID, SecretID: sealed,
			RedirectURI: out.RedirectURI, ExpiresAt: store.At(out.ExpiresAt), CreatedAt: store.At(now)}
		if err := tx.InsertOAuthState(ctx, row); err != nil {
			return err
		}
		_, err = s.Audit.Append(ctx, tx, audit.By(p, "connector.oauth_started", provider))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Callback is what the provider sends the person back with.
type Callback struct{ State, Code, Error, Issuer string }

// OAuthCallback ends a sign-in: it exchanges the code and stores what the provider
// grants. The principal must be the person who began it.
func (s *Service) OAuthCallback(ctx context.Context, p core.Principal, provider string, c Callback) (*core.Connector, error) {
	if err := p.Require(core.ScopeConnectorsManage); err != nil {
		return nil, err
	}
	m, err := s.manifest(provider)
	if err != nil {
		return nil, err
	}
	state, verifier, err := s.useState(ctx, p, provider, c.State)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Error != "":
		return nil, core.Errf(core.KindConflict, "oauth_refused", "The provider answered %q; nothing was connected. Start again and consent.", clip(c.Error))
	case c.Issuer != "" && c.Issuer != googleIssuer && s.OAuth[provider].AuthURL == "":
		return nil, core.Errf(core.KindForbidden, "oauth_issuer", "The answer came from another provider than the one asked; nothing was connected.")
	case c.Code == "":
		return nil, core.Errf(core.KindInvalid, "oauth_code_missing", "The provider sent no code; nothing was connected. Start again.")
	}
	client, err := s.client(provider)
	if err != nil {
		return nil, err
	}
	grant, err := s.exchange(ctx, client, url.Values{"grant_type": {"authorization_code"}, "code": {c.Code}, "redirect_uri": {state.RedirectURI}, "code_verifier": {verifier}})
	if err != nil {
		return nil, err
	}
	scope := signIns[provider]
	if granted := strings.Fields(grant.Scope); len(granted) > 0 && !slices.Contains(granted, scope) {
		return nil, core.Errf(core.KindConflict, "oauth_scope_missing", "The scope %s was not granted; nothing was connected. Start again and leave it ticked.", scope)
	}
	if err := s.storeGrant(ctx, p, *m, grant); err != nil {
		return nil, err
	}
	return s.Get(ctx, p, provider)
}

// useState uses up the state and opens its verifier. It is used up even when the
// rest fails, so that a stolen answer works for nobody.
func (s *Service) useState(ctx context.Context, p core.Principal, provider, state string) (*store.OAuthState, string, error) {
	hash := sha256.Sum256([]byte(state))
	var row *store.OAuthState
	verifier := ""
	err := s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if row, err = tx.UseOAuthState(ctx, hash[:], s.Clock.Now()); err != nil {
			return err
		}
		v, err := s.Keys.Unseal(ctx, tx, row.WorkspaceID, row.SecretID, stateClass, row.Provider)
		if err != nil {
			return err
		}
		verifier = v.Reveal()
		return tx.DeleteSecret(ctx, row.WorkspaceID, row.SecretID)
	})
	if err != nil {
		return nil, "", err
	}
	if row.UserID != p.ID || string(row.WorkspaceID) != p.WorkspaceID || row.Provider != provider {
		return nil, "", core.Errf(core.KindForbidden, "oauth_foreign_state", "This sign-in was begun by somebody else; nothing was connected. Start it yourself.")
	}
	return row, verifier, nil
}

// grant is a token endpoint's answer.
type grant struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int64  `json:"expires_in"`
	Scope        string `json:"scope"`
	Error        string `json:"error"`
}

// exchange asks a token endpoint. A refusal has code oauth_rejected; its text is the
// provider's short error name, never the tokens.
func (s *Service) exchange(ctx context.Context, client Client, form url.Values) (*grant, error) {
	form.Set("client_id", client.ID)
	if client.Secret != "" {
		form.Set("client_secret", client.Secret)
	}
	reply, err := s.Egress.Fetch(ctx, egress.Request{Class: egress.Auth, Method: "POST", URL: client.TokenURL, Body: []byte(form.Encode()),
		Headers: []effect.Pair{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}, {Name: "Accept", Value: "application/json"}}, MaxBytes: 64 << 10})
	if err != nil {
		return nil, err
	}
	var g grant
	if err := json.Unmarshal(reply.Body, &g); err != nil || reply.Status >= 500 {
		return nil, core.Errf(core.KindUnavailable, "oauth_unavailable", "The provider's sign-in answered %d. Try again later.", reply.Status)
	}
	if reply.Status != 200 || g.AccessToken == "" {
		return nil, core.Errf(core.KindConflict, "oauth_rejected", "The provider refused the sign-in (%s). Connect again.", clip(g.Error))
	}
	return &g, nil
}

func (s *Service) storeGrant(ctx context.Context, p core.Principal, m schemas.Manifest, g *grant) error {
	ws, provider := store.WorkspaceID(p.WorkspaceID), m.Connector.Provider
	row, err := s.DB.ConnectionByName(ctx, ws, provider, "")
	isNew := core.IsKind(err, core.KindNotFound)
	if isNew {
		now := s.Clock.Now()
		row = &store.Connection{ID: core.NewID(core.PrefixConnection, now), WorkspaceID: ws, Provider: provider, Fields: map[string]string{}, CreatedBy: p.Actor(), CreatedAt: store.At(now)}
	} else if err != nil {
		return err
	}
	secrets := map[string]string{}
	s.keepGrant(secrets, g)
	row.Scopes = []string{signIns[provider]}
	row.Account = "" // perhaps another account; the next snapshot tells
	if err := s.settle(ctx, m, row, secrets); err != nil {
		return err
	}
	return s.save(ctx, p, row, secrets, isNew)
}

func (s *Service) keepGrant(secrets map[string]string, g *grant) {
	secrets["token"] = g.AccessToken
	if g.RefreshToken != "" {
		secrets["refresh"] = g.RefreshToken
	}
	secrets["expires"] = s.Clock.Now().Add(time.Duration(g.ExpiresIn) * time.Second).UTC().Format(time.RFC3339)
}

// visible leaves out what signers do not need: a refresh token never comes near a request.
func visible(secrets map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range secrets {
		if k != "refresh" && k != "expires" {
			out[k] = v
		}
	}
	return out
}

func (s *Service) expired(secrets map[string]string) bool {
	if secrets["refresh"] == "" && secrets["expires"] == "" {
		return false
	}
	ends, err := time.Parse(time.RFC3339, secrets["expires"])
	return err != nil || !s.Clock.Now().Add(refreshBefore).Before(ends)
}

// refresh renews an ended sign-in; callers that come at the same time share one renewal.
func (s *Service) refresh(ctx context.Context, row *store.Connection) (map[string]string, error) {
	v, err, _ := s.refreshes.Do(row.ID, func() (any, error) {
		// The caller whose request is used may hang up; the others still need the answer.
		return s.renew(context.WithoutCancel(ctx), row)
	})
	if err != nil {
		return nil, err
	}
	secrets, _ := v.(map[string]string)
	return secrets, nil
}

func (s *Service) renew(ctx context.Context, row *store.Connection) (map[string]string, error) {
	row, err := s.DB.Connection(ctx, row.WorkspaceID, row.ID)
	if err != nil {
		return nil, err
	}
	secrets, err := s.secrets(ctx, row)
	if err != nil || !s.expired(secrets) { // another caller or host was faster
		return secrets, err
	}
	client, err := s.client(row.Provider)
	if err != nil {
		return nil, err
	}
	g, err := s.exchange(ctx, client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {secrets["refresh"]}})
	if core.AsError(err).Code == "oauth_rejected" {
		reason := "The provider no longer accepts the sign-in. Connect again."
		if err := s.NeedsReauth(ctx, string(row.WorkspaceID), row.ID, reason); err != nil {
			return nil, err
		}
		return nil, core.Errf(core.KindConflict, "needs_reauth", "%s", reason)
	}
	if err != nil {
		return nil, err
	}
	s.keepGrant(secrets, g)
	err = s.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		current, err := tx.Connection(ctx, row.WorkspaceID, row.ID)
		if err != nil {
			return err
		}
		if err := s.seal(ctx, tx, current, secrets); err != nil {
			return err
		}
		return tx.UpdateConnection(ctx, current)
	})
	return secrets, err
}

func random() string { return rand.Text() + rand.Text() } // 52 letters and digits, 260 bits

func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "")
	}
	return text
}
