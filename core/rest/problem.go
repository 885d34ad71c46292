package rest

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/sallyport-dev/sallyport/core"
)

// titles name the kinds of error; a title is the same for every problem of its kind.
var titles = map[core.ErrorKind]string{
	core.KindMalformed: "Malformed", core.KindUnauthenticated: "Unauthenticated", core.KindForbidden: "Forbidden", core.KindNotFound: "Not found",
	core.KindConflict: "Conflict", core.KindGone: "Gone", core.KindPrecondition: "Precondition failed", core.KindTooLarge: "Too large",
	core.KindUnsupported: "Unsupported media type", core.KindInvalid: "Invalid", core.KindUnseen: "Not seen", core.KindRateLimited: "Too many requests",
	core.KindInternal: "Internal error", core.KindUnavailable: "Unavailable",
}

// Problem is the error as callers see it. Nothing of its cause gets out.
func Problem(baseURL, requestID, instance string, err error) core.Problem {
	e := core.AsError(err)
	p := core.Problem{
		Type: baseURL + "/problems/" + e.Code, Title: titles[e.Kind], Status: e.Kind.Status(), Code: e.Code,
		RequestID: requestID, Errors: e.Fields, NextAction: e.Next,
	}
	if e.Detail != "" {
		p.Detail = &e.Detail
	}
	if instance != "" {
		p.Instance = &instance
	}
	if e.ReviewURL != "" {
		p.ReviewURL = &e.ReviewURL
	}
	if e.CurrentDigest != "" {
		p.CurrentDigest = &e.CurrentDigest
	}
	return p
}

// fail writes an error as a problem document and logs what is our own fault.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := core.AsError(err)
	rc := requestOf(r)
	if e.Kind == core.KindInternal || e.Kind == core.KindUnavailable {
		s.Log.ErrorContext(r.Context(), "request failed", "request", rc.id, "method", r.Method, "path", r.URL.Path, "code", e.Code, "error", err)
	}
	h := w.Header()
	switch e.Kind {
	case core.KindUnauthenticated:
		h.Set("WWW-Authenticate", s.challenge(e.Code))
	case core.KindRateLimited, core.KindUnavailable:
		wait := max(1, int(math.Ceil(e.RetryAfter.Seconds())))
		h.Set("Retry-After", strconv.Itoa(wait))
	}
	h.Del("ETag")
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(e.Kind.Status())
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(Problem(s.BaseURL, rc.id, r.URL.Path, err))
	}
}

// challenge tells a client where to learn how to sign in. The error attribute is for
// credentials that were sent and do not hold.
func (s *server) challenge(code string) string {
	c := `Bearer realm="sallyport", resource_metadata="` + s.BaseURL + `/.well-known/oauth-protected-resource"`
	if code != codeNoCredential {
		c += `, error="invalid_token"`
	}
	return c
}
