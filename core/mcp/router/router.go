// Package router decides how one HTTP request of the MCP endpoint is served. The
// official SDK needs a handler with sessions for clients that begin with initialize, and
// a handler without for bare calls and for revision 2026-07-28; both stand behind one
// address, and this package picks. It reads a body only as far as the choice needs.
package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Revisions of the protocol that change how a request is served.
const (
	Revision20250618 = "2025-06-18"
	Revision20260728 = "2026-07-28"
)

// MaxBatch is the largest number of messages in one batch.
const MaxBatch = 16

// Lane is a handler of the endpoint.
type Lane int

// Lanes.
const (
	// NoStream answers 405: a GET or DELETE that names no session.
	NoStream Lane = iota
	// Stateful keeps sessions.
	Stateful
	// Stateless answers one POST with one JSON document.
	Stateless
	// StatelessStream answers one POST with an event stream, which can carry progress.
	StatelessStream
)

func (l Lane) String() string {
	return [...]string{"no stream", "stateful", "stateless", "stateless stream"}[l]
}

// Message is what is known of one JSON-RPC message.
type Message struct {
	// Method is empty for a response.
	Method string
	// ID is set for calls; a notification has none.
	ID jsonrpc.ID
	// Params is raw; nil when absent.
	Params json.RawMessage
	// Progress reports that the caller asked for progress.
	Progress bool
}

// IsCall reports whether the message wants an answer.
func (m Message) IsCall() bool { return m.Method != "" && m.ID.IsValid() }

// Body is the decoded body of a POST.
type Body struct {
	Messages []Message
	Batch    bool
}

// Has reports whether a message of the method is among them.
func (b Body) Has(method string) bool {
	for _, m := range b.Messages {
		if m.Method == method {
			return true
		}
	}
	return false
}

// Only returns the message when it is the only one and not in a batch.
func (b Body) Only() (Message, bool) {
	if b.Batch || len(b.Messages) != 1 {
		return Message{}, false
	}
	return b.Messages[0], true
}

// BodyError says why a body cannot be served, with the JSON-RPC code for it.
type BodyError struct {
	Code    int
	Message string
}

func (e *BodyError) Error() string { return e.Message }

// Peek decodes a body with the decoder the SDK uses, so that spelling tricks such as
// escaped or repeated keys read the same here and there. What it finds may only be used
// to refuse or to route: authorisation happens again after the SDK has decoded.
func Peek(body []byte) (Body, error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return Body{}, &BodyError{jsonrpc.CodeInvalidRequest, "The body is empty: send one JSON-RPC message."}
	}
	if trimmed[0] != '[' {
		m, err := decode(trimmed)
		if err != nil {
			return Body{}, err
		}
		return Body{Messages: []Message{m}}, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(trimmed, &raw); err != nil {
		return Body{}, &BodyError{jsonrpc.CodeParseError, "The body is not JSON: " + err.Error()}
	}
	if len(raw) == 0 {
		return Body{}, &BodyError{jsonrpc.CodeInvalidRequest, "The batch is empty."}
	}
	if len(raw) > MaxBatch {
		return Body{}, &BodyError{jsonrpc.CodeInvalidRequest, fmt.Sprintf("The batch has %d messages; %d is the limit. Send them in several requests.", len(raw), MaxBatch)}
	}
	b := Body{Batch: true}
	for _, one := range raw {
		m, err := decode(one)
		if err != nil {
			return Body{}, err
		}
		b.Messages = append(b.Messages, m)
	}
	if b.Has("initialize") {
		return Body{}, &BodyError{jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch: send it alone."}
	}
	return b, nil
}

func decode(data []byte) (Message, error) {
	if !json.Valid(data) {
		return Message{}, &BodyError{jsonrpc.CodeParseError, "The body is not JSON."}
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return Message{}, &BodyError{jsonrpc.CodeInvalidRequest, "This is not a JSON-RPC 2.0 message: " + plain(err)}
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return Message{}, nil // a response to the server
	}
	if req.Method == "" {
		return Message{}, &BodyError{jsonrpc.CodeInvalidRequest, `The message lacks "method".`}
	}
	return Message{Method: req.Method, ID: req.ID, Params: req.Params, Progress: wantsProgress(req.Params)}, nil
}

// plain drops the wire error's own prefix, which would read oddly inside ours.
func plain(err error) string {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Message != "" {
		return wire.Message
	}
	return err.Error()
}

func wantsProgress(params json.RawMessage) bool {
	if !bytes.Contains(params, []byte("rogressToken")) {
		return false
	}
	var p struct {
		Meta struct {
			Token any `json:"progressToken"`
		} `json:"_meta"`
	}
	return json.Unmarshal(params, &p) == nil && p.Meta.Token != nil
}

// Request is what the choice rests on besides the body.
type Request struct {
	HTTPMethod string
	// Revision is the value of the MCP-Protocol-Version header.
	Revision string
	// Session is the value of the Mcp-Session-Id header.
	Session string
	// Streams reports that the client named text/event-stream in Accept.
	Streams bool
}

// Choose picks the lane of a request.
func Choose(r Request, b Body) Lane {
	if r.Revision >= Revision20260728 {
		return stateless(r, b)
	}
	if r.HTTPMethod != http.MethodPost {
		if r.Session == "" {
			return NoStream
		}
		return Stateful
	}
	if r.Session != "" || b.Has("initialize") {
		return Stateful
	}
	return stateless(r, b)
}

// stateless streams only when something can come before the answer and the client can
// read it; one JSON document is cheaper for both sides.
func stateless(r Request, b Body) Lane {
	if m, ok := b.Only(); ok && m.Progress && r.Streams {
		return StatelessStream
	}
	return Stateless
}
