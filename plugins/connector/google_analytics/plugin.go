// Package analytics reads Google Analytics 4: sessions, engagement, key events and
// revenue of one property. It only reads.
package analytics

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
	p := sdk.Plugin{Tools: []sdk.Tool{{Document: schemas.MustTool("google_analytics_snapshot"), Run: snapshot}}}
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		panic(fmt.Sprintf("google_analytics: manifest.json: %v", err))
	}
	return p
}
