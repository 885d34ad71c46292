// Package branddna is the skill that discovers a brand from its pages or its repository: what it calls itself, whom it
// serves, how it writes and how it looks, every part with the place it was read from. Other skills inherit the result.
package branddna

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/abadojack/whatlanggo"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

const version = "1.0.0"

// Plugin is the skill.
func Plugin() sdk.Plugin {
	method, limit := schemas.ManifestNeedsEndpointsElemMethodGET, maxCSSBytes
	return sdk.Plugin{
		Manifest: schemas.Manifest{
			Name: "branddna", Kind: schemas.ManifestKindSkill, Version: version, Title: "Brand DNA", Protocol: 1,
			Description: "Discovers a brand from its pages or its repository, with the evidence for every part.",
			Needs: schemas.Needs{
				Endpoints: []schemas.Endpoint{{ID: "page", Class: schemas.ClassRead, Host: schemas.HostWeb, Method: &method, MaxResponseBytes: &limit}},
				Memory:    []schemas.ManifestNeedsMemoryElem{schemas.ManifestNeedsMemoryElemRead, schemas.ManifestNeedsMemoryElemWrite},
			},
		},
		Tools: []sdk.Tool{{Document: schemas.MustTool("mkt_extract_brand_dna"), Run: run}},
	}
}

type givenPage struct {
	URL  string   `json:"url"`
	HTML string   `json:"html"`
	CSS  []string `json:"css"`
}

// hints are what the owner says of the brand; they win over what is inferred.
type hints struct {
	Name        string   `json:"name"`
	Audience    string   `json:"audience"`
	Competitors []string `json:"competitors"`
	NotVoice    []string `json:"notVoice"`
}

type input struct {
	URL         string          `json:"url"`
	Pages       []givenPage     `json:"pages"`
	RepoContext json.RawMessage `json:"repoContext"`
	MaxPages    int             `json:"maxPages"`
	Language    string          `json:"language"`
	OwnerHints  hints           `json:"ownerHints"`
}

type output struct {
	*draft.Envelope
	BrandDNAID string    `json:"brandDnaId"`
	BrandDNA   brand.DNA `json:"brandDna"`
}

func run(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{MaxPages: 5}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	if in.URL == "" && len(in.Pages) == 0 && len(in.RepoContext) == 0 {
		f := sdk.Fail("invalid_input", "Nothing to read: give url, pages or repoContext.")
		f.Fields = []sdk.FieldError{{Pointer: "/url", Message: "one of url, pages and repoContext is required"}}
		return nil, f
	}
	repo := &source.Repo{}
	if len(in.RepoContext) > 0 {
		if err := json.Unmarshal(in.RepoContext, repo); err != nil {
			return nil, sdk.Fail("invalid_input", "repoContext does not have the collector's shape: %v", err)
		}
	}
	env := draft.NewEnvelope(c, version, "deterministic", echo(in))
	pages, err := gather(ctx, c, in)
	if err != nil {
		if repo.Empty() {
			return nil, err
		}
		env.Warn("%v", err) // the repository still tells of the brand
	}
	if len(pages) == 0 && repo.Empty() {
		f := sdk.Fail("insufficient_evidence", "The repository context says nothing about the product.")
		f.WhatWouldHelp = []string{"Give a README.", "Give the address of the product's page in url."}
		return nil, f
	}
	items, err := draft.SaveEvidence(ctx, c, collect(in, pages, repo))
	if err != nil {
		return nil, err
	}
	dna, err := extract(in, pages, repo, items, c)
	if err != nil {
		return nil, err
	}
	return store(ctx, c, env, dna, items)
}

func collect(in input, pages []*page, repo *source.Repo) []ground.Evidence {
	items := append(evidence(pages), repo.Evidence()...)
	state := func(locator, quote string) {
		if quote != "" {
			items = append(items, ground.Evidence{Kind: ground.UserStatement, Source: "caller", Locator: locator, Quote: quote, Trust: ground.OwnerStated})
		}
	}
	state("ownerHints.name", in.OwnerHints.Name)
	state("targetCustomer", in.OwnerHints.Audience)
	state("ownerHints.competitors", strings.Join(in.OwnerHints.Competitors, ", "))
	return items
}

func extract(in input, pages []*page, repo *source.Repo, items []ground.Evidence, c *sdk.Call) (brand.DNA, error) {
	var home *page
	if len(pages) > 0 {
		home = pages[0]
	}
	dna := brand.DNA{Version: 1, Identity: identity(home, repo, in.OwnerHints.Name), Gaps: []draft.Gap{}}
	index := ground.NewIndex(dna.Identity.Name, items, "")
	facts := draft.Facts(items, index)
	var hintID, rivalsID string
	for _, item := range items {
		switch item.Locator {
		case "targetCustomer":
			hintID = item.ID
		case "ownerHints.competitors":
			rivalsID = item.ID
		}
	}
	dna.Audience = segments(facts, pages, in.OwnerHints, hintID)
	dna.Pillars = pillars(items, facts, dna.Identity.Name)
	dna.Competitors = competitors(facts, pages, dna.Identity.Name, in.OwnerHints.Competitors, rivalsID)
	dna.Integrations = integrations(facts, dna.Competitors)
	dna.ProofPoints = proofPoints(facts)
	dna.Pricing = prices(facts)
	dna.CTAs = ctas(pages)
	dna.Visual = visual(home)
	sentences := prose(items)
	language := languageOf(in.Language, home, sentences)
	dna.Voice = voice(sentences, language == "en")
	for _, word := range in.OwnerHints.NotVoice {
		dna.Voice.Dont = append(dna.Voice.Dont, "Not "+text.OneLine(word, 60)+" (said by the owner).")
	}
	if dna.Identity.Category == "" {
		if phrases := text.Keyphrases(sentences, 1); len(phrases) > 0 {
			dna.Identity.Category = phrases[0].Text
		}
	}
	judge(&dna, language)
	var err error
	dna.Exports, err = exports(dna)
	return dna, err
}

