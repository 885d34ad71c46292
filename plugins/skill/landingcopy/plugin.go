// Package landingcopy is the skill that drafts the copy of a landing page from evidence.
package landingcopy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

const version = "1.0.0"

// Plugin is the skill.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Manifest: schemas.Manifest{
			Name: "landingcopy", Kind: schemas.ManifestKindSkill, Version: version, Title: "Landing copy", Protocol: 1,
			Description: "Drafts the copy of a landing page from evidence; publishes nothing.",
			Needs:       schemas.Needs{Memory: []schemas.ManifestNeedsMemoryElem{schemas.ManifestNeedsMemoryElemRead}},
		},
		Tools: []sdk.Tool{{Document: schemas.MustTool("mkt_generate_landing_copy"), Run: run}},
	}
}

type input struct {
	BrandDNAID string          `json:"brandDnaId"`
	BrandDNA   json.RawMessage `json:"brandDna"`
	Product    struct {
		Name string `json:"name"`
		What string `json:"what"`
		URL  string `json:"url"`
	} `json:"product"`
	Audience      string          `json:"audience"`
	PrimaryAction string          `json:"primaryAction"`
	RepoContext   json.RawMessage `json:"repoContext"`
	TrafficSource string          `json:"trafficSource"`
	Sections      []string        `json:"sections"`
	Mode          string          `json:"mode"`
	Drafts        struct {
		Sections []givenSection `json:"sections"`
	} `json:"drafts"`
}

type givenSection struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

type output struct {
	*draft.Envelope
	Page         page     `json:"page"`
	MessageMatch *float64 `json:"messageMatch,omitempty"`
	Grade        float64  `json:"grade"`
}

func run(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{PrimaryAction: "signup"}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	mode, err := draft.ModeOf(in.Mode, len(in.Drafts.Sections) > 0)
	if err != nil {
		return nil, err
	}
	desk, err := brand.Prepare(ctx, c, brand.Order{
		BrandDNAID: in.BrandDNAID, BrandDNA: in.BrandDNA, RepoContext: in.RepoContext, Focus: in.TrafficSource, Name: in.Product.Name, Stated: stated(in),
	})
	if err != nil {
		return nil, err
	}
	env := draft.NewEnvelope(c, version, mode, map[string]any{"product": in.Product, "primaryAction": in.PrimaryAction, "trafficSource": in.TrafficSource})
	env.Evidence = draft.AllToSDK(desk.Items)
	env.BrandDNARef = desk.Ref()
	w := &work{Desk: desk, in: in, env: env}
	out := &output{Envelope: env}
	if mode == draft.Caller {
		out.Page = w.given()
	} else if out.Page, err = w.write(); err != nil {
		return nil, err
	}
	checked := w.judge(&out.Page, out)
	view, err := env.Store(ctx, c, sdk.Asset{Kind: "landing_copy", Channel: "web", Title: "Landing page of " + w.Brand, Origin: mode}, checked, map[string]any{"page": out.Page})
	if err != nil {
		return nil, err
	}
	env.Finish(c, "the copy of a landing page ("+view.Title+")")
	return out, nil
}

func stated(in input) []ground.Evidence {
	items := []ground.Evidence{{Kind: ground.UserStatement, Source: "caller", Locator: "product.what", Quote: in.Product.What, Trust: ground.OwnerStated}}
	if in.Audience != "" {
		items = append(items, ground.Evidence{Kind: ground.UserStatement, Source: "caller", Locator: "targetCustomer", Quote: in.Audience, Trust: ground.OwnerStated})
	}
	return items
}

// judge checks the page as a whole and in its parts.
func (w *work) judge(p *page, out *output) draft.Checked {
	slots := p.slots()
	checked := draft.Checker{Index: w.Index}.Check(slots, nil)
	if p.Hero.CTA == nil {
		checked.Add("landing.cta.route", false, draft.Block, "no page for “"+w.in.PrimaryAction+"” was found in the site or the repository, so the page has no link")
	} else {
		checked.Add("landing.cta.route", true, draft.Info, "leads to "+p.Hero.CTA.Href)
	}
	hero := p.Hero.Headline + " " + p.Hero.Sub
	if category := w.DNA().Identity.Category; category != "" {
		named := text.StemOverlap(category, hero) > 0 || text.Cosine(category, hero) > 0
		checked.Add("landing.whatisit", named, draft.Warn, fmt.Sprintf("the hero should name what it is (%s)", category))
	}
	if w.in.TrafficSource != "" {
		match := text.Cosine(w.in.TrafficSource, hero)
		out.MessageMatch = &match
		checked.Add("landing.messagematch", match >= 0.4, draft.Warn, fmt.Sprintf("the hero is %.2f like the ad or query that leads here; 0.40 keeps the promise", match))
	}
	var all []string
	for _, slot := range slots {
		all = append(all, slot.Text)
	}
	out.Grade = text.Grade(strings.Join(all, "\n"))
	if out.Grade > 10 {
		checked.Add("landing.grade", false, draft.Warn, fmt.Sprintf("reads at school grade %.0f; 10 is easy for most readers", out.Grade))
	}
	return checked
}

// wants tells whether a section was asked for; no list asks for all.
func (w *work) wants(section string) bool {
	return len(w.in.Sections) == 0 || slices.Contains(w.in.Sections, section)
}
