// Command skill-go is a complete skill: it stores what the caller stated as evidence,
// drafts one headline from it and stores the draft with its claim.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/sdk"
)

//go:embed plugin.json
var manifest []byte

func main() { sdk.Serve(Plugin()) }

// Plugin is the skill.
func Plugin() sdk.Plugin {
	return sdk.Define(manifest, sdk.Handlers{
		Run: map[string]func(context.Context, *sdk.Call) (any, error){"demo_draft_headline": draft},
	})
}

// maxHeadline is the longest headline in characters.
const maxHeadline = 70

func draft(ctx context.Context, c *sdk.Call) (any, error) {
	var in struct {
		Product string   `json:"product"`
		Facts   []string `json:"facts"`
	}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	var items []sdk.Evidence
	for i, fact := range in.Facts {
		items = append(items, sdk.Evidence{Source: "caller", Kind: "user_statement", Locator: fmt.Sprintf("/facts/%d", i), Quote: fact, Trust: "owner_stated"})
	}
	evidence, err := c.Host.SaveEvidence(ctx, items)
	if err != nil {
		return nil, err
	}
	for i, fact := range in.Facts {
		headline := in.Product + ": " + strings.TrimRight(fact, ". ")
		if utf8.RuneCountInString(headline) > maxHeadline {
			continue
		}
		ref, err := c.Host.SaveAsset(ctx, sdk.Asset{
			Kind: "headline", Skill: "demo_draft_headline", Channel: "web", Title: headline, Locale: "en", Origin: "deterministic",
			Content: map[string]any{"headline": headline},
			Claims:  []sdk.Claim{{Text: fact, Verdict: "supported", Support: 1, EvidenceIDs: []string{evidence[i].ID}}},
			Checks:  []sdk.Check{{Rule: "length", OK: true, Severity: "block", Detail: fmt.Sprintf("at most %d characters", maxHeadline)}},
		})
		if err != nil {
			return nil, err
		}
		return map[string]any{"headline": headline, "assetId": ref.ID, "evidenceIds": []string{evidence[i].ID}}, nil
	}
	failure := sdk.Fail("insufficient_evidence", "No fact fits a headline of %d characters.", maxHeadline)
	failure.WhatWouldHelp = []string{"State one fact in fewer words."}
	return nil, failure
}
