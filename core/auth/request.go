package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// codeNoCredential tells that nothing was sent, as against something that does not hold.
const codeNoCredential = "unauthenticated"

// FromRequest is who an HTTP request comes from: an access token or a key in the
// Authorization header, or a key in X-Api-Key. The session cookie of a browser counts
// for reading only, since browsers send it with requests that other pages began.
func (s *Service) FromRequest(r *http.Request) (core.Principal, error) {
	credential, err := Credential(r)
	if err != nil {
		return core.Principal{}, err
	}
	if credential != "" {
		return s.FromCredential(r.Context(), credential)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return s.FromCookie(r)
	}
	return core.Principal{}, s.noCredential(r.Context())
}

// FromCredential is who a key or an access token stands for.
func (s *Service) FromCredential(ctx context.Context, credential string) (core.Principal, error) {
	if LooksLikeKey(credential) {
		return s.FromKey(ctx, credential)
	}
	return s.VerifyToken(ctx, credential)
}

// maxCredential bounds what is parsed at all.
const maxCredential = 8 << 10

// Credential reads the one credential of a request's headers; empty without one. Two
// that differ are refused: somebody between could have added one.
func Credential(r *http.Request) (string, error) {
	found := ""
	add := func(c string) error {
		if c == "" || len(c) > maxCredential || strings.ContainsAny(c, " \t") {
			return core.Errf(core.KindUnauthenticated, "invalid_credential", "The credential cannot be read. Send Authorization: Bearer TOKEN, or X-Api-Key: KEY.")
		}
		if found != "" && found != c {
			return core.Errf(core.KindUnauthenticated, "two_credentials", "The request carries two different credentials. Send one.")
		}
		found = c
		return nil
	}
	for _, h := range r.Header.Values("Authorization") {
		scheme, value, _ := strings.Cut(strings.TrimSpace(h), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", core.Errf(core.KindUnauthenticated, "unknown_scheme", "Only the scheme Bearer is known here. Send Authorization: Bearer TOKEN.")
		}
		if err := add(strings.TrimSpace(value)); err != nil {
			return "", err
		}
	}
	for _, h := range r.Header.Values("X-Api-Key") {
		if err := add(strings.TrimSpace(h)); err != nil {
			return "", err
		}
	}
	return found, nil
}

// noCredential asks for a credential, and tells how to get the first one.
func (s *Service) noCredential(ctx context.Context) error {
	if ok, err := s.Initialised(ctx); err == nil && !ok {
		return core.Errf(core.KindUnauthenticated, codeNoCredential, "This installation is not set up. Open the set-up URL that sallyport serve printed, or run sallyport init; then sign in.")
	}
	return core.Errf(core.KindUnauthenticated, codeNoCredential, "A credential is needed: Authorization: Bearer TOKEN with a token from sallyport token create, or a key from sallyport key create.")
}
