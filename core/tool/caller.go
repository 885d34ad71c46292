package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/schemas"
)

// Caller reaches the process of one plugin. The supervisor implements it; it stays the
// same value while the process is restarted.
type Caller interface {
	// Call runs one tool. The error is a *Failure when the plugin answered one, and a
	// *core.Error of kind unavailable when there is no answer.
	Call(ctx context.Context, in CallIn) (CallOut, error)
	// Available reports whether a process is there to answer.
	Available() bool
}

// CallIn is one call of a tool of a plugin.
type CallIn struct {
	Tool       string
	Input      json.RawMessage
	Answers    json.RawMessage
	Connection json.RawMessage // public part, only for connectors
	ActionID   string          // only for write tools
	Era        string
	Scope      *Scope
	Progress   func(done, total float64, message string)
}

// CallOut is the answer: exactly one field is set.
type CallOut struct {
	Result json.RawMessage
	Sealed json.RawMessage
	Ask    json.RawMessage
}

// MaxDepth is how deep tools may call tools.
const MaxDepth = 4

// Scope is what one call may do and on whose behalf. It ends with the call: the context
// of the call carries the deadline, and tickets made for it die with it.
type Scope struct {
	CallID    string
	Principal core.Principal
	RunID     string // empty outside a run
	ReviewURL string
	Plugin    string // whose process runs the call
	Tool      string
	Effect    schemas.Effect
	Depth     int // 1 for a call from outside
	Now       time.Time
	// Drafting says that the call answers the goal of the run: it may set the run's
	// phase, and its end makes the run ready for review.
	Drafting bool

	shared *shared
}

// shared is what a call and the calls nested in it have in common.
type shared struct{ proposed atomic.Int32 }

// WorkspaceID is the workspace of the call.
func (s *Scope) WorkspaceID() string { return s.Principal.WorkspaceID }

// Failure is what a plugin answered instead of a result.
type Failure struct {
	Code          string
	Message       string
	Retryable     bool
	Fields        []core.FieldError
	WhatWouldHelp []string
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Codes that this package gives.
const (
	CodeUnknownTool   = "unknown_tool"
	CodeWriteTool     = "write_tool"
	CodeInvalidInput  = "invalid_input"
	CodeUnavailable   = "plugin_unavailable"
	CodeTimeout       = "plugin_timeout"
	CodeInputRequired = "input_required"
)

// kindOf sorts the codes of plugins that mean something to every caller; any other code
// says that the request as it stands cannot be answered.
func kindOf(code string) core.ErrorKind {
	switch code {
	case "not_found":
		return core.KindNotFound
	case "internal", "invalid_output", "host_unreachable", "unexpected_answer":
		return core.KindUnavailable
	case "rate_limited":
		return core.KindRateLimited
	case "not_allowed":
		return core.KindForbidden
	}
	return core.KindInvalid
}

// errorOf makes the error that surfaces show from what a call of a tool ended with.
func errorOf(err error, tool string) *core.Error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return core.AsError(err)
	}
	kind := kindOf(f.Code)
	out := &core.Error{Kind: kind, Code: plainCode(f.Code), Detail: f.Message, Fields: f.Fields, Err: f}
	if kind == core.KindUnavailable {
		out.Code = CodeUnavailable
		out.Detail = fmt.Sprintf("The plugin that answers %s failed (%s). Others are not touched; try again later.", tool, plainCode(f.Code))
	}
	if len(f.WhatWouldHelp) > 0 {
		out.Detail += " What would help: " + strings.Join(f.WhatWouldHelp, "; ") + "."
	}
	if f.Retryable && kind == core.KindInvalid {
		out.RetryAfter = 5 * time.Second
	}
	return out
}

// plainCode keeps a plugin's code to what codes may hold.
func plainCode(code string) string {
	code = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return -1
	}, strings.ToLower(code))
	if code == "" {
		return "failed"
	}
	return code[:min(len(code), 64)]
}

// FailureOf is the failure that a plugin sees for err: what a nested plugin answered
// stays as it is, an error of core keeps its code, and anything else says nothing of its cause.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	e := core.AsError(err)
	return &Failure{Code: e.Code, Message: e.Detail, Retryable: e.Kind == core.KindUnavailable || e.Kind == core.KindRateLimited, Fields: e.Fields}
}

// Unavailable is the error for a plugin that does not answer.
func Unavailable(plugin, why string) *core.Error {
	e := core.Errf(core.KindUnavailable, CodeUnavailable, "The plugin %s does not answer: %s. Its tools come back when it is restarted; try again later.", plugin, why)
	e.RetryAfter = 10 * time.Second
	return e
}
