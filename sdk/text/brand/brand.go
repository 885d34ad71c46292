// Package brand holds what is known of a brand: the record that brand extraction writes and every other skill inherits.
package brand

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// DNA is what a brand says and shows of itself, each part with the evidence it was read from.
type DNA struct {
	Version      int                `json:"version"`
	Identity     Identity           `json:"identity"`
	Audience     []Segment          `json:"audience"`
	Voice        Voice              `json:"voice"`
	Pillars      []Pillar           `json:"pillars"`
	Competitors  []Competitor       `json:"competitors"`
	Integrations []string           `json:"integrations"`
	Visual       Visual             `json:"visual"`
	ProofPoints  []ProofPoint       `json:"proofPoints"`
	CTAs         []CTA              `json:"ctas"`
	Pricing      []Price            `json:"pricing"`
	Confidence   map[string]float64 `json:"confidence"`
	Gaps         []draft.Gap        `json:"gaps"`
	Exports      Exports            `json:"exports"`
}

// Identity names the brand.
type Identity struct {
	Name        string `json:"name"`
	Tagline     string `json:"tagline"`
	Description string `json:"description"`
	Category    string `json:"category"`
	URL         string `json:"url"`
	Logo        *Logo  `json:"logo,omitempty"`
}

// Logo is where the logo was found.
type Logo struct {
	URL        string  `json:"url"`
	Kind       string  `json:"kind"`
	Confidence float64 `json:"confidence"`
}

// Segment is a group of people that the brand names as its own.
type Segment struct {
	Who         string   `json:"who"`
	Jobs        []string `json:"jobs"`
	Pains       []string `json:"pains"`
	Outcomes    []string `json:"outcomes"`
	Score       float64  `json:"score"`
	EvidenceIDs []string `json:"evidenceIds"`
}

// Voice is how the brand writes, in numbers first.
type Voice struct {
	Metrics    map[string]float64 `json:"metrics"`
	Adjectives []Adjective        `json:"adjectives"`
	Do         []string           `json:"do"`
	Dont       []string           `json:"dont"`
}

// Adjective is a word for the voice with the number and the quotes that justify it.
type Adjective struct {
	Word    string   `json:"word"`
	Because string   `json:"because"`
	Quotes  []string `json:"quotes"`
}

// Pillar is a subject that the brand returns to.
type Pillar struct {
	Name        string   `json:"name"`
	Keyphrases  []string `json:"keyphrases"`
	Summary     string   `json:"summary"`
	EvidenceIDs []string `json:"evidenceIds"`
}

// Competitor is a product that the brand itself names as one.
type Competitor struct {
	Name        string   `json:"name"`
	Relation    string   `json:"relation"` // always stated: nothing is guessed
	EvidenceIDs []string `json:"evidenceIds"`
}

// Visual is how the brand looks.
type Visual struct {
	Colors           []Color  `json:"colors"`
	Fonts            []Font   `json:"fonts"`
	ContrastWarnings []string `json:"contrastWarnings"`
}

// Color is a colour with its role and the votes for it.
type Color struct {
	Role    string   `json:"role"`
	Hex     string   `json:"hex"`
	Weight  float64  `json:"weight"`
	Sources []string `json:"sources"`
}

// Font is a font family with the role it is used in.
type Font struct {
	Role   string `json:"role"`
	Family string `json:"family"`
	Source string `json:"source"`
}

// ProofPoint is a result that the brand states.
type ProofPoint struct {
	Text        string   `json:"text"`
	Kind        string   `json:"kind"`
	EvidenceIDs []string `json:"evidenceIds"`
}

// CTA is a call to action with where it leads.
type CTA struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

// Price is what a plan costs.
type Price struct {
	Plan        string   `json:"plan"`
	Price       string   `json:"price"`
	Period      string   `json:"period"`
	EvidenceIDs []string `json:"evidenceIds"`
}

// Exports are the same facts in two interchange formats.
type Exports struct {
	BrandYML string `json:"brandYml"`
	DesignMD string `json:"designMd"`
}

// Record is a brand with the evidence it rests on, as kept in the workspace's memory.
type Record struct {
	ID       string         `json:"id"` // id of the stored draft
	RunID    string         `json:"runId"`
	DNA      DNA            `json:"brandDna"`
	Evidence []sdk.Evidence `json:"evidence"`
}

// NewestKey is the memory key of the workspace's newest brand; the key of one brand ends in its id.
const NewestKey = "brand_dna"

// Key is the memory key of a brand by id.
func Key(id string) string { return NewestKey + "." + id }

// maxRemembered bounds the record in bytes of JSON, below what memory takes.
const maxRemembered = 200 << 10

