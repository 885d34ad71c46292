// Package socialposts is the skill that drafts posts for X, LinkedIn and Instagram from evidence.
package socialposts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

const version = "1.0.0"

// Plugin is the skill.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Manifest: schemas.Manifest{
			Name: "socialposts", Kind: schemas.ManifestKindSkill, Version: version, Title: "Social posts", Protocol: 1,
			Description: "Drafts posts for X, LinkedIn and Instagram from evidence; posts nothing.",
			Needs:       schemas.Needs{Memory: []schemas.ManifestNeedsMemoryElem{schemas.ManifestNeedsMemoryElemRead}},
		},
		Tools: []sdk.Tool{{Document: schemas.MustTool("mkt_generate_social_posts"), Run: run}},
	}
}

type input struct {
	BrandDNAID    string          `json:"brandDnaId"`
	BrandDNA      json.RawMessage `json:"brandDna"`
	Topic         string          `json:"topic"`
	RepoContext   json.RawMessage `json:"repoContext"`
	Platforms     []string        `json:"platforms"`
	PerPlatform   int             `json:"perPlatform"`
	Goal          string          `json:"goal"`
	Link          string          `json:"link"`
	CampaignStart string          `json:"campaignStart"`
	Timezone      string          `json:"timezone"`
	Mode          string          `json:"mode"`
	Drafts        struct {
		Posts []givenPost `json:"posts"`
	} `json:"drafts"`
}

type givenPost struct {
	Platform   string          `json:"platform"`
	Body       string          `json:"body"`
	Hashtags   []string        `json:"hashtags"`
	MediaBrief json.RawMessage `json:"mediaBrief"`
}

type output struct {
	*draft.Envelope
	Posts     []post    `json:"posts"`
	Cadence   cadence   `json:"cadence"`
	Requested int       `json:"requested"`
	Produced  int       `json:"produced"`
	Because   []string  `json:"because"`
	Dropped   []dropped `json:"dropped"`
}

type cadence struct {
	PerWeek int      `json:"perWeek"`
	Days    []string `json:"days"`
	Basis   string   `json:"basis"`
}

type dropped struct {
	Platform string `json:"platform"`
	Reason   string `json:"reason"`
}

// work is what one call writes from.
type work struct {
	*brand.Desk
	in       input
	link     string // where posts lead; empty when no route is known
	label    string // what the link says
	campaign string
	tags     []string
}

func run(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{PerPlatform: 3, Goal: "signup", Timezone: "UTC", Platforms: []string{"x", "linkedin", "instagram"}}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	mode, err := draft.ModeOf(in.Mode, len(in.Drafts.Posts) > 0)
	if err != nil {
		return nil, err
	}
	w, err := prepare(ctx, c, in)
	if err != nil {
		return nil, err
	}
	env := draft.NewEnvelope(c, version, mode, map[string]any{"topic": in.Topic, "platforms": in.Platforms, "perPlatform": in.PerPlatform, "goal": in.Goal, "link": in.Link})
	env.Evidence = draft.AllToSDK(w.Items)
	env.BrandDNARef = w.Ref()
	out := &output{Envelope: env, Posts: []post{}, Because: []string{}, Dropped: []dropped{}}
	if mode == draft.Caller {
		err = w.check(ctx, c, out)
	} else {
		err = w.write(ctx, c, out)
	}
	if err != nil {
		return nil, err
	}
	w.gaps(out)
	schedule(out.Posts, in)
	out.Cadence = defaultCadence(in.PerPlatform)
	out.Produced = len(out.Posts)
	env.Finish(c, fmt.Sprintf("%d posts", len(out.Posts)))
	return out, nil
}

func prepare(ctx context.Context, c *sdk.Call, in input) (*work, error) {
	order := brand.Order{BrandDNAID: in.BrandDNAID, BrandDNA: in.BrandDNA, RepoContext: in.RepoContext, Focus: in.Topic}
	if in.Topic != "" {
		order.Stated = []ground.Evidence{{Kind: ground.UserStatement, Source: "caller", Locator: draft.TopicLocator, Quote: in.Topic, Trust: ground.OwnerStated}}
	}
	desk, err := brand.Prepare(ctx, c, order)
	if err != nil {
		return nil, err
	}
	if len(desk.Facts) < 2 {
		return nil, draft.NothingToSay("posts")
	}
	w := &work{Desk: desk, in: in}
	w.link, w.label = brand.Destination(w.Record, w.Repo, in.Link)
	_, _, changed := (source.Commit{Subject: w.Repo.WhatChanged}).Parts()
	w.campaign = draft.Slug(firstOf(in.Topic, changed, w.Brand), 40)
	w.tags = hashtags(w)
	return w, nil
}

func firstOf(list ...string) string {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// gaps asks for the facts without which posts stay poorer.
func (w *work) gaps(out *output) {
	for _, ask := range []struct {
		role               draft.Role
		question, whyUseIt string
	}{
		{draft.Change, "What changed, in one sentence?", "A post about news needs the news."},
		{draft.Audience, "Whom is it for?", "A reader decides in the first line whether a post is meant for them."},
		{draft.Proof, "Which result can you show, with its number?", "A measured result is the strongest opening."},
	} {
		if !w.Pool.Has(ask.role) {
			out.Gap(string(ask.role), ask.question, ask.whyUseIt)
		}
	}
	if w.link == "" {
		out.Gap("link", "Where should readers go?", "No address was found, so posts ask for replies instead of naming one.")
	}
}
