package mcp

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/core"
)

// ServeStdio serves one desktop client over in and out, one JSON-RPC message a line,
// until in ends or ctx is done. Every call is made by principal. Nothing but messages is
// written to out.
func ServeStdio(ctx context.Context, deps Deps, principal core.Principal, in io.Reader, out io.Writer) error {
	if err := deps.check(); err != nil {
		return err
	}
	if principal.Kind == core.ActorKindAnonymous || principal.Kind == "" {
		return core.Errf(core.KindUnauthenticated, "unauthenticated", "Serving over standard input and output needs a principal: sign in or name a key.")
	}
	s := newSurface(deps, &principal)
	s.catalog.follow(deps.Registry)
	err := s.server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: stay{out}, MaxLineLength: MaxBody})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// stay keeps standard output open when the SDK closes its transport.
type stay struct{ io.Writer }

func (stay) Close() error { return nil }
