package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/sdk/effect"
	"golang.org/x/net/publicsuffix"
)

// Class says what an exchange is for; it decides what is allowed.
type Class string

// Classes of exchanges that are not sends. Read serves connectors, Web the open web,
// Auth the sign-in of connections, Model the language model, Notify events and notices
// whose content is core's own.
const (
	Read   Class = "read"
	Web    Class = "web"
	Auth   Class = "auth"
	Model  Class = "model"
	Notify Class = "notify"
)

// Request is one exchange that is not a send.
type Request struct {
	Class   Class
	Method  string // GET when empty
	URL     string
	Headers []effect.Pair
	Body    []byte
	// ReadPost is the manifest's statement that this POST only reads.
	ReadPost   bool
	Signers    []string
	Credential Credential
	// ID is what standard_webhooks signs as webhook-id.
	ID       string
	MaxBytes int64         // MaxReplyBytes when 0
	Timeout  time.Duration // DefaultTimeout when 0
}

// Reply is what came back. Secrets of the credential are blanked in it.
type Reply struct {
	Status    int
	Headers   []effect.Pair
	Body      []byte
	FinalURL  string
	Truncated bool
}

// forbidden are header names that only core sets, or that would change what the
// request is.
var forbidden = []string{"authorization", "cookie", "host", "connection", "keep-alive", "upgrade", "expect", "te", "trailer", "transfer-encoding",
	"content-length", "x-http-method", "x-http-method-override", "x-method-override", "forwarded", "accept-encoding"}

// forbiddenHeader reports whether a header may not be set from outside core.
func forbiddenHeader(name string) bool {
	lower := strings.ToLower(name)
	return slices.Contains(forbidden, lower) || strings.HasPrefix(lower, "proxy-") || strings.HasPrefix(lower, "x-forwarded-")
}

// Fetch does one exchange that changes nothing outside, or that core itself needs. A
// reply of any status is a Reply; an error is a *core.Error whose code says what failed:
// address_refused, unreachable, timeout, redirect_refused or invalid_request.
func (e *Egress) Fetch(ctx context.Context, r Request) (*Reply, error) {
	u, err := e.address(r)
	if err != nil {
		return nil, err
	}
	req, err := newRequest(ctx, r.Method, u, r.Headers, r.Body)
	if err != nil {
		return nil, core.Errf(core.KindInvalid, "invalid_request", "The request cannot be built: %v.", err)
	}
	if err := checkMethod(r.Class, req.Method, r.ReadPost); err != nil {
		return nil, err
	}
	if len(r.Body) > MaxRequestBytes {
		return nil, core.Errf(core.KindTooLarge, "request_too_large", "The request has %d bytes; %d are allowed.", len(r.Body), MaxRequestBytes)
	}
	if err := sign(req, r.Body, r.Signers, r.Credential, r.ID, e.clock.Now()); err != nil {
		return nil, core.Errf(core.KindConflict, "credential_missing", "The request cannot be signed: %v. Connect again.", err)
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client := http.Client{Transport: e.reads, CheckRedirect: redirects(r.Class, len(r.Signers) > 0)}
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		return nil, fetchError(ctx, u, err)
	}
	defer resp.Body.Close()
	return readReply(ctx, resp, r)
}

// address parses and checks the URL. Plain http goes only to listed hosts; for the open
// web it is read over https instead.
func (e *Egress) address(r Request) (*url.URL, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, core.Errf(core.KindInvalid, "invalid_request", "The address cannot be read: %v.", err)
	}
	if u.Scheme == "http" && !e.guard.lists(u.Hostname(), portOf(u)) {
		if r.Class != Web || u.Port() != "" {
			return nil, core.Errf(core.KindInvalid, "address_refused", "%s is not encrypted. Use https, or list %s in egress.allowPrivate.", u.Redacted(), net.JoinHostPort(u.Hostname(), portOf(u)))
		}
		u.Scheme = "https"
	}
	return u, nil
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it is not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it must start with https://")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("it names no host")
	case u.User != nil:
		return nil, errors.New("it must not hold a user name")
	}
	if err := checkHost(u.Hostname()); err != nil {
		return nil, err
	}
	u.Fragment = ""
	return u, nil
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

