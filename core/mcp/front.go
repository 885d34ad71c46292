package mcp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/mcp/router"
)

// front is the HTTP side: it checks where a request comes from and who sends it, picks
// the handler, and makes the SDK's answers fit for clients that know only JSON.
type front struct {
	surface  *surface
	doors    *doors
	sessions *sessions
	lanes    map[router.Lane]http.Handler
}

func newFront(s *surface) (*front, error) {
	d, err := newDoors(s.deps.BaseURL, s.deps.AllowedHosts, s.deps.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	handler := func(stateless, json bool) http.Handler {
		return withPrincipal(mcp.NewStreamableHTTPHandler(
			func(*http.Request) *mcp.Server { return s.server },
			&mcp.StreamableHTTPOptions{
				Stateless:                    stateless,
				JSONResponse:                 json,
				Logger:                       quiet(s.deps.Log),
				SessionTimeout:               SessionTimeout,
				MaxRequestBodyBytes:          MaxBody,
				PropagateRequestCancellation: true,
				// Ours is stricter: the SDK's only looks at Host on loopback listeners, where
				// it would also refuse a reverse proxy on the same machine.
				DisableLocalhostProtection: true,
			}))
	}
	f := &front{surface: s, doors: d, sessions: newSessions(s.deps.Clock), lanes: map[router.Lane]http.Handler{
		router.Stateful:        handler(false, false),
		router.Stateless:       handler(true, true),
		router.StatelessStream: handler(true, false),
	}}
	s.catalog.lists = newLists(f.lanes[router.Stateless])
	return f, nil
}

// ServeHTTP serves one request.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := f.surface
	requestID := w.Header().Get("X-Request-Id")
	if requestID == "" {
		requestID = core.NewID(core.PrefixRequest, s.deps.Clock.Now())
		w.Header().Set("X-Request-Id", requestID)
	}
	if e := f.doors.check(r); e != nil {
		s.refuse(w, e, requestID)
		return
	}
	f.doors.share(w.Header(), r.Header.Get("Origin"))
	if r.Method == http.MethodOptions {
		f.doors.preflight(w.Header())
		w.WriteHeader(http.StatusNoContent)
		return
	}
	p, e := f.authenticate(r, requestID)
	if e != nil {
		f.deny(w, e, requestID, true)
		return
	}
	switch r.Method {
	case http.MethodPost:
		f.post(w, r, p)
	case http.MethodGet, http.MethodDelete:
		f.other(w, r, p)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		s.refuse(w, fault(http.StatusMethodNotAllowed, ""), requestID)
	}
}

// deny refuses for want of a good credential.
func (f *front) deny(w http.ResponseWriter, e *core.Error, requestID string, given bool) {
	if e.Kind == core.KindUnauthenticated {
		f.challenge(w.Header(), given)
	}
	f.surface.refuse(w, e, requestID)
}

