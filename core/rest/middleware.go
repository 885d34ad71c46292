package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/rest/replay"
)

const (
	headerIdempotency = "Idempotency-Key"
	headerAPIVersion  = "X-API-Version"
	apiVersion        = "0.1.0" // info.version of openapi.json

	codeNoCredential = "unauthenticated"
)

// request is what the interface knows about one request.
type request struct {
	id        string
	ip        string
	op        *operation
	principal core.Principal
	body      []byte
}

type requestKey struct{}

func requestOf(r *http.Request) *request {
	if rc, ok := r.Context().Value(requestKey{}).(*request); ok {
		return rc
	}
	return &request{}
}

// begin names the request, sets the headers that every reply has, and measures.
func (s *server) begin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.Clock.Now()
		rc := &request{id: core.NewID(core.PrefixRequest, start), ip: remoteAddress(r)}
		h := w.Header()
		h.Set("X-Request-Id", rc.id)
		h.Set(headerAPIVersion, apiVersion)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if strings.HasPrefix(s.BaseURL, "https://") {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		counted := &countingWriter{ResponseWriter: w}
		next.ServeHTTP(counted, r.WithContext(context.WithValue(r.Context(), requestKey{}, rc)))
		s.meters.observe(rc.op, r.Method, counted.status, s.Clock.Now().Sub(start))
	})
}

// remoteAddress is the peer's address. Forwarding headers are not believed: anybody
// can send them.
func remoteAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// countingWriter remembers the status.
type countingWriter struct {
	http.ResponseWriter
	status int
}

func (w *countingWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// catchPanic answers 500 and leaves an entry in the audit log, so that a fault that a
// caller can provoke does not pass unseen.
func (s *server) catchPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			rc := requestOf(r)
			s.Log.ErrorContext(r.Context(), "handler panicked", "request", rc.id, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			entry := audit.Entry{Actor: rc.principal.Actor(), WorkspaceID: rc.principal.WorkspaceID, Action: "request.panicked", Target: r.Method + " " + r.URL.Path,
				Outcome: string(core.AuditEntryOutcomeFailed), RequestID: rc.id, IP: rc.ip}
			if entry.Actor.Kind == "" {
				entry.Actor = core.Anonymous().Actor()
			}
			if err := s.Audit.AppendNow(context.WithoutCancel(r.Context()), entry); err != nil {
				s.Log.Error("audit of a panic failed", "request", rc.id, "error", err)
			}
			if cw, ok := w.(*countingWriter); ok && cw.status != 0 {
				panic(http.ErrAbortHandler) // the reply has begun: cut it, so that nobody takes it for whole
			}
			s.fail(w, r, core.Errf(core.KindInternal, "internal", "Something failed on our side. Try again; the log names this request."))
		}()
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses names that are not ours: a page of somebody else's domain that is
// pointed at this machine could otherwise speak to it. Addresses of the machine itself
// cannot be such a name.
func (s *server) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hosts[r.Host] || isLoopback(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		s.fail(w, r, core.Errf(core.KindForbidden, "host_not_allowed", "This installation is not served under the name %.100q. Use %s, or add the name to allowedHosts.", r.Host, s.BaseURL))
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// checkOrigin keeps pages of other sites from changing anything, and answers the
// preflight of origins that the owner allowed.
func (s *server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" && !s.origins[origin] && !sameOrigin(origin, r) || s.cross.Check(r) != nil {
			s.fail(w, r, core.Errf(core.KindForbidden, "origin_not_allowed", "Pages of %.100q may not call this installation. An owner can add the origin to allowedOrigins.", origin))
			return
		}
		if origin != "" && s.origins[origin] {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "ETag, Link, Location, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, Preference-Applied")
			h.Add("Vary", "Origin")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", "Authorization, X-Api-Key, Content-Type, If-Match, If-None-Match, Idempotency-Key, Prefer, Last-Event-ID")
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func sameOrigin(origin string, r *http.Request) bool {
	return isLoopback(r.Host) && (origin == "http://"+r.Host || origin == "https://"+r.Host)
}

// refuseMethod answers 405. It has no kind of its own: it is a slip of the program
// that calls, which only HTTP knows.
func (s *server) refuseMethod(w http.ResponseWriter, r *http.Request, takes []string) {
	w.Header().Set("Allow", strings.Join(takes, ", "))
	p := Problem(s.BaseURL, requestOf(r).id, r.URL.Path, core.Errf(core.KindMalformed, "method_not_allowed", "This address does not take %s. %s/openapi.json shows what it takes.", r.Method, s.BaseURL))
	p.Status, p.Title = http.StatusMethodNotAllowed, "Method not allowed"
	writeJSON(w, p.Status, "application/problem+json", p)
}

// principal is who calls. Access tokens and keys come in the header; a session cookie
// counts for reading only, since browsers send it without being asked.
func (s *server) principal(r *http.Request) (core.Principal, error) {
	p, err := s.Auth.FromRequest(r)
	if err != nil {
		return p, err
	}
	rc := requestOf(r)
	p.RequestID, p.IP, p.Client = rc.id, rc.ip, clip(r.UserAgent(), 200)
	return p, nil
}

func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "�")
}

// once runs a request that carries an Idempotency-Key, unless it ran before.
func (s *server) once(w http.ResponseWriter, r *http.Request, key string, next handler) {
	rc := requestOf(r)
	sum := sha256.New()
	for _, part := range []string{r.Method, r.URL.RequestURI(), r.Header.Get("If-Match"), string(rc.body)} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	slot := replay.Slot{WorkspaceID: rc.principal.WorkspaceID, Principal: rc.principal.ID, Key: key, Request: [32]byte(sum.Sum(nil))}
	before, err := s.Replay.Begin(r.Context(), slot)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if before != nil {
		for name, value := range before.Header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Idempotency-Replayed", "true")
		w.WriteHeader(before.Status)
		_, _ = w.Write(before.Body)
		return
	}
	// A caller that hangs up and asks again must find the answer, not a half-done thing
	// that is done once more: from here on the request runs to its end.
	ctx := context.WithoutCancel(r.Context())
	r = r.WithContext(ctx)
	kept := false
	defer func() {
		if !kept {
			if err := s.Replay.Abandon(ctx, slot); err != nil {
				s.Log.Error("idempotency record not released", "request", rc.id, "error", err)
			}
		}
	}()
	rec := &recorder{ResponseWriter: w, status: http.StatusOK}
	if err := next(rec, r); err != nil {
		s.fail(rec, r, err)
	}
	if rec.status >= 500 || rec.status == http.StatusTooManyRequests {
		return // the same key may try again
	}
	reply := replay.Reply{Status: rec.status, Body: without(rec.body.Bytes(), rc.op.secretField), Header: map[string]string{}}
	for _, name := range []string{"Content-Type", "ETag", "Location", "Preference-Applied", "WWW-Authenticate"} {
		if v := w.Header().Get(name); v != "" {
			reply.Header[name] = v
		}
	}
	if err := s.Replay.Finish(ctx, slot, reply); err != nil {
		s.Log.Error("idempotency record not kept", "request", rc.id, "error", err)
		return
	}
	kept = true
}
