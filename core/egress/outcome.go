package egress

import (
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// Outcome is what is known after one try to send. Event is what happens to the action:
//
//	connect_failed  no connection came about; it may be tried again
//	recheck_failed  the effect cannot be sent at all, for example to a refused address
//	reply_ok        every step was confirmed
//	refused         a definite refusal: the step that failed certainly did nothing
//	uncertain       time-out, reset, 5xx or an unknown reply; nobody may send again
type Outcome struct {
	Event core.ActionEvent
	// Code is stable, snake_case; Detail says what failed, for people, without secrets.
	Code, Detail string
	// Retryable says that the same may work later, for a new action.
	Retryable   bool
	RetryAfter  time.Duration
	ExternalID  string
	ExternalURL string
	Steps       []StepOutcome
}

// StepOutcome is one step of the effect.
type StepOutcome struct {
	Step int `json:"step"`
	// Event is reply_ok, refused or uncertain.
	Event core.ActionEvent `json:"event"`
	// Status is the HTTP status or SMTP code of the reply; 0 without one.
	Status int `json:"status,omitempty"`
	// Reply is the start of the reply's text, with secrets blanked.
	Reply string `json:"reply,omitempty"`
}

// Hooks are called while an effect is sent.
type Hooks struct {
	// Connected is called once, after the connection stands (dialled, TLS, signed in) and
	// before the first byte of the effect. Its error ends the try: nothing was sent.
	Connected func() error
	// Stepped is called after a step was confirmed and before the next one begins, with all
	// outcomes so far. Its error ends the send there; may be nil.
	Stepped func(done []StepOutcome) error
	// Written is called when all bytes of a step were handed over and before its reply is
	// awaited; may be nil.
	Written func()
}

func (h Hooks) written() {
	if h.Written != nil {
		h.Written()
	}
}

func connectFailed(code, format string, args ...any) Outcome {
	e := core.Errf(core.KindUnavailable, code, format, args...)
	return Outcome{Event: core.EventConnectFailed, Code: e.Code, Detail: e.Detail, Retryable: true}
}

func cannotSend(code, format string, args ...any) Outcome {
	e := core.Errf(core.KindConflict, code, format, args...)
	return Outcome{Event: core.EventRecheckFailed, Code: e.Code, Detail: e.Detail}
}

// result is the outcome of one step inside the package.
type result struct {
	event        core.ActionEvent
	code, detail string
	status       int
	reply        string
	retryable    bool
	retryAfter   time.Duration
	id, url      string
	captured     map[string]string
}

func refusedResult(code string, status int, detail string) result {
	return result{event: core.EventRefused, code: code, status: status, detail: detail}
}

func uncertainResult(code string, status int, detail string) result {
	return result{event: core.EventUncertain, code: code, status: status, detail: detail}
}
