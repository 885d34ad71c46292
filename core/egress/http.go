package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// dialHTTP connects to the host of a step. Its failures are certain.
func (e *Egress) dialHTTP(ctx context.Context, u *url.URL) (net.Conn, *Outcome) {
	fail := func(o Outcome) (net.Conn, *Outcome) { return nil, &o }
	address := net.JoinHostPort(u.Hostname(), portOf(u))
	if u.Scheme == "http" && !e.guard.lists(u.Hostname(), portOf(u)) {
		return fail(cannotSend("encryption_required", "%s would be reached without encryption. Use https, or list it in egress.allowPrivate.", address))
	}
	conn, err := e.dial(ctx, "tcp", address)
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		return fail(cannotSend("address_refused", "%v.", refusal))
	}
	if err != nil {
		return fail(connectFailed("unreachable", "%s could not be reached: %s.", address, plainError(err)))
	}
	if u.Scheme == "http" {
		return conn, nil
	}
	secured, err := e.secure(ctx, conn, u.Hostname(), []string{"http/1.1"})
	if err != nil {
		return fail(connectFailed("tls_failed", "%s did not agree on TLS: %s.", address, plainError(err)))
	}
	return secured, nil
}

// prepare builds and signs the request of a step.
func (e *Egress) prepare(ctx context.Context, step effect.ResolvedStep, c Credential, key string) (*http.Request, error) {
	h := step.HTTP
	u, err := parseURL(h.URL)
	if err != nil {
		return nil, err
	}
	for _, p := range h.Headers { // dropping one would change what was approved
		if forbiddenHeader(p.Name) {
			return nil, fmt.Errorf("header %s is core's own", p.Name)
		}
	}
	req, err := newRequest(ctx, h.Method, u, h.Headers, h.Body)
	if err != nil {
		return nil, err
	}
	req.Close = true
	if h.IdempotencyHeader != "" {
		req.Header.Set(h.IdempotencyHeader, key)
	}
	return req, sign(req, h.Body, step.Signers, c, key, e.clock.Now())
}

// watched notes whether anything was handed to the network.
type watched struct {
	net.Conn
	began bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.began = true
	return w.Conn.Write(b)
}

// exchange writes the request and judges the reply. The request is written by hand, so
// that it is known whether its first byte was written, and so that nothing repeats it.
func exchange(conn net.Conn, req *http.Request, step effect.ResolvedStep, hooks Hooks, secrets []string) result {
	w := &watched{Conn: conn}
	buffered := bufio.NewWriterSize(w, 64<<10)
	err := req.Write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil && !w.began {
		r := refusedResult("connection_lost", 0, "The connection ended before the request was written; nothing was sent.")
		r.retryable = true
		return r
	}
	if err == nil {
		hooks.written()
	}
	// A receiver may answer and hang up before it has read everything: its answer counts.
	limit := int64(step.MaxResponseBytes)
	if limit <= 0 || limit > MaxReplyBytes {
		limit = MaxReplyBytes
	}
	resp, rerr := readResponse(bufio.NewReader(io.LimitReader(conn, limit+maxHeaderBytes)), req)
	if rerr != nil {
		return uncertainResult("no_reply", 0, "The request was handed over, and no reply came.")
	}
	defer resp.Body.Close()
	body, berr := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(body)) > limit {
		body, berr = body[:limit], errors.New("the reply is too large")
	}
	r := judge(step, resp, body, berr)
	r.reply = clip(string(redact(body[:min(len(body), 2000)], secrets)))
	return r
}

// readResponse skips interim replies.
func readResponse(r *bufio.Reader, req *http.Request) (*http.Response, error) {
	for range 6 {
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 {
			return resp, nil
		}
		resp.Body.Close()
	}
	return nil, errors.New("only interim replies came")
}

// judge maps a reply. Only what the manifest declares definite is a refusal; whatever
// cannot be read as a success is uncertain.
func judge(step effect.ResolvedStep, resp *http.Response, body []byte, bodyErr error) result {
	status := resp.StatusCode
	name := strconv.Itoa(status) + " " + http.StatusText(status)
	if slices.Contains(step.Definite, status) {
		return refusedResult("refused", status, "The receiver answered "+name+"; nothing was done.")
	}
	good := slices.Contains(step.Success.Statuses, status)
	if len(step.Success.Statuses) == 0 {
		good = status/100 == 2
	}
	unclear := func(why string) result {
		r := uncertainResult("unclear_reply", status, "The receiver answered "+name+why+".")
		r.retryAfter = retryAfter(resp.Header.Get("Retry-After"))
		return r
	}
	if !good {
		return unclear(", which says neither that it was done nor that it was not")
	}
	needsBody := step.Success.Pointer != "" || step.Result.IDPointer != ""
	if needsBody && bodyErr != nil {
		return unclear(", and the reply broke off")
	}
	if p := step.Success.Pointer; p != "" {
		if got, ok := at(body, p); !ok || got != step.Success.Value {
			return unclear(fmt.Sprintf(", but %s is not %q", p, step.Success.Value))
		}
	}
	r := result{event: core.EventReplyOK, status: status, captured: map[string]string{}}
	if p := step.Result.IDPointer; p != "" {
		id, ok := at(body, p)
		if !ok {
			return unclear(", but without an id at " + p)
		}
		r.id = id
	}
	if h := step.Result.IDHeader; h != "" && r.id == "" {
		r.id = resp.Header.Get(h)
	}
	if p := step.Result.URLPointer; p != "" {
		r.url, _ = at(body, p)
	}
	for _, c := range step.Captures {
		value, ok := resp.Header.Get(c.Header), c.Header != ""
		if !ok {
			value, ok = at(body, c.Pointer)
		}
		if ok && c.Accept(value) == nil {
			r.captured[c.Name] = value
		}
	}
	r.id, r.url = clip(r.id), clip(r.url)
	return r
}

// retryAfter reads the seconds form; the date form is left alone, since clocks differ.
func retryAfter(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 86400 {
		return 0
	}
	return time.Duration(n) * time.Second
}
