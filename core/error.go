package core

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind sorts errors by what a caller can do about them. Surfaces map a kind
// to a status code; nothing else decides it.
type ErrorKind string

// Kinds of error, with the HTTP status that REST gives them.
const (
	KindMalformed       ErrorKind = "malformed"         // 400
	KindUnauthenticated ErrorKind = "unauthenticated"   // 401
	KindForbidden       ErrorKind = "forbidden"         // 403
	KindNotFound        ErrorKind = "not_found"         // 404, also for another workspace
	KindConflict        ErrorKind = "conflict"          // 409
	KindGone            ErrorKind = "gone"              // 410
	KindPrecondition    ErrorKind = "precondition"      // 412, a named digest differs
	KindTooLarge        ErrorKind = "too_large"         // 413
	KindUnsupported     ErrorKind = "unsupported_media" // 415
	KindInvalid         ErrorKind = "invalid"           // 422
	KindUnseen          ErrorKind = "unseen"            // 428, decided without having seen
	KindRateLimited     ErrorKind = "rate_limited"      // 429
	KindInternal        ErrorKind = "internal"          // 500
	KindUnavailable     ErrorKind = "unavailable"       // 503
)

// Status is the HTTP status of the kind.
func (k ErrorKind) Status() int {
	switch k {
	case KindMalformed:
		return 400
	case KindUnauthenticated:
		return 401
	case KindForbidden:
		return 403
	case KindNotFound:
		return 404
	case KindConflict:
		return 409
	case KindGone:
		return 410
	case KindPrecondition:
		return 412
	case KindTooLarge:
		return 413
	case KindUnsupported:
		return 415
	case KindInvalid:
		return 422
	case KindUnseen:
		return 428
	case KindRateLimited:
		return 429
	case KindUnavailable:
		return 503
	}
	return 500
}

// Error is what services return to surfaces: what failed, why, and what to do next.
type Error struct {
	Kind   ErrorKind
	Code   string // stable, snake_case, for example approval_required
	Detail string // for people; names the thing and the cure, never a secret
	Fields []FieldError
	Next   *NextAction
	// ReviewURL is set where a person has to act.
	ReviewURL string
	// CurrentDigest is set where another digest was named.
	CurrentDigest string
	RetryAfter    time.Duration
	Err           error // cause, for logs only
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Err)
	}
	return e.Code + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.Err }

// Errf makes an Error of a kind with a stable code and a formatted detail.
func Errf(kind ErrorKind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// AsError finds the Error in err; any other error becomes an internal one whose
// detail says nothing about the cause.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: KindInternal, Code: "internal", Detail: "Something failed on our side. Try again; the log names this request.", Err: err}
}

// IsKind reports whether err is an Error of the kind.
func IsKind(err error, kind ErrorKind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
