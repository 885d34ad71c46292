// Command echo is the smallest useful plugin, for measurements: one read tool that
// answers with the padding it was asked for.
package main

import (
	"context"
	_ "embed"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
)

//go:embed plugin.json
var manifest []byte

func main() {
	sdk.Serve(sdk.Define(manifest, sdk.Handlers{Run: map[string]func(context.Context, *sdk.Call) (any, error){
		"bench_echo": func(_ context.Context, c *sdk.Call) (any, error) {
			var in struct {
				Text string `json:"text"`
				Size int    `json:"size"`
			}
			if err := c.Bind(&in); err != nil {
				return nil, err
			}
			return map[string]any{"length": len(in.Text), "text": strings.Repeat("x", in.Size)}, nil
		},
	}}))
}
