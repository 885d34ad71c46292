package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/auth"
)

// open lists the methods that need no credential; notifications need none either, as
// they have no effect beyond the session.
var open = map[string]bool{
	"initialize":               true,
	"ping":                     true,
	"server/discover":          true,
	"tools/list":               true,
	"resources/list":           true,
	"resources/templates/list": true,
	"prompts/list":             true,
}

// closed lists the known methods that need one. The early look at the body refuses only
// these, so that unknown methods are still answered as unknown.
var closed = map[string]bool{
	"tools/call":            true,
	"resources/read":        true,
	"resources/subscribe":   true,
	"resources/unsubscribe": true,
	"prompts/get":           true,
	"completion/complete":   true,
	"logging/setLevel":      true,
	"subscriptions/listen":  true,
}

// notes lists the notifications that clients send.
var notes = map[string]bool{
	"notifications/initialized":        true,
	"notifications/cancelled":          true,
	"notifications/progress":           true,
	"notifications/roots/list_changed": true,
}

// unknown reports a method that no revision has; a response has none and is no such.
func unknown(method string) bool {
	return method != "" && !open[method] && !closed[method] && !notes[method]
}

func isOpen(method string) bool {
	return open[method] || strings.HasPrefix(method, "notifications/")
}

// authenticate finds out who calls. A wrong credential is an error also where none is
// needed: its sender should hear of it.
func (f *front) authenticate(r *http.Request, requestID string) (core.Principal, *core.Error) {
	p := core.Anonymous()
	key, err := auth.Credential(r)
	if err == nil && key != "" {
		p, err = f.surface.deps.Auth.FromKey(r.Context(), key)
	}
	if err != nil {
		return core.Anonymous(), core.AsError(err)
	}
	p.RequestID = requestID
	p.Client = r.UserAgent()
	if p.IP, _, _ = net.SplitHostPort(r.RemoteAddr); p.IP == "" {
		p.IP = r.RemoteAddr
	}
	return p, nil
}

// challenge names the protected-resource metadata, so that a client learns how to
// authenticate.
func (f *front) challenge(h http.Header, badCredential bool) {
	value := fmt.Sprintf("Bearer resource_metadata=%q", f.surface.deps.BaseURL+"/.well-known/oauth-protected-resource/mcp")
	if badCredential {
		value = fmt.Sprintf("Bearer error=%q, %s", "invalid_token", strings.TrimPrefix(value, "Bearer "))
	}
	h.Set("WWW-Authenticate", value)
}

type principalKey struct{}

func contextWithPrincipal(ctx context.Context, p core.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// withPrincipal hands the principal to the SDK. Its own middleware is the only way to
// reach the request's TokenInfo, which, unlike the context, belongs to each request of a
// session; the key itself goes no further.
func withPrincipal(next http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*sdkauth.TokenInfo, error) {
		p, ok := r.Context().Value(principalKey{}).(core.Principal)
		if !ok {
			return nil, sdkauth.ErrInvalidToken
		}
		return &sdkauth.TokenInfo{UserID: p.ID, Scopes: p.Scopes, Extra: map[string]any{"principal": p}}, nil
	}
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	wrapped := sdkauth.RequireBearerToken(verify, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Context().Value(principalKey{}).(core.Principal)
		r.Header.Del("X-Api-Key")
		if p.Kind == core.ActorKindAnonymous {
			r.Header.Del("Authorization")
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Set("Authorization", "Bearer verified")
		wrapped.ServeHTTP(w, r)
	})
}

// principal is who sent a request; anonymous when nothing says otherwise.
func (s *surface) principal(extra *mcp.RequestExtra) core.Principal {
	if s.fixed != nil {
		p := *s.fixed
		p.RequestID = core.NewID(core.PrefixRequest, s.deps.Clock.Now())
		return p
	}
	if extra != nil && extra.TokenInfo != nil {
		if p, ok := extra.TokenInfo.Extra["principal"].(core.Principal); ok {
			return p
		}
	}
	return core.Anonymous()
}

// authorize decides, for each decoded message, whether its sender may call the method.
// Only this decides: whatever the look at the body concluded, a message that the SDK
// reads differently is judged as the SDK reads it.
func (s *surface) authorize(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p := s.principal(req.GetExtra()); p.Kind == core.ActorKindAnonymous && !isOpen(method) {
			return nil, s.wireError(codeUnauthenticated, needsKey(method), p.RequestID)
		}
		return next(ctx, method, req)
	}
}

func needsKey(method string) *core.Error {
	return core.Errf(core.KindUnauthenticated, "unauthenticated", "%s needs a key. Send Authorization: Bearer KEY or X-Api-Key: KEY.", method)
}

// wireError is a JSON-RPC error that carries the problem document.
func (s *surface) wireError(code int64, e *core.Error, requestID string) *jsonrpc.Error {
	data, err := json.Marshal(problemOf(e, s.deps.BaseURL, requestID))
	if err != nil { // our own type always marshals
		panic(err)
	}
	return &jsonrpc.Error{Code: code, Message: e.Detail, Data: data}
}

// recoverPanics keeps one bad request from ending the host.
func (s *surface) recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				p := s.principal(req.GetExtra())
				s.deps.Log.Error("mcp request panicked", "method", method, "request", p.RequestID, "cause", cause, "stack", string(debug.Stack()))
				result, err = nil, s.wireError(jsonrpc.CodeInternalError, core.AsError(fmt.Errorf("panic")), p.RequestID)
			}
		}()
		return next(ctx, method, req)
	}
}
