package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/sallyport-dev/sallyport/core"
)

// codeUnauthenticated is the JSON-RPC code of a call without credential, where the HTTP
// status could not say it.
const codeUnauthenticated = -32001

// problemOf is the error as the REST surface would show it.
func problemOf(e *core.Error, base, requestID string) core.Problem {
	p := core.Problem{
		Type:       base + "/problems/" + e.Code,
		Title:      title(e.Code),
		Status:     e.Kind.Status(),
		Code:       e.Code,
		RequestID:  requestID,
		Errors:     e.Fields,
		NextAction: e.Next,
	}
	for _, set := range []struct {
		to   **string
		from string
	}{{&p.Detail, e.Detail}, {&p.ReviewURL, e.ReviewURL}, {&p.CurrentDigest, e.CurrentDigest}} {
		if set.from != "" {
			*set.to = &set.from
		}
	}
	return p
}

// title makes words of a stable code.
func title(code string) string {
	words := strings.ReplaceAll(code, "_", " ")
	if words == "" {
		return "Error"
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// refuse writes an error of the HTTP layer. A malformed message is answered with a
// JSON-RPC error, since its sender speaks that; everything else with a problem document.
func (s *surface) refuse(w http.ResponseWriter, e *core.Error, requestID string) {
	p := problemOf(e, s.deps.BaseURL, requestID)
	if e.Code == methodNotAllowed { // HTTP's own, no service knows it
		p.Status = http.StatusMethodNotAllowed
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+0.999)))
	}
	w.Header().Del("Content-Length")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if e.Kind == core.KindMalformed {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(p.Status)
		write(w, rpcError{JSONRPC: "2.0", Error: rpcErrorBody{Code: rpcCode(e), Message: e.Detail, Data: p}})
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	write(w, p)
}

type rpcError struct {
	JSONRPC string       `json:"jsonrpc"`
	ID      any          `json:"id"`
	Error   rpcErrorBody `json:"error"`
}

type rpcErrorBody struct {
	Code    int          `json:"code"`
	Message string       `json:"message"`
	Data    core.Problem `json:"data"`
}

func rpcCode(e *core.Error) int {
	if e.Code == "not_json" {
		return jsonrpc.CodeParseError
	}
	return jsonrpc.CodeInvalidRequest
}

func write(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil { // our own types always marshal
		panic(err)
	}
	_, _ = w.Write(b) // the client is gone when this fails
}

// reply stands between the SDK and the client. It turns the SDK's plain-text faults into
// problem documents, and, for clients that did not name text/event-stream, a finished
// event stream into the JSON document they expect.
type reply struct {
	http.ResponseWriter
	asJSON  bool // collect an event stream
	batch   bool // answer collected events as an array
	status  int
	held    *bytes.Buffer
	isFault bool
}

func (r *reply) WriteHeader(status int) {
	if r.status != 0 {
		return
	}
	r.status = status
	kind := r.Header().Get("Content-Type")
	switch {
	case status >= 400 && strings.HasPrefix(kind, "text/plain"):
		r.held, r.isFault = &bytes.Buffer{}, true
	case r.asJSON && strings.HasPrefix(kind, "text/event-stream"):
		r.held = &bytes.Buffer{}
	default:
		r.ResponseWriter.WriteHeader(status)
	}
}

func (r *reply) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.held != nil {
		return r.held.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// Flush passes what is not held.
func (r *reply) Flush() {
	if r.held == nil {
		_ = http.NewResponseController(r.ResponseWriter).Flush() // best effort
	}
}

// finish sends what was held.
func (r *reply) finish(s *surface, requestID string) {
	switch {
	case r.held == nil:
	case r.isFault:
		s.refuse(r.ResponseWriter, fault(r.status, strings.TrimSpace(r.held.String())), requestID)
	default:
		answers := answersIn(r.held.Bytes())
		r.Header().Set("Content-Type", "application/json")
		r.ResponseWriter.WriteHeader(r.status)
		if !r.batch && len(answers) == 1 {
			_, _ = r.ResponseWriter.Write(answers[0])
			return
		}
		write(r.ResponseWriter, answers)
	}
}

// answersIn picks the responses out of an event stream; notifications need a stream and
// are dropped.
func answersIn(stream []byte) []json.RawMessage {
	answers := []json.RawMessage{}
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: "))
		if !ok {
			continue
		}
		var m struct {
			Method string `json:"method"`
		}
		if json.Unmarshal(data, &m) == nil && m.Method == "" {
			answers = append(answers, json.RawMessage(data))
		}
	}
	return answers
}

// fault names a plain-text error of the SDK.
func fault(status int, text string) *core.Error {
	switch status {
	case http.StatusForbidden:
		return core.Errf(core.KindForbidden, "session_owner", "This session belongs to another key (%s). Send initialize with yours.", text)
	case http.StatusNotFound:
		return core.Errf(core.KindNotFound, "session_not_found", "This session has ended or never was here (%s). Send initialize again.", text)
	case http.StatusRequestEntityTooLarge:
		return core.Errf(core.KindTooLarge, "body_too_large", "The body is larger than %d bytes.", MaxBody)
	case http.StatusUnsupportedMediaType:
		return core.Errf(core.KindUnsupported, "unsupported_media_type", "Send Content-Type: application/json.")
	case http.StatusConflict:
		return core.Errf(core.KindConflict, "stream_open", "This session has an open stream already (%s).", text)
	case http.StatusBadRequest:
		return core.Errf(core.KindMalformed, "bad_request", "%s", text)
	case http.StatusMethodNotAllowed:
		return core.Errf(core.KindUnsupported, methodNotAllowed, "This address takes POST. GET and DELETE need the Mcp-Session-Id of an open session.")
	}
	return core.Errf(core.KindInternal, "internal", "The request could not be served. Try again; the log names this request.")
}

const methodNotAllowed = "method_not_allowed"