// prose are the sentences of the brand's own running text.
func prose(items []ground.Evidence) []string {
	out := []string{}
	for _, item := range items {
		if item.Kind != ground.PageText && item.Kind != ground.RepoReadme || text.Instruction(item.Text()) {
			continue
		}
		for _, sentence := range text.Sentences(item.Quote) {
			if text.WordCount(sentence.Text) >= 3 {
				out = append(out, sentence.Text)
			}
		}
	}
	return out
}

func languageOf(given string, home *page, sentences []string) string {
	if given == "" && home != nil {
		given = home.language
	}
	if given == "" {
		if info := whatlanggo.Detect(strings.Join(sentences, " ")); info.IsReliable() {
			given = info.Lang.Iso6391()
		} else {
			given = "en"
		}
	}
	language, _, _ := strings.Cut(strings.ToLower(given), "-")
	return language
}

// judge says how sure each section is, and asks for what is missing.
func judge(d *brand.DNA, language string) {
	ask := func(role, question, why string) {
		d.Gaps = append(d.Gaps, draft.Gap{Role: role, Question: question, WhyItMatters: why})
	}
	share := func(n, enough int) float64 { return min(1, float64(n)/float64(enough)) }
	d.Confidence = map[string]float64{
		"identity": share(boolInt(d.Identity.Name != "")+boolInt(d.Identity.Tagline != "")+boolInt(d.Identity.Description != ""), 3),
		"audience": share(len(d.Audience), 1) * 0.8, "pillars": share(len(d.Pillars), 3), "competitors": share(len(d.Competitors), 1),
		"visual": share(len(d.Visual.Colors), 3), "voice": share(len(d.Voice.Metrics), 10), "proof": share(len(d.ProofPoints), 2),
	}
	if len(d.Audience) == 0 {
		ask("audience", "Whom is the product for?", "Copy that names its reader is understood faster.")
	}
	if len(d.ProofPoints) == 0 {
		ask("proof", "Which result can you show, with its number?", "A measured result is the only proof a draft may use.")
	}
	if len(d.Pillars) == 0 {
		ask("pillars", "What are the three things the product does?", "Without them drafts have nothing of their own to say.")
	}
	if len(d.Visual.Colors) == 0 {
		ask("visual", "Which colours and fonts does the brand use?", "Nothing was found in style sheets.")
	}
	if language != "en" {
		ask("voice", "Is there an English page?", fmt.Sprintf("The voice of text in %q is not measured: the measures hold for English.", language))
	}
}

func echo(in input) map[string]any {
	return map[string]any{"url": in.URL, "pages": len(in.Pages), "repoContext": len(in.RepoContext) > 0, "maxPages": in.MaxPages}
}

func store(ctx context.Context, c *sdk.Call, env *draft.Envelope, dna brand.DNA, items []ground.Evidence) (any, error) {
	env.Evidence = draft.AllToSDK(items)
	env.Gaps = append(env.Gaps, dna.Gaps...)
	ref, err := c.Host.SaveAsset(ctx, sdk.Asset{
		Kind: "brand_dna", Skill: c.Tool, Channel: "brand", Title: "Brand DNA of " + dna.Identity.Name, Locale: "en",
		Content: map[string]any{"brandDna": dna}, Claims: []sdk.Claim{}, Checks: []sdk.Check{}, Origin: "deterministic",
	})
	if err != nil {
		return nil, err
	}
	env.Assets = append(env.Assets, draft.AssetView{
		ID: ref.ID, Revision: ref.Revision, Digest: ref.Digest, Kind: "brand_dna", Channel: "brand", Title: "Brand DNA of " + dna.Identity.Name,
		Status: "draft_unapproved", Publishable: true, Slots: []draft.Slot{}, Risk: ground.NoRisk(),
	})
	record := brand.Record{ID: ref.ID, RunID: c.RunID, DNA: dna, Evidence: env.Evidence}
	if err := brand.Remember(ctx, c, record); err != nil {
		env.Warn("The brand was not remembered for later runs: %v", err)
	}
	env.BrandDNARef = ref.ID
	env.Finish(c, "a brand profile")
	env.Scores.Publishable = true
	message := fmt.Sprintf("I read %s from %d pieces of evidence: %d audiences, %d subjects, %d stated competitors. Nothing has been published.", dna.Identity.Name, len(items), len(dna.Audience), len(dna.Pillars), len(dna.Competitors))
	if len(dna.Gaps) > 0 {
		message += fmt.Sprintf(" %d open questions remain.", len(dna.Gaps))
	}
	env.AgentGuide = draft.Guide(c, message)
	return output{Envelope: env, BrandDNAID: ref.ID, BrandDNA: dna}, nil
}
