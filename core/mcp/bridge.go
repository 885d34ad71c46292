package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/mcp/router"
)

// Bridge carries one desktop client's messages to a host that is running already: two
// hosts on one data directory are refused, and the host that runs has the review page.
type Bridge struct {
	// URL is the address of the MCP endpoint, Key the key its calls are made with.
	URL, Key string
	// Client makes the requests; it must not time out, since one of them is a stream.
	Client *http.Client
	Log    *slog.Logger

	mu       sync.Mutex // guards out, session and revision
	out      io.Writer
	session  string
	revision string
}

// maxParallel bounds the messages under way at once.
const maxParallel = 16

// Serve reads messages from in, one a line, and writes answers to out, until in ends or
// ctx is done. A message that cannot be delivered is answered with an error; Serve itself
// fails only when out cannot be written or a line is too long.
func (b *Bridge) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b.out = out
	if b.Log == nil {
		b.Log = slog.New(slog.DiscardHandler)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, MaxBody)
	slots := make(chan struct{}, maxParallel)
	var under, streams sync.WaitGroup
	for lines.Scan() && ctx.Err() == nil {
		line := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
		if len(line) == 0 {
			continue
		}
		body, err := router.Peek(line)
		if err != nil {
			b.write(cancel, rpcError{JSONRPC: "2.0", Error: rpcErrorBody{Code: -32700, Message: err.Error()}})
			continue
		}
		if body.Has("initialize") || body.Has("notifications/initialized") { // what follows depends on it
			b.deliver(ctx, cancel, line, body)
			if body.Has("notifications/initialized") && b.session != "" {
				streams.Go(func() { b.listen(ctx, cancel) })
			}
			continue
		}
		slots <- struct{}{}
		under.Go(func() {
			defer func() { <-slots }()
			b.deliver(ctx, cancel, line, body)
		})
	}
	under.Wait()
	b.leave(context.WithoutCancel(ctx))
	err := errors.Join(lines.Err(), context.Cause(ctx))
	cancel(nil)
	streams.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// deliver posts one message and passes on what comes back.
func (b *Bridge) deliver(ctx context.Context, cancel context.CancelCauseFunc, line []byte, body router.Body) {
	only, _ := body.Only()
	fail := func(e *core.Error) {
		if only.IsCall() {
			p := problemOf(e, strings.TrimSuffix(b.URL, "/mcp"), "")
			b.write(cancel, rpcError{JSONRPC: "2.0", ID: only.ID.Raw(), Error: rpcErrorBody{Code: codeOf(e), Message: e.Detail, Data: p}})
			return
		}
		b.Log.Error("message not delivered", "method", only.Method, "error", e)
	}
	req, err := b.request(ctx, http.MethodPost, bytes.NewReader(line))
	if err != nil {
		fail(core.AsError(err))
		return
	}
	b.describe(req.Header, only)
	res, err := b.Client.Do(req)
	if err != nil {
		fail(core.Errf(core.KindUnavailable, "host_unreachable", "The host at %s does not answer (%v). Start it with sallyport serve.", b.URL, err))
		return
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		b.mu.Lock()
		b.session = id
		b.mu.Unlock()
	}
	switch kind := res.Header.Get("Content-Type"); {
	case res.StatusCode == http.StatusAccepted:
	case strings.HasPrefix(kind, "text/event-stream"):
		b.pass(cancel, res.Body, only)
	case strings.HasPrefix(kind, "application/json"):
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			fail(core.Errf(core.KindUnavailable, "host_unreachable", "The answer of the host broke off: %v.", err))
			return
		}
		b.hand(cancel, answer, only)
	default:
		fail(refusal(res))
	}
}

// refusal is the problem document of a refused request as an error.
func refusal(res *http.Response) *core.Error {
	var p core.Problem
	if err := json.NewDecoder(io.LimitReader(res.Body, MaxBody)).Decode(&p); err != nil || p.Code == "" {
		return core.Errf(core.KindUnavailable, "host_refused", "The host answered with status %d.", res.StatusCode)
	}
	e := core.Errf(core.KindForbidden, p.Code, "%s", value(p.Detail))
	if p.Status == http.StatusUnauthorized {
		e.Kind = core.KindUnauthenticated
	}
	return e
}

func codeOf(e *core.Error) int {
	if e.Kind == core.KindUnauthenticated {
		return codeUnauthenticated
	}
	return -32603
}

// listen passes on what the host says by itself, such as changed lists.
func (b *Bridge) listen(ctx context.Context, cancel context.CancelCauseFunc) {
	req, err := b.request(ctx, http.MethodGet, nil)
	if err != nil {
		return
	}
	res, err := b.Client.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		b.pass(cancel, res.Body, router.Message{})
	}
}

// leave ends the session at the host.
func (b *Bridge) leave(ctx context.Context) {
	if b.session == "" {
		return
	}
	req, err := b.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	if res, err := b.Client.Do(req); err == nil {
		_ = res.Body.Close()
	}
}

func (b *Bridge) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.URL, body)
	if err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+b.Key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != "" {
		req.Header.Set("Mcp-Session-Id", b.session)
	}
	if b.revision != "" {
		req.Header.Set("Mcp-Protocol-Version", b.revision)
	}
	return req, nil
}

// describe repeats in the headers what HTTP wants there and pipes do not: from 2026-07-28
// on each message names its revision and itself.
func (b *Bridge) describe(h http.Header, m router.Message) {
	var p struct {
		Name string         `json:"name"`
		URI  string         `json:"uri"`
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	revision, _ := p.Meta["io.modelcontextprotocol/protocolVersion"].(string)
	if revision < router.Revision20260728 {
		return
	}
	h.Del("Mcp-Session-Id")
	h.Set("Mcp-Protocol-Version", revision)
	h.Set("Mcp-Method", m.Method)
	switch m.Method {
	case "tools/call", "prompts/get":
		h.Set("Mcp-Name", p.Name)
	case "resources/read":
		h.Set("Mcp-Name", p.URI)
	}
}

// pass writes the messages of an event stream as they come.
func (b *Bridge) pass(cancel context.CancelCauseFunc, stream io.Reader, asked router.Message) {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: ")); ok {
			b.hand(cancel, data, asked)
		}
		if err != nil {
			return
		}
	}
}

// hand writes one message to the client, and learns the negotiated revision on its way.
func (b *Bridge) hand(cancel context.CancelCauseFunc, message []byte, asked router.Message) {
	if asked.Method == "initialize" {
		var m struct {
			Result struct{ ProtocolVersion string } `json:"result"`
		}
		if json.Unmarshal(message, &m) == nil {
			b.mu.Lock()
			b.revision = m.Result.ProtocolVersion
			b.mu.Unlock()
		}
	}
	b.write(cancel, json.RawMessage(message))
}

// write puts one line out; json.Marshal also takes line breaks out of a raw message.
func (b *Bridge) write(cancel context.CancelCauseFunc, v any) {
	line, err := json.Marshal(v)
	if err != nil {
		b.Log.Error("the host sent something that is not JSON", "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.out.Write(append(line, '\n')); err != nil {
		cancel(fmt.Errorf("bridge: the client is gone: %w", err))
	}
}
