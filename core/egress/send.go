package egress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approved"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// plan is what send needs of an approved effect.
type plan struct {
	resolved effect.Resolved
	key      string // idempotency key
}

// Send sends what a person approved: it reads the preconditions again, connects, asks
// for the mark through hooks.Connected and only then writes the first byte. It is the
// only function of the host that changes the outside world; core/execute alone calls it.
func (e *Egress) Send(ctx context.Context, a approved.Effect, c Credential, hooks Hooks) Outcome {
	if !a.Valid() {
		return cannotSend("not_approved", "The effect was not verified by the approval service.")
	}
	return e.send(ctx, plan{resolved: effect.Resolved{Steps: a.Steps(), Preconditions: a.Preconditions()}, key: a.IdempotencyKey()}, c, hooks)
}

// send connects, asks for the mark, writes the steps in order and says what is known.
func (e *Egress) send(ctx context.Context, p plan, c Credential, hooks Hooks) Outcome {
	if len(p.resolved.Steps) == 0 {
		return cannotSend("manual", "This action is done by a person.")
	}
	if o := e.recheck(ctx, p.resolved.Preconditions, c); o != nil {
		return *o
	}
	out := Outcome{Steps: []StepOutcome{}}
	values := map[string]string{}
	for i, step := range p.resolved.Steps {
		marks := hooks
		if i > 0 {
			marks.Connected = func() error { return nil } // the mark stands already
		}
		r, failed := e.step(ctx, step, values, c, p.key, marks)
		if failed != nil && i == 0 {
			return *failed
		}
		if failed != nil { // earlier steps are done, this one certainly is not
			r = result{event: core.EventRefused, code: failed.Code, detail: failed.Detail, retryable: failed.Retryable}
		}
		out.Steps = append(out.Steps, StepOutcome{Step: i + 1, Event: r.event, Status: r.status, Reply: r.reply})
		out.Event, out.Code, out.Detail, out.Retryable, out.RetryAfter = r.event, r.code, r.detail, r.retryable, r.retryAfter
		if r.event != core.EventReplyOK {
			if i > 0 {
				out.Detail = fmt.Sprintf("Step %d of %d: %s The steps before it were done.", i+1, len(p.resolved.Steps), r.detail)
			}
			return out
		}
		if r.id != "" {
			out.ExternalID = r.id
		}
		if r.url != "" {
			out.ExternalURL = r.url
		}
		maps.Copy(values, r.captured)
		if i+1 < len(p.resolved.Steps) && hooks.Stepped != nil {
			if err := hooks.Stepped(slices.Clone(out.Steps)); err != nil {
				out.Event, out.Code = core.EventRefused, "not_marked"
				out.Detail = fmt.Sprintf("Step %d of %d was not begun: %s The steps before it were done.", i+2, len(p.resolved.Steps), core.AsError(err).Detail)
				return out
			}
		}
	}
	return out
}

// step does one request. An Outcome instead of a result says that it certainly was not
// begun.
func (e *Egress) step(ctx context.Context, step effect.ResolvedStep, values map[string]string, c Credential, key string, hooks Hooks) (result, *Outcome) {
	timeout := DefaultTimeout
	if step.TimeoutSeconds > 0 {
		timeout = time.Duration(step.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	filled, err := step.Fill(values)
	if err != nil {
		o := cannotSend("capture_missing", "%v.", err)
		return result{}, &o
	}
	if filled.Mail != nil {
		return e.mail(ctx, *filled.Mail, c, hooks)
	}
	req, err := e.prepare(ctx, filled, c, key)
	if err != nil {
		o := cannotSend("cannot_sign", "The request cannot be made: %v.", err)
		return result{}, &o
	}
	conn, o := e.dialHTTP(ctx, req.URL)
	if o != nil {
		return result{}, o
	}
	defer conn.Close()
	if o := connected(ctx, hooks); o != nil {
		return result{}, o
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	return exchange(conn, req, filled, hooks, c.secrets()), nil
}

func (e *Egress) mail(ctx context.Context, m effect.ResolvedMail, c Credential, hooks Hooks) (result, *Outcome) {
	s, o := e.dialSMTP(ctx, m.Server, m.TLS, c)
	if o != nil {
		return result{}, o
	}
	defer s.quit()
	if o := connected(ctx, hooks); o != nil {
		return result{}, o
	}
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	return s.send(m, e.clock.Now(), hooks, c.secrets()), nil
}

// connected asks for the mark. Without it nothing is sent.
func connected(ctx context.Context, hooks Hooks) *Outcome {
	err := ctx.Err()
	if err == nil && hooks.Connected != nil {
		err = hooks.Connected()
	}
	if err == nil {
		return nil
	}
	o := connectFailed("not_marked", "The send was not begun: %s.", core.AsError(err).Detail)
	return &o
}

// recheck reads the preconditions again: what the approval rests on must still hold.
func (e *Egress) recheck(ctx context.Context, reads []effect.ResolvedRead, c Credential) *Outcome {
	for _, r := range reads {
		reply, err := e.Fetch(ctx, Request{Class: Read, Method: r.Method, URL: r.URL, Signers: r.Signers, Credential: c})
		if err != nil {
			o := connectFailed("precondition_unread", "What the approval rests on could not be read: %s", core.AsError(err).Detail)
			return &o
		}
		got, ok := at(reply.Body, r.Pointer)
		if reply.Status/100 != 2 && reply.Status != http.StatusNotFound {
			o := connectFailed("precondition_unread", "What the approval rests on could not be read: status %d.", reply.Status)
			return &o
		}
		if !ok || got != r.Expected {
			o := cannotSend("precondition_changed", "%s was %q when this was approved and is %q now. Propose it again.", r.Pointer, r.Expected, clip(got))
			return &o
		}
	}
	return nil
}

// Probe connects to a mail server or an HTTPS host, signs in where the protocol does so,
// and hangs up. It tells an owner at once that a connection cannot work.
func (e *Egress) Probe(ctx context.Context, server, tlsMode string, c Credential) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	if _, _, err := net.SplitHostPort(server); err != nil {
		return core.Errf(core.KindInvalid, "invalid_connection", "%q is not host:port.", server)
	}
	s, o := e.dialSMTP(ctx, server, tlsMode, c)
	if o != nil {
		return &core.Error{Kind: core.KindUnavailable, Code: o.Code, Detail: o.Detail, Err: errors.New("probe failed")}
	}
	s.quit()
	return nil
}
