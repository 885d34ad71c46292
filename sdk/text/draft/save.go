package draft

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// maxItems bounds the evidence of one call; what comes later is left out and counted by the caller.
const maxItems = 400

// SaveEvidence stores items with the host and returns them as the host knows them: with its ids, and with the trust that
// it can vouch for. The answer holds each item once.
func SaveEvidence(ctx context.Context, c *sdk.Call, items []ground.Evidence) ([]ground.Evidence, error) {
	table := ground.NewTable(c.RunID, c.Now.UTC().Format(time.RFC3339))
	for _, item := range items[:min(len(items), maxItems)] {
		table.Add(item)
	}
	if table.Len() == 0 {
		return nil, nil
	}
	send := make([]sdk.Evidence, 0, table.Len())
	for _, item := range table.Items() {
		send = append(send, ToSDK(item))
	}
	stored, err := c.Host.SaveEvidence(ctx, send)
	if err != nil {
		return nil, err
	}
	out := make([]ground.Evidence, 0, len(stored))
	for _, item := range stored {
		out = append(out, FromSDK(item))
	}
	return out, nil
}

// ToSDK is the item in the form of the plugin interface, without id and digest, which the host sets.
func ToSDK(e ground.Evidence) sdk.Evidence {
	out := sdk.Evidence{
		ID: e.ID, Source: e.Source, Kind: e.Kind, Locator: e.Locator, Fact: e.Fact, Unit: e.Unit, Period: e.Period,
		URL: e.URL, Quote: e.Quote, Trust: e.Trust, FetchID: e.FetchID, Digest: e.Digest, RunID: e.RunID,
	}
	if e.Value != nil {
		out.Value = *e.Value
	}
	if at, err := time.Parse(time.RFC3339, e.CapturedAt); err == nil {
		out.CapturedAt = at
	}
	if until, err := time.Parse(time.RFC3339, e.FreshUntil); err == nil {
		out.FreshUntil = &until
	}
	return out
}

// FromSDK is the reverse of ToSDK.
func FromSDK(e sdk.Evidence) ground.Evidence {
	out := ground.Evidence{
		ID: e.ID, RunID: e.RunID, Source: e.Source, Kind: e.Kind, Locator: e.Locator, Fact: e.Fact, Unit: e.Unit, Period: e.Period,
		URL: e.URL, Quote: e.Quote, Trust: e.Trust, Digest: e.Digest,
	}
	if value, ok := e.Value.(float64); ok {
		out.Value = &value
	}
	if !e.CapturedAt.IsZero() {
		out.CapturedAt = e.CapturedAt.UTC().Format(time.RFC3339)
	}
	if e.FreshUntil != nil {
		out.FreshUntil = e.FreshUntil.UTC().Format(time.RFC3339)
	}
	return out
}

// AllToSDK is ToSDK for a list.
func AllToSDK(items []ground.Evidence) []sdk.Evidence {
	out := make([]sdk.Evidence, 0, len(items))
	for _, item := range items {
		out = append(out, ToSDK(item))
	}
	return out
}

// Union joins lists of stored evidence, each item once.
func Union(lists ...[]ground.Evidence) []ground.Evidence {
	var out []ground.Evidence
	seen := map[string]bool{}
	for _, list := range lists {
		for _, item := range list {
			if !seen[item.ID] {
				seen[item.ID] = true
				out = append(out, item)
			}
		}
	}
	return out
}