func newRequest(ctx context.Context, method string, u *url.URL, headers []effect.Pair, body []byte) (*http.Request, error) {
	if method == "" {
		method = http.MethodGet
	}
	var reader io.Reader
	if len(body) > 0 {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "sallyport")
	for _, h := range headers {
		if forbiddenHeader(h.Name) {
			continue
		}
		req.Header.Set(h.Name, h.Value)
	}
	return req, nil
}

func checkMethod(class Class, method string, readPost bool) error {
	ok := method == http.MethodGet || method == http.MethodHead
	switch class {
	case Read:
		ok = ok || method == http.MethodPost && readPost
	case Auth, Model, Notify:
		ok = ok || method == http.MethodPost
	case Web:
	default:
		ok = false
	}
	if !ok {
		return core.Errf(core.KindForbidden, "method_refused", "%s is not a read. A change of the outside world is a proposed action.", method)
	}
	return nil
}

var errRedirect = errors.New("redirect refused")

// redirects says which redirects are followed: reads stay on their host, the open web
// stays on its site, and nothing signed or core's own is ever redirected. Each hop is
// dialled past the guard like the first.
func redirects(class Class, signed bool) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		first := via[0].URL
		sameHost := next.URL.Scheme == first.Scheme && strings.EqualFold(next.URL.Host, first.Host)
		switch {
		case len(via) >= 5 || next.URL.User != nil || via[0].Method == http.MethodPost:
			return errRedirect
		case first.Scheme == "https" && next.URL.Scheme != "https":
			return errRedirect
		case class == Read && !signed && sameHost:
			return nil
		case class == Web && (sameHost || sameSite(first, next.URL)):
			return nil
		}
		return errRedirect
	}
}

func sameSite(a, b *url.URL) bool {
	if portOf(a) != portOf(b) {
		return false
	}
	x, errA := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(a.Hostname()))
	y, errB := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(b.Hostname()))
	return errA == nil && errB == nil && x == y
}

func readReply(ctx context.Context, resp *http.Response, r Request) (*Reply, error) {
	limit := r.MaxBytes
	if limit <= 0 || limit > MaxReplyBytes {
		limit = MaxReplyBytes
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1)) // counts after decompression
	if err != nil {
		return nil, fetchError(ctx, resp.Request.URL, err)
	}
	reply := &Reply{Status: resp.StatusCode, FinalURL: resp.Request.URL.Redacted(), Headers: []effect.Pair{}}
	if int64(len(body)) > limit {
		body, reply.Truncated = body[:limit], true
	}
	secrets := r.Credential.secrets()
	reply.Body = redact(body, secrets)
	reply.FinalURL = string(redact([]byte(reply.FinalURL), secrets))
	for name, values := range resp.Header {
		if strings.EqualFold(name, "Set-Cookie") {
			continue
		}
		for _, v := range values {
			reply.Headers = append(reply.Headers, effect.Pair{Name: name, Value: string(redact([]byte(v), secrets))})
		}
	}
	slices.SortStableFunc(reply.Headers, func(a, b effect.Pair) int { return strings.Compare(a.Name, b.Name) })
	return reply, nil
}

// fetchError names what failed without the query, which may hold what the caller typed.
func fetchError(ctx context.Context, u *url.URL, err error) *core.Error {
	host := u.Host
	e := core.Errf(core.KindUnavailable, "unreachable", "%s could not be reached. Check the address, or try again later.", host)
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		e = core.Errf(core.KindForbidden, "address_refused", "%v.", refusal)
	}
	if errors.Is(err, errRedirect) {
		e = core.Errf(core.KindUnavailable, "redirect_refused", "%s redirects to another place, which is not followed. Give the final address.", host)
	}
	if ctx.Err() != nil {
		e = core.Errf(core.KindUnavailable, "timeout", "%s did not answer in time. Try again later.", host)
	}
	e.Err = fmt.Errorf("fetch %s: %w", host, err)
	return e
}

// Check says whether an address may be written to at all, without connecting: it is
// https, or plain http at a listed host:port, and names its host plainly.
func (e *Egress) Check(address string) error {
	_, err := e.address(Request{Class: Notify, URL: address})
	return err
}
