package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// client speaks to a running host.
type client struct {
	base, token string
	http        *http.Client
}

// client reaches the host that --server, SALLYPORT_SERVER or the base URL names, with the
// token of SALLYPORT_TOKEN or SALLYPORT_TOKEN_FILE.
func (a *app) client() (*client, error) {
	base := a.serverURL
	if base == "" {
		base = a.getenv("SALLYPORT_SERVER")
	}
	if base == "" {
		cfg, _, err := a.config()
		if err != nil {
			return nil, err
		}
		base = "http://" + cfg.Addr
	}
	token := a.getenv("SALLYPORT_TOKEN")
	if path := a.getenv("SALLYPORT_TOKEN_FILE"); token == "" && path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(b))
	}
	if token == "" {
		return nil, &exitError{exitAuth, errors.New("no token: set SALLYPORT_TOKEN, for example to the output of `sallyport token create --email YOU`")}
	}
	return &client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{Timeout: 90 * time.Second}}, nil
}

// do sends a request and decodes the answer into out; a problem document becomes a core.Error.
func (c *client) do(ctx context.Context, method, path string, body, out any, header ...string) error {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &exitError{exitUnreachable, fmt.Errorf("no host answers at %s (start one with `sallyport serve`): %w", c.base, err)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 32<<20))
	if err != nil {
		return &exitError{exitUnreachable, err}
	}
	if resp.StatusCode >= 400 {
		return problem(resp.StatusCode, b)
	}
	if out == nil || len(b) == 0 {
		return nil
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = b
		return nil
	}
	return json.Unmarshal(b, out)
}

func problem(status int, body []byte) error {
	var p core.Problem
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return fmt.Errorf("the host answered %d: %s", status, strings.TrimSpace(string(body[:min(len(body), 300)])))
	}
	e := &core.Error{Kind: kindOf(status), Code: p.Code, Detail: p.Title, Fields: p.Errors}
	if p.Detail != nil {
		e.Detail = *p.Detail
	}
	if p.ReviewURL != nil {
		e.ReviewURL = *p.ReviewURL
	}
	if p.CurrentDigest != nil {
		e.CurrentDigest = *p.CurrentDigest
	}
	return e
}

func kindOf(status int) core.ErrorKind {
	for _, k := range []core.ErrorKind{core.KindMalformed, core.KindUnauthenticated, core.KindForbidden, core.KindNotFound, core.KindConflict,
		core.KindGone, core.KindPrecondition, core.KindTooLarge, core.KindUnsupported, core.KindInvalid, core.KindUnseen, core.KindRateLimited, core.KindUnavailable} {
		if k.Status() == status {
			return k
		}
	}
	return core.KindInternal
}

// query builds a query string from pairs, leaving out empty values.
func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}
