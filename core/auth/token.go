package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/store"
)

// TokenTTL is the life of an access token.
const TokenTTL = 15 * time.Minute

// tokenType is the typ header of access tokens (RFC 9068): a token made for another
// purpose with the same key is not taken for one.
const tokenType = "at+jwt"

// claims of an access token.
type claims struct {
	jwt.RegisteredClaims
	Workspace string `json:"ws"`
	AuthTime  int64  `json:"auth_time"`
	Client    string `json:"client_id"`
	Scope     string `json:"scope,omitempty"` // narrows the role's scopes; absent: all of them
}

// Token is an access token and when it ends.
type Token struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// MintToken makes an access token for the principal, a person: it carries the time of
// their sign-in and at most their scopes, which are looked up anew at every use. Named
// scopes narrow it.
func (s *Service) MintToken(ctx context.Context, p core.Principal, scopes ...string) (*Token, error) {
	if p.Kind != core.ActorKindPerson || p.AuthTime.IsZero() {
		return nil, core.Errf(core.KindForbidden, "not_a_person", "Access tokens are for people who signed in. Scripts without a person take a key.")
	}
	for _, scope := range scopes {
		if !slices.Contains(core.Scopes(), scope) {
			return nil, core.Errf(core.KindInvalid, "unknown_scope", "There is no scope %q. The scopes are %s.", scope, strings.Join(core.Scopes(), ", "))
		}
	}
	address, err := s.audience(ctx)
	if err != nil {
		return nil, err
	}
	kid, private := s.keeper.JWTKey()
	now := s.now()
	expires := now.Add(TokenTTL)
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: address, Subject: p.ID, Audience: jwt.ClaimStrings{address}, IssuedAt: jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(expires), ID: rand.Text()},
		Workspace: p.WorkspaceID, AuthTime: p.AuthTime.Unix(), Client: orDefault(p.Client, "sallyport"), Scope: strings.Join(scopes, " "),
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	t.Header["typ"], t.Header["kid"] = tokenType, kid
	signed, err := t.SignedString(private)
	if err != nil {
		return nil, fmt.Errorf("sign an access token: %w", err)
	}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		e := audit.By(p, "token.minted", c.ID)
		e.Details = map[string]any{"client": c.Client, "expiresAt": expires.Format(time.RFC3339)}
		_, err := s.audit.Append(ctx, tx, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Token{Token: signed, ExpiresAt: expires.Truncate(time.Second)}, nil
}

// publicAddress is where the public address of the installation is noted.
const publicAddress = "public_address"

// Announce notes the public address that this host serves under. The command line,
// beside it and without its flags, then mints tokens that this host takes.
func (s *Service) Announce(ctx context.Context) error {
	noted, err := s.announced(ctx)
	if err != nil || noted == s.baseURL {
		return err
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.PutInstanceValue(ctx, publicAddress, s.baseURL)
	})
}

// announced is the address that a host noted last; empty before the first.
func (s *Service) announced(ctx context.Context) (string, error) {
	noted, err := s.db.InstanceValue(ctx, publicAddress)
	if core.IsKind(err, core.KindNotFound) {
		return "", nil
	}
	return noted, err
}

// audience is who the tokens made here are for: the host that was announced, or this
// one where none was.
func (s *Service) audience(ctx context.Context) (string, error) {
	noted, err := s.announced(ctx)
	if err != nil || noted != "" {
		return noted, err
	}
	return s.baseURL, nil
}

// VerifyToken is who an access token stands for. One algorithm, our own keys by kid,
// this issuer, this audience, this type; a person who left or lost a scope is found
// out here, not when the token ends.
func (s *Service) VerifyToken(ctx context.Context, token string) (core.Principal, error) {
	var c claims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(s.baseURL), jwt.WithAudience(s.baseURL),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(s.now))
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if typ, _ := t.Header["typ"].(string); !strings.EqualFold(typ, tokenType) {
			return nil, errors.New("another type of token")
		}
		if _, critical := t.Header["crit"]; critical {
			return nil, errors.New("critical headers are not known here")
		}
		kid, _ := t.Header["kid"].(string)
		public, ok := s.publics[kid]
		if !ok {
			return nil, errors.New("no such key")
		}
		return public, nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return core.Principal{}, core.Errf(core.KindUnauthenticated, "token_expired", "The access token has expired. Sign in again, or run sallyport token create.")
	case err != nil || c.Subject == "" || c.Workspace == "" || c.AuthTime <= 0:
		return core.Principal{}, core.Errf(core.KindUnauthenticated, "invalid_token", "The access token does not hold. Sign in again, or run sallyport token create.")
	}
	p, err := s.personPrincipal(ctx, store.WorkspaceID(c.Workspace), c.Subject)
	if err != nil {
		return p, err
	}
	if c.Scope != "" {
		named := strings.Fields(c.Scope)
		p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(scope string) bool { return !slices.Contains(named, scope) })
	}
	p.AuthTime, p.Client = time.Unix(c.AuthTime, 0).UTC(), c.Client
	return p, nil
}