// Remember keeps a brand as the workspace's newest and under its id. Evidence that does not fit is left out, last first:
// pages are read from the top, where they say most.
func Remember(ctx context.Context, c *sdk.Call, r Record) error {
	for {
		raw, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if len(raw) <= maxRemembered || len(r.Evidence) == 0 {
			break
		}
		r.Evidence = r.Evidence[:len(r.Evidence)*3/4]
	}
	if err := c.Host.Remember(ctx, Key(r.ID), r); err != nil {
		return err
	}
	return c.Host.Remember(ctx, NewestKey, r)
}

// Load finds the brand a skill writes for: the one given inline, the one named by id, else the workspace's newest. It
// returns the brand with evidence that belongs to this run, and nil when none is known and none was named.
func Load(ctx context.Context, c *sdk.Call, id string, inline json.RawMessage) (*Record, []ground.Evidence, error) {
	record := &Record{}
	if len(inline) > 0 && string(inline) != "null" {
		if err := json.Unmarshal(inline, &record.DNA); err != nil {
			f := sdk.Fail("invalid_input", "brandDna does not have the shape that mkt_extract_brand_dna returns: %v", err)
			f.Fields = []sdk.FieldError{{Pointer: "/brandDna", Message: "must be a brandDna object"}}
			return nil, nil, f
		}
		items, err := draft.SaveEvidence(ctx, c, record.DNA.statements())
		return record, items, err
	}
	key := NewestKey
	if id != "" {
		key = Key(id)
	}
	found, err := c.Host.Recall(ctx, key, record)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		if id == "" {
			return nil, nil, nil
		}
		f := sdk.Fail("not_found", "The workspace knows no brand %q.", id)
		f.WhatWouldHelp = []string{"Call mkt_extract_brand_dna first, or leave brandDnaId out."}
		return nil, nil, f
	}
	items, err := record.inRun(ctx, c)
	return record, items, err
}

// inRun returns the record's evidence for this run. What was read in an earlier run is stored again as the owner's
// statement: this run has not read it.
func (r *Record) inRun(ctx context.Context, c *sdk.Call) ([]ground.Evidence, error) {
	items := make([]ground.Evidence, 0, len(r.Evidence))
	for _, item := range r.Evidence {
		items = append(items, draft.FromSDK(item))
	}
	if r.RunID == c.RunID && c.RunID != "" {
		return items, nil
	}
	for i := range items {
		if items[i].Trust == ground.Observed {
			items[i].Trust = ground.OwnerStated
		}
	}
	return draft.SaveEvidence(ctx, c, items)
}

// statements turns a brand given inline into evidence: the caller stated it.
func (d DNA) statements() []ground.Evidence {
	var out []ground.Evidence
	add := func(locator, fact, quote string) {
		if strings.TrimSpace(quote) != "" {
			out = append(out, ground.Evidence{Kind: ground.BrandField, Source: "caller", Locator: "brandDna." + locator, Fact: fact, Quote: quote, Trust: ground.OwnerStated})
		}
	}
	add("identity.tagline", "", d.Identity.Tagline)
	add("identity.description", "", d.Identity.Description)
	for _, pillar := range d.Pillars {
		add("pillars", pillar.Name, pillar.Summary)
	}
	for _, segment := range d.Audience {
		add("audience", "", "For "+strings.TrimPrefix(strings.TrimPrefix(segment.Who, "For "), "for "))
	}
	for _, proof := range d.ProofPoints {
		add("proofPoints", "", proof.Text)
	}
	for _, price := range d.Pricing {
		add("pricing", "", strings.TrimSpace(price.Plan+": "+price.Price+" per "+price.Period))
	}
	return out
}

// Name is the brand's name, or fallback when unknown.
func (r *Record) Name(fallback string) string {
	if r != nil && r.DNA.Identity.Name != "" {
		return r.DNA.Identity.Name
	}
	return fallback
}

// Destination is where readers are sent: the address given, else the brand's own call to action, else a sign-up route of
// the repository on its known address, else the home page. No address is made up: both are empty when none is known.
func Destination(r *Record, repo *source.Repo, given string) (address, label string) {
	if r != nil {
		for _, cta := range r.DNA.CTAs {
			if given == "" || given == cta.Href {
				return cta.Href, cta.Text
			}
		}
	}
	if given != "" {
		return given, ""
	}
	home := ""
	if r != nil {
		home = r.DNA.Identity.URL
	}
	if home == "" && repo != nil && len(repo.Deploy.URLs) > 0 {
		home = repo.Deploy.URLs[0]
	}
	if home == "" {
		return "", ""
	}
	if path := repo.Find("signup", "sign-up", "register", "start", "try", "demo", "install", "pricing", "docs"); path != "" {
		return strings.TrimRight(home, "/") + path, ""
	}
	return home, ""
}
