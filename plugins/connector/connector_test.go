// Package connector_test checks what holds for every connector of this repository.
package connector_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/plugins/connector/buffer"
	googleads "github.com/sallyport-dev/sallyport/plugins/connector/google_ads"
	analytics "github.com/sallyport-dev/sallyport/plugins/connector/google_analytics"
	searchconsole "github.com/sallyport-dev/sallyport/plugins/connector/google_search_console"
	metaads "github.com/sallyport-dev/sallyport/plugins/connector/meta_ads"
	"github.com/sallyport-dev/sallyport/plugins/connector/smtp"
	"github.com/sallyport-dev/sallyport/plugins/connector/webhook"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func all() []sdk.Plugin {
	return []sdk.Plugin{buffer.Plugin(), googleads.Plugin(), analytics.Plugin(), searchconsole.Plugin(), metaads.Plugin(), smtp.Plugin(), webhook.Plugin()}
}

func TestConnectorsConform(t *testing.T) {
	guidance, err := schemas.Resource("setup_guidance")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all() {
		t.Run(p.Manifest.Name, func(t *testing.T) {
			sdktest.Conform(t, p)
			info := p.Manifest.Connector
			raw, err := json.Marshal(info.Setup)
			if err != nil {
				t.Fatal(err)
			}
			if err := guidance.Validate(raw); err != nil {
				t.Errorf("setup guidance: %v", err)
			}
			for _, f := range p.Manifest.Needs.Credential.Fields {
				if f.Pattern == nil {
					t.Errorf("field %s has no pattern", f.Key)
				} else if _, err := regexp.Compile(*f.Pattern); err != nil {
					t.Errorf("field %s: %v", f.Key, err)
				}
			}
		})
	}
}

// TestCapabilitiesAreHonest holds the catalog to what works.
func TestCapabilitiesAreHonest(t *testing.T) {
	for _, p := range all() {
		info := p.Manifest.Connector
		has := func(effect schemas.Effect) bool {
			return slices.ContainsFunc(p.Tools, func(tool sdk.Tool) bool { return tool.Document.Effect == effect })
		}
		switch info.Capability {
		case schemas.ManifestConnectorCapabilityRealRead:
			if info.SnapshotTool == nil || !has(schemas.EffectRead) || has(schemas.EffectWrite) {
				t.Errorf("%s says real_read", p.Manifest.Name)
			}
		case schemas.ManifestConnectorCapabilityWrite:
			if !has(schemas.EffectWrite) {
				t.Errorf("%s says write and has no write tool", p.Manifest.Name)
			}
		case schemas.ManifestConnectorCapabilitySetupReady:
			if len(p.Tools) > 0 || info.SnapshotTool != nil || len(p.Manifest.Needs.Endpoints) > 0 {
				t.Errorf("%s says setup_ready and has tools or endpoints", p.Manifest.Name)
			}
		}
		for _, e := range p.Manifest.Needs.Endpoints {
			if e.Method != nil && *e.Method == schemas.ManifestNeedsEndpointsElemMethodPOST && e.Class == schemas.ClassRead && (e.ReadPost == nil || len(e.BodySchema) == 0) {
				t.Errorf("%s: %s reads by POST without consent or body schema", p.Manifest.Name, e.ID)
			}
			if strings.Contains(e.Host, "*") {
				t.Errorf("%s: %s has a wildcard host", p.Manifest.Name, e.ID)
			}
		}
	}
}
