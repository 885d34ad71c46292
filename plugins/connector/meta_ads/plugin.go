// Package metaads is the catalog entry and setup guidance for Meta Ads. It declares
// the reads that a snapshot will use; it takes none yet and says so by its capability.
package metaads

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/sdk"
)

//go:embed manifest.json
var manifest []byte

// Plugin is the connector.
func Plugin() sdk.Plugin {
	var p sdk.Plugin
	if err := json.Unmarshal(manifest, &p.Manifest); err != nil {
		panic(fmt.Sprintf("meta_ads: manifest.json: %v", err))
	}
	return p
}
