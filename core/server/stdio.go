package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/mcp"
)

// StdioOptions say how MCP is served over standard input and output.
type StdioOptions struct {
	Options
	In  io.Reader
	Out io.Writer
	// Key is an API key. Without one the first owner's agent speaks, which is only
	// possible where this process opens the data itself.
	Key string
	// Server is the address of a running host; the one on this machine when empty.
	Server string
	// Email is the person on whose behalf an agent without key speaks.
	Email string
}

// ServeStdio serves a desktop client. Where a host already holds the data, or one is
// named, it carries the messages there with the key; else it is a host itself, with
// the loopback listener that the review page needs.
func ServeStdio(ctx context.Context, cfg Config, o StdioOptions) error {
	if o.Server != "" {
		return bridge(ctx, o.Server, o)
	}
	c, err := Open(ctx, cfg, o.Log, o.Getenv)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	release, err := c.DB.LockHost(ctx)
	if e := core.AsError(err); err != nil && e.Code == "host_running" {
		return bridge(ctx, "http://"+cfg.Addr, o)
	}
	if err != nil {
		return err
	}
	defer release()
	p, err := c.stdioPrincipal(ctx, o)
	if err != nil {
		return err
	}
	s, err := New(ctx, c, o.Options)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	listening := make(chan error, 1)
	go func() { listening <- s.listen(ctx, ln) }()
	o.Say("review pages: %s", cfg.BaseURL)
	err = mcp.ServeStdio(ctx, mcp.Deps{Dispatcher: s.Dispatcher, Registry: s.Registry, Auth: s.Auth, Runs: s.Runs, BaseURL: cfg.BaseURL, Version: Version, Clock: s.Clock, Log: s.Log}, p, o.In, o.Out)
	cancel()
	return errors.Join(err, <-listening)
}

// stdioPrincipal is who speaks: the key's principal, else an agent of a person of this
// machine. An agent drafts and never decides.
func (c *Core) stdioPrincipal(ctx context.Context, o StdioOptions) (core.Principal, error) {
	if o.Key != "" {
		return c.Auth.FromKey(ctx, o.Key)
	}
	person, err := c.Auth.OnThisMachine(ctx, o.Email)
	if err != nil {
		return core.Principal{}, err
	}
	return core.Principal{Kind: core.ActorKindKey, ID: "stdio", Label: "desktop client of " + person.Label, WorkspaceID: person.WorkspaceID, KeyKind: core.APIKeyKindAgent,
		OnBehalfOf: person.ID, Scopes: core.ScopesOfKey(core.APIKeyKindAgent), Client: "stdio"}, nil
}

func bridge(ctx context.Context, address string, o StdioOptions) error {
	if o.Key == "" {
		return core.Errf(core.KindUnauthenticated, "key_missing", "A host already runs at %s. Put a key into SALLYPORT_KEY to speak to it: sallyport key create --name desktop --kind agent", address)
	}
	return (&mcp.Bridge{URL: address + "/mcp", Key: o.Key, Client: &http.Client{Timeout: 0, Transport: &http.Transport{ResponseHeaderTimeout: 2 * time.Minute}}, Log: o.Log}).Serve(ctx, o.In, o.Out)
}
