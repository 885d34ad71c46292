// Package webhook is the connector to any HTTPS address the owner typed: it compiles one
// JSON message that core signs by the Standard Webhooks rules and posts after approval.
package webhook

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

//go:embed manifest.json
var manifest []byte

// Plugin is the connector.
func Plugin() sdk.Plugin {
	p := sdk.Plugin{Tools: []sdk.Tool{{Document: schemas.MustTool("webhook_post"), Compile: compile}}}
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		panic(fmt.Sprintf("webhook: manifest.json: %v", err))
	}
	return p
}

type input struct {
	Connection string          `json:"connection"`
	Type       string          `json:"type"`
	Data       json.RawMessage `json:"data"`
}

// compile seals the body. The message carries no time of its own: webhook-timestamp is
// added by core when it signs, and webhook-id is the action id on every try.
func compile(_ context.Context, c *sdk.Call) (*effect.Sealed, error) {
	var in input
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := json.Compact(&data, in.Data); err != nil {
		return nil, &sdk.Failure{Code: "invalid_input", Message: "data is not JSON.", Fields: []sdk.FieldError{{Pointer: "/data", Message: "is not JSON"}}}
	}
	kind, err := json.Marshal(in.Type)
	if err != nil {
		return nil, err
	}
	body := fmt.Appendf(nil, `{"type":%s,"data":%s}`, kind, data.Bytes())
	label := in.Connection
	if c.Connection != nil && c.Connection.Name == in.Connection && c.Connection.Account != "" {
		label = in.Connection + " (" + c.Connection.Account + ")"
	}
	return &effect.Sealed{
		Kind:        "webhook.post",
		Explanation: fmt.Sprintf("One %s message to the connected address %s.", in.Type, in.Connection),
		Target:      effect.Target{AccountID: in.Connection, Label: label},
		Connection:  in.Connection,
		Reach:       1,
		Steps: []effect.Step{{
			Endpoint: "webhook.post",
			HTTP: &effect.HTTPStep{
				Headers: []effect.Pair{{Name: "Content-Type", Value: "application/json"}},
				Body:    body,
			},
		}},
	}, nil
}