func (f *front) post(w http.ResponseWriter, r *http.Request, p core.Principal) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		f.surface.refuse(w, fault(http.StatusUnsupportedMediaType, ""), p.RequestID)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			f.surface.refuse(w, fault(http.StatusRequestEntityTooLarge, ""), p.RequestID)
		} else {
			f.surface.refuse(w, core.Errf(core.KindMalformed, "bad_request", "The body could not be read."), p.RequestID)
		}
		return
	}
	body, err := router.Peek(raw)
	if bad, ok := errors.AsType[*router.BodyError](err); ok {
		f.surface.refuse(w, core.Errf(core.KindMalformed, bodyCode(bad), "%s", bad.Message), p.RequestID)
		return
	}
	if p.Kind == core.ActorKindAnonymous {
		for _, m := range body.Messages {
			if closed[m.Method] {
				f.deny(w, needsKey(m.Method), p.RequestID, false)
				return
			}
		}
	}
	req := router.Request{
		HTTPMethod: r.Method,
		Revision:   r.Header.Get("Mcp-Protocol-Version"),
		Session:    r.Header.Get("Mcp-Session-Id"),
		Streams:    namesStream(r.Header),
	}
	lane := router.Choose(req, body)
	if m, alone := body.Only(); alone && req.Revision < router.Revision20260728 && unknown(m.Method) {
		f.unknown(w, m, p.RequestID)
		return
	}
	if lane == router.Stateless && f.surface.catalog.lists.serve(w, r.Header, body) {
		return
	}
	opening := lane == router.Stateful && req.Session == ""
	if opening && !f.sessions.room(p.ID) {
		lane, opening = router.Stateless, false
	}
	out := &reply{ResponseWriter: w, asJSON: lane == router.Stateful && !req.Streams, batch: body.Batch}
	if lane == router.Stateful && !opening {
		f.sessions.owner(req.Session) // marks it as used
	}
	f.serve(lane, out, r, p, raw)
	if id := w.Header().Get("Mcp-Session-Id"); opening && id != "" {
		f.sessions.opened(id, p.ID)
	}
	out.finish(f.surface, p.RequestID)
}

// unknown answers a method that nobody knows. The SDK gives the older revisions a plain
// HTTP error, which their clients cannot tell from a broken server.
func (f *front) unknown(w http.ResponseWriter, m router.Message, requestID string) {
	if !m.IsCall() {
		w.WriteHeader(http.StatusAccepted) // unknown notifications are to be ignored
		return
	}
	e := core.Errf(core.KindNotFound, "unknown_method", "There is no method %q.", m.Method)
	w.Header().Set("Content-Type", "application/json")
	write(w, rpcError{JSONRPC: "2.0", ID: m.ID.Raw(), Error: rpcErrorBody{
		Code: jsonrpc.CodeMethodNotFound, Message: e.Detail, Data: problemOf(e, f.surface.deps.BaseURL, requestID),
	}})
}

// other serves GET, the stream of a session, and DELETE, its end. A session opened
// without a credential needs none here either: many clients open the stream at once and
// would take a 401 for a failed sign-in.
func (f *front) other(w http.ResponseWriter, r *http.Request, p core.Principal) {
	session := r.Header.Get("Mcp-Session-Id")
	lane := router.Choose(router.Request{HTTPMethod: r.Method, Revision: r.Header.Get("Mcp-Protocol-Version"), Session: session}, router.Body{})
	if lane != router.Stateful {
		w.Header().Set("Allow", "POST")
		f.surface.refuse(w, fault(http.StatusMethodNotAllowed, ""), p.RequestID)
		return
	}
	if owner, _ := f.sessions.owner(session); owner != "" && p.Kind == core.ActorKindAnonymous {
		f.deny(w, core.Errf(core.KindUnauthenticated, "unauthenticated", "This session was opened with a key; send the same one."), p.RequestID, false)
		return
	}
	out := &reply{ResponseWriter: w}
	f.serve(lane, out, r, p, nil)
	if r.Method == http.MethodDelete && out.status == http.StatusNoContent {
		f.sessions.closed(session)
	}
	out.finish(f.surface, p.RequestID)
}

// serve hands a copy of the request to the SDK, with the wide Accept it insists on.
func (f *front) serve(lane router.Lane, w http.ResponseWriter, r *http.Request, p core.Principal, body []byte) {
	r = r.Clone(contextWithPrincipal(r.Context(), p))
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.lanes[lane].ServeHTTP(w, r)
}

func bodyCode(e *router.BodyError) string {
	if e.Code == jsonrpc.CodeParseError {
		return "not_json"
	}
	return "bad_message"
}

// namesStream reports whether the client itself names the event stream. A client that
// takes anything, or says nothing, gets plain JSON.
func namesStream(h http.Header) bool {
	for _, value := range h.Values("Accept") {
		for one := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
				return true
			}
		}
	}
	return false
}
