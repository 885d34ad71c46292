// Package advariants is the skill that drafts ads for Google search and Meta from evidence, judges them by the policies
// of both, and says what a fair test of them would cost. It spends nothing.
package advariants

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

const version = "1.0.0"

// Plugin is the skill.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Manifest: schemas.Manifest{
			Name: "advariants", Kind: schemas.ManifestKindSkill, Version: version, Title: "Ad variants", Protocol: 1,
			Description: "Drafts ads for Google search and Meta from evidence with a test plan; spends nothing.",
			Needs:       schemas.Needs{Memory: []schemas.ManifestNeedsMemoryElem{schemas.ManifestNeedsMemoryElemRead}},
		},
		Tools: []sdk.Tool{{Document: schemas.MustTool("mkt_generate_ad_variants"), Run: run}},
	}
}

type input struct {
	BrandDNAID  string          `json:"brandDnaId"`
	BrandDNA    json.RawMessage `json:"brandDna"`
	RepoContext json.RawMessage `json:"repoContext"`
	Offer       struct {
		What  string `json:"what"`
		Price string `json:"price"`
		URL   string `json:"url"`
	} `json:"offer"`
	Platforms []string  `json:"platforms"`
	Audience  string    `json:"audience"`
	Keywords  []string  `json:"keywords"`
	Baseline  *baseline `json:"baseline"`
	MDE       float64   `json:"mde"`
	Alpha     float64   `json:"alpha"`
	Power     float64   `json:"power"`
	Variants  int       `json:"variants"`
	Regulated string    `json:"regulated"`
}

type output struct {
	*draft.Envelope
	Google   *googleAds `json:"google,omitempty"`
	Meta     []metaAd   `json:"meta"`
	Angles   []string   `json:"angles"`
	Policy   []finding  `json:"policy"`
	TestPlan testPlan   `json:"testPlan"`
	Because  []string   `json:"because"`
}

func run(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{Platforms: []string{"google", "meta"}, MDE: 0.2, Alpha: 0.05, Power: 0.8, Variants: 3}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	desk, err := brand.Prepare(ctx, c, brand.Order{BrandDNAID: in.BrandDNAID, BrandDNA: in.BrandDNA, RepoContext: in.RepoContext, Focus: in.Offer.What, Stated: stated(in)})
	if err != nil {
		return nil, err
	}
	if len(desk.Facts) < 2 {
		return nil, draft.NothingToSay("ads")
	}
	env := draft.NewEnvelope(c, version, draft.Deterministic, map[string]any{"offer": in.Offer, "platforms": in.Platforms, "variants": in.Variants})
	env.Evidence = draft.AllToSDK(desk.Items)
	env.BrandDNARef = desk.Ref()
	out := &output{Envelope: env, Meta: []metaAd{}, Angles: []string{}, Policy: []finding{}, Because: []string{}}
	w := &work{Desk: desk, in: in, out: out}
	for _, platform := range in.Platforms {
		write := w.google
		if platform == "meta" {
			write = w.meta
		}
		if err := write(ctx, c); err != nil {
			return nil, err
		}
	}
	out.TestPlan = plan(in, max(2, len(out.Meta)))
	if in.Regulated != "" {
		env.Gap("legal", "Has a lawyer seen these ads?", "Ads about "+in.Regulated+" fall under special rules; a person must look at them.")
	}
	env.Finish(c, fmt.Sprintf("%d sets of ads", len(env.Assets)))
	return out, nil
}

func stated(in input) []ground.Evidence {
	items := []ground.Evidence{{Kind: ground.UserStatement, Source: "caller", Locator: "offer.what", Quote: in.Offer.What, Trust: ground.OwnerStated}}
	if in.Offer.Price != "" {
		items = append(items, ground.Evidence{Kind: ground.UserStatement, Source: "caller", Locator: "ownerHints.price", Quote: in.Offer.What + " " + in.Offer.Price, Trust: ground.OwnerStated})
	}
	if in.Audience != "" {
		items = append(items, ground.Evidence{Kind: ground.UserStatement, Source: "caller", Locator: "targetCustomer", Quote: in.Audience, Trust: ground.OwnerStated})
	}
	for _, keyword := range in.Keywords {
		items = append(items, ground.Evidence{Kind: ground.UserStatement, Source: "caller", Locator: "ownerHints.keyword", Quote: keyword, Trust: ground.OwnerStated})
	}
	return items
}
