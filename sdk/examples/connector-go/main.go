// Command connector-go is a complete connector: it reads notes through a read endpoint
// and compiles a request that adds one. It holds no credential and has no network; core
// signs and sends.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"strconv"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

//go:embed plugin.json
var manifest []byte

func main() { sdk.Serve(Plugin()) }

// Plugin is the connector.
func Plugin() sdk.Plugin {
	return sdk.Define(manifest, sdk.Handlers{
		Run:     map[string]func(context.Context, *sdk.Call) (any, error){"notes_list": list},
		Compile: map[string]func(context.Context, *sdk.Call) (*effect.Sealed, error){"notes_add": add},
	})
}

type note struct {
	Title string `json:"title"`
	Text  string `json:"text,omitempty"`
}

// list reads through the endpoint notes.list. Core adds the token, stores the reply as
// evidence and returns its id.
func list(ctx context.Context, c *sdk.Call) (any, error) {
	in := struct{ Limit int }{Limit: 20}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	reply, err := c.Host.Fetch(ctx, sdk.FetchRequest{Endpoint: "notes.list", Query: []sdk.Pair{{Name: "limit", Value: strconv.Itoa(in.Limit)}}})
	if err != nil {
		return nil, err
	}
	notes := []note{}
	if err := json.Unmarshal(reply.Body, &notes); reply.Status != 200 || err != nil {
		return nil, sdk.Fail("unexpected_answer", "The notes server answered with status %d and no list of notes.", reply.Status)
	}
	return map[string]any{"notes": notes, "evidenceId": reply.EvidenceID}, nil
}

// add compiles: the same input and action id give the same bytes. The action id travels
// as the idempotency key, so that the server can tell a repeated request.
func add(_ context.Context, c *sdk.Call) (*effect.Sealed, error) {
	var in note
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return &effect.Sealed{
		Kind:   "note.add",
		Target: effect.Target{AccountID: "notes", Label: "the connected notes server"},
		Steps: []effect.Step{{
			Endpoint: "notes.add",
			HTTP:     &effect.HTTPStep{Headers: []effect.Pair{{Name: "Content-Type", Value: "application/json"}}, Body: body, IdempotencyHeader: "Idempotency-Key"},
			Success:  effect.Success{Statuses: []int{201}},
			Result:   effect.Result{IDPointer: "/id", URLPointer: "/url"},
		}},
	}, nil
}
