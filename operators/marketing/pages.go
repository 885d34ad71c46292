package marketing

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// landing lets the skill draft a page and stages it as work by hand.
func (d *diagnosis) landing(ctx context.Context) {
	k := d.k
	input := map[string]any{"product": map[string]any{"name": draft.Clip(k.desk.Brand, 80), "what": draft.Clip(k.whatItIs(), 600)}, "repoContext": k.raw}
	if k.env.BrandDNARef != "" {
		input["brandDnaId"] = k.env.BrandDNARef
	}
	if d.in.URL != "" {
		input["product"].(map[string]any)["url"] = d.in.URL
	}
	var out struct {
		skillAnswer
		Page struct {
			Markdown string `json:"markdown"`
		} `json:"page"`
	}
	if k.skill(ctx, toolLanding, "the page people land on", input, &out) != nil || len(out.Assets) == 0 {
		return
	}
	k.adopt(out.skillAnswer)
	if a := out.Assets[0]; a.Publishable && !k.in.DryRun {
		if err := k.proposeByHand(ctx, "landing", "Put the landing copy on the page", out.Page.Markdown, nil, a, []string{}); err != nil {
			k.env.Warn("The landing copy was not staged: %s", messageOf(err))
		}
	}
}

// ads lets the skill draft ads and stages each set as work by hand: no connection of this installation changes an account.
func (d *diagnosis) ads(ctx context.Context) {
	k := d.k
	if k.link == "" {
		k.env.Gap("url", "Where do the ads lead?", "An ad without a page to land on is not drafted.")
		return
	}
	input := map[string]any{"offer": map[string]any{"what": draft.Clip(k.whatItIs(), 600), "url": k.link}, "repoContext": k.raw}
	if k.env.BrandDNARef != "" {
		input["brandDnaId"] = k.env.BrandDNARef
	}
	var out skillAnswer
	if k.skill(ctx, toolAds, "ads with a plan to test them", input, &out) != nil {
		return
	}
	k.adopt(out)
	for _, a := range out.Assets {
		if !a.Publishable || k.in.DryRun {
			continue
		}
		var lines []string
		for _, s := range a.Slots {
			lines = append(lines, s.Path+": "+s.Text)
		}
		title := "Create the ad in " + channelTitle(a.Channel) + " by hand"
		if err := k.proposeByHand(ctx, a.Channel, title, strings.Join(lines, "\n"), []handField{{"address", k.link}}, a, []string{}); err != nil {
			k.env.Warn("The ad was not staged: %s", messageOf(err))
		}
	}
}

// whatItIs is what the product is, in the brand's own words.
func (k *campaign) whatItIs() string {
	id := k.desk.DNA().Identity
	for _, s := range []string{id.Description, id.Tagline, k.repo.WhatChanged} {
		if s != "" {
			return s
		}
	}
	return k.desk.Brand
}
