// Package approved holds the one type that core/egress sends: a sealed effect whose
// approval was verified a moment ago.
package approved

import (
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// Effect is a sealed effect that a person approved. Only core/approval makes one, after
// it loaded the action in the claim's transaction, computed the digest again and
// verified the decisions; an architecture test keeps it so. The zero Effect is not Valid.
type Effect struct{ c Content }

// Content is what core/approval puts into an Effect.
type Content struct {
	ActionID       string
	WorkspaceID    string
	RunID          string
	Kind           string
	Revision       int
	Digest         [32]byte
	Generation     int    // rises with each claim
	Owner          string // the executor that holds the claim
	LeaseUntil     time.Time
	NotAfter       time.Time // no first byte after this
	IdempotencyKey string
	ContentSHA256  []string
	Resolved       effect.Resolved
}

// New makes an Effect. Its only caller is core/approval.
func New(c Content) Effect {
	c.Resolved = clone(c.Resolved)
	c.ContentSHA256 = slices.Clone(c.ContentSHA256)
	return Effect{c}
}

// Valid reports whether the effect came from New.
func (e Effect) Valid() bool { return e.c.ActionID != "" }

// ActionID names the action.
func (e Effect) ActionID() string { return e.c.ActionID }

// WorkspaceID names the workspace that owns the action.
func (e Effect) WorkspaceID() string { return e.c.WorkspaceID }

// RunID names the run of the action.
func (e Effect) RunID() string { return e.c.RunID }

// Kind of the action, for example email.send.
func (e Effect) Kind() string { return e.c.Kind }

// Revision is the one that was approved.
func (e Effect) Revision() int { return e.c.Revision }

// Digest is the one that was approved.
func (e Effect) Digest() [32]byte { return e.c.Digest }

// Generation counts the claims of the action; a record of an older one is refused.
func (e Effect) Generation() int { return e.c.Generation }

// Owner is the executor that holds the claim.
func (e Effect) Owner() string { return e.c.Owner }

// LeaseUntil is when others may take the claim away.
func (e Effect) LeaseUntil() time.Time { return e.c.LeaseUntil }

// NotAfter is when the approval ends; the sending mark is refused after it.
func (e Effect) NotAfter() time.Time { return e.c.NotAfter }

// IdempotencyKey is what the provider is told, so that it can know a repetition.
func (e Effect) IdempotencyKey() string { return e.c.IdempotencyKey }

// ContentSHA256 is the hash of each step's body or message, in hex.
func (e Effect) ContentSHA256() []string { return slices.Clone(e.c.ContentSHA256) }

// Connection is the account that was approved.
func (e Effect) Connection() effect.Connection { return e.c.Resolved.Connection }

// Steps are the requests, as a copy: nobody can change what was approved.
func (e Effect) Steps() []effect.ResolvedStep { return clone(e.c.Resolved).Steps }

// Preconditions are the reads whose answers must still hold before the first step.
func (e Effect) Preconditions() []effect.ResolvedRead {
	return slices.Clone(e.c.Resolved.Preconditions)
}

// Lookup finds the result of a send whose reply was lost; nil when there is none.
func (e Effect) Lookup() *effect.ResolvedRead {
	if e.c.Resolved.Lookup == nil {
		return nil
	}
	l := *e.c.Resolved.Lookup
	return &l
}

func clone(r effect.Resolved) effect.Resolved {
	steps := make([]effect.ResolvedStep, len(r.Steps))
	for i, s := range r.Steps {
		if s.HTTP != nil {
			h := *s.HTTP
			h.Headers, h.Body = slices.Clone(h.Headers), slices.Clone(h.Body)
			s.HTTP = &h
		}
		if s.Mail != nil {
			m := *s.Mail
			m.To, m.Message = slices.Clone(m.To), slices.Clone(m.Message)
			s.Mail = &m
		}
		s.Signers, s.Definite, s.Captures = slices.Clone(s.Signers), slices.Clone(s.Definite), slices.Clone(s.Captures)
		s.Success.Statuses = slices.Clone(s.Success.Statuses)
		steps[i] = s
	}
	r.Steps = steps
	r.Preconditions = slices.Clone(r.Preconditions)
	return r
}
