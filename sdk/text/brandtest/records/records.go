// Package records gives the invented brands of package brandtest as the record that brand extraction would keep, so
// that a skill can be tested without the skill before it. Test code only.
package records

import (
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// Of is the record of a brand whose pages were read in the given run.
func Of(b brandtest.Brand, runID string) brand.Record {
	table := ground.NewTable(runID, "2026-01-02T03:04:05Z")
	add := func(locator, fact, quote string) string {
		return table.Add(ground.Evidence{Kind: ground.PageText, Source: b.URL(), Locator: locator, Fact: fact, Quote: quote, URL: b.URL(), Trust: ground.Observed})
	}
	d := brand.DNA{Version: 1, Identity: brand.Identity{Name: b.Name, Tagline: b.Hero, Description: b.Sub, Category: b.Category, URL: b.URL()}}
	add("h1[0]", "", b.Hero)
	add("p[0]", b.Hero, b.Sub)
	pain := add("p[1]", "", b.Problem)
	who := add("p[2]", "", b.Audience)
	d.Audience = []brand.Segment{{Who: trimFor(b.Audience), Pains: []string{b.Problem}, Score: 0.9, EvidenceIDs: []string{who, pain}}}
	for i, f := range b.Features {
		heading, prose := add(fmt.Sprintf("h2[%d]", i), "", f.A), add(fmt.Sprintf("p[%d]", i+3), f.A, f.B)
		d.Pillars = append(d.Pillars, brand.Pillar{Name: f.A, Summary: f.B, EvidenceIDs: []string{heading, prose}})
	}
	d.ProofPoints = []brand.ProofPoint{{Text: b.Proof, Kind: "result", EvidenceIDs: []string{add("p[20]", "", b.Proof)}}}
	add("p[21]", "", b.Limit)
	if b.Versus != "" {
		add("p[22]", "", b.Versus)
	}
	for i, f := range b.FAQ {
		add(fmt.Sprintf("p[%d]", 30+i), f.A, f.B)
	}
	for i, f := range b.Prices {
		id := add(fmt.Sprintf("p[%d]", 40+i), f.A, f.B+" per "+f.C)
		d.Pricing = append(d.Pricing, brand.Price{Plan: f.A, Price: f.B, Period: f.C, EvidenceIDs: []string{id}})
	}
	for i, f := range b.CTAs {
		add(fmt.Sprintf("%s[%d]", draft.CTALocator, i), "", f.A)
		d.CTAs = append(d.CTAs, brand.CTA{Text: f.A, Href: "https://" + b.Domain + f.B})
	}
	return brand.Record{ID: "ast_01K00000000000000000000099", RunID: runID, DNA: d, Evidence: draft.AllToSDK(table.Items())}
}

func trimFor(s string) string {
	if i := strings.Index(strings.ToLower(s), "for "); i >= 0 {
		s = s[i+4:]
	}
	return strings.TrimSuffix(s, ".")
}
