// Package sdk is what authors of operators, skills and connectors build on. A plugin is
// a manifest plus tools: draft and read tools answer with data, write tools compile a
// sealed effect that core sends after a person approved it.
package sdk

import (
	"context"

	"github.com/hashicorp/go-hclog"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"

	"encoding/json"
	"time"
)

// Plugin is one plugin: Serve runs it in its process, sdktest runs it in a test.
type Plugin struct {
	// Manifest says what the plugin is and needs. Its Tools are filled from Tools.
	Manifest schemas.Manifest
	Tools    []Tool
	// Configure receives the configuration of the catalog entry, once; may be nil.
	Configure func(ctx context.Context, config json.RawMessage) error
}

// Tool is a tool document with its handler. Exactly one of Run and Compile is set, as
// the effect of the document says.
type Tool struct {
	// Document is the tool document; schemas.MustTool reads one of this repository.
	Document schemas.ToolDocument
	// Run answers a draft or read tool. The answer is checked against the output schema.
	Run func(ctx context.Context, c *Call) (any, error)
	// Compile answers a write tool. It must be a pure function of the call: it has no Host.
	Compile func(ctx context.Context, c *Call) (*effect.Sealed, error)
}

// Call is one call of a tool.
type Call struct {
	Tool        string
	ID          string // call id, for logs
	Input       json.RawMessage
	WorkspaceID string
	RunID       string // empty outside a run
	ReviewURL   string
	// ActionID is the idempotency key and marker; only for write tools.
	ActionID string
	// Now is the host's time of the call. Use it instead of the clock, so that runs repeat.
	Now time.Time
	// Connection is the public part of the connection; only for connectors.
	Connection *Connection
	// Answers are the caller's answers to an earlier Ask; nil at the first try.
	Answers json.RawMessage
	// Host is nil for write tools.
	Host Host
	Log  hclog.Logger

	progress func(done, total float64, message string)
}

// Bind decodes the input into v, refusing unknown fields.
func (c *Call) Bind(v any) error { return bind(c.Input, v) }

// Progress tells the caller how far the call is; total 0 means unknown.
func (c *Call) Progress(done, total float64, message string) {
	if c.progress != nil {
		c.progress(done, total, message)
	}
}
