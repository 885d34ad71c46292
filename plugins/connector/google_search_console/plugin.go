// Package searchconsole reads Google Search Console: totals, top queries and pages, near
// wins and sitemap errors of one site. It only reads.
package searchconsole

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
)

//go:embed manifest.json
var manifest []byte

// Plugin is the connector.
func Plugin() sdk.Plugin {
	p := sdk.Plugin{Tools: []sdk.Tool{{Document: schemas.MustTool("google_search_console_snapshot"), Run: snapshot}}}
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		panic(fmt.Sprintf("google_search_console: manifest.json: %v", err))
	}
	return p
}
