package branddna

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
)

type answer struct {
	BrandDNAID string         `json:"brandDnaId"`
	BrandDNA   brand.DNA      `json:"brandDna"`
	Evidence   []sdk.Evidence `json:"evidence"`
	AgentGuide struct {
		UserMessage string `json:"userMessage"`
	} `json:"agentGuide"`
}

func call(t *testing.T, input any, opts ...sdktest.Option) (answer, *sdktest.Result) {
	t.Helper()
	r := sdktest.New(t, Plugin(), opts...).Call("mkt_extract_brand_dna", input)
	var out answer
	if r.Failure == nil {
		if err := r.Decode(&out); err != nil {
			t.Fatal(err)
		}
	}
	return out, r
}

func TestConform(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestPagesOfTenBrands(t *testing.T) {
	for _, b := range brandtest.All() {
		t.Run(b.Name, func(t *testing.T) {
			out, r := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
			if r.Failure != nil {
				t.Fatal(r.Failure)
			}
			dna := out.BrandDNA
			if dna.Identity.Name != b.Name || dna.Identity.Tagline != b.Hero || dna.Identity.Category != b.Category {
				t.Errorf("identity %+v", dna.Identity)
			}
			if len(dna.Visual.Colors) == 0 || dna.Visual.Colors[0].Hex != b.Color {
				t.Errorf("primary colour %+v, want %s", dna.Visual.Colors, b.Color)
			}
			if len(dna.Audience) == 0 {
				t.Error("no audience found")
			}
			if len(dna.Pillars) < 3 {
				t.Errorf("%d pillars", len(dna.Pillars))
			}
			for _, pillar := range dna.Pillars {
				if len(pillar.EvidenceIDs) < 2 {
					t.Errorf("pillar %q rests on %d items", pillar.Name, len(pillar.EvidenceIDs))
				}
			}
			if len(dna.ProofPoints) == 0 {
				t.Error("the stated result was not found")
			}
			if len(dna.Pricing) != len(b.Prices) {
				t.Errorf("%d prices, want %d: %+v", len(dna.Pricing), len(b.Prices), dna.Pricing)
			}
			if len(dna.CTAs) == 0 || !strings.HasSuffix(dna.CTAs[0].Href, b.CTAs[0].B) {
				t.Errorf("calls to action %+v", dna.CTAs)
			}
			known := map[string]bool{}
			for _, e := range r.Evidence() {
				known[e.ID] = true
				if e.Kind == "page_text" && e.Trust != "observed" {
					t.Errorf("the page was read, yet %q is %s", e.Quote, e.Trust)
				}
			}
			for _, id := range idsIn(t, dna) {
				if !known[id] {
					t.Errorf("evidence %s does not exist", id)
				}
			}
		})
	}
}

func idsIn(t *testing.T, v any) []string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, part := range strings.Split(string(raw), `"`) {
		if strings.HasPrefix(part, "ev_") {
			out = append(out, part)
		}
	}
	return out
}

func TestCompetitorsAreOnlyStatedOnes(t *testing.T) {
	want := map[string]string{"Ledgerline": "PaperDesk", "Parallax Notes": "BenchBook", "Palimpsest CMS": "Pressroom", "Signalbox": "PagerTree"}
	for _, b := range brandtest.All() {
		out, r := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
		if r.Failure != nil {
			t.Fatal(r.Failure)
		}
		var names []string
		for _, c := range out.BrandDNA.Competitors {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, ","); got != want[b.Name] {
			t.Errorf("%s: competitors %q, want %q", b.Name, got, want[b.Name])
		}
	}
}

func TestRepositoryAlone(t *testing.T) {
	b := brandtest.All()[1]
	out, r := call(t, map[string]any{"repoContext": b.RepoContext()})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if out.BrandDNA.Identity.Name != b.Name || len(out.BrandDNA.Pillars) < 3 || len(out.BrandDNA.Audience) == 0 {
		t.Errorf("from a README: %+v, %d pillars, %d audiences", out.BrandDNA.Identity, len(out.BrandDNA.Pillars), len(out.BrandDNA.Audience))
	}
}

func TestFailuresSayWhatHelps(t *testing.T) {
	const url = "https://blocked.example/"
	scripts := strings.Repeat(`<script src="/a.js"></script>`, 8)
	cases := map[string]struct {
		option sdktest.Option
		code   string
	}{
		"forbidden": {sdktest.WithReply(url, sdk.FetchReply{Status: 403}), "fetch_blocked"},
		"challenge": {sdktest.WithPage(url, "<title>Just a moment...</title><p>Checking your browser before you go on.</p>"), "fetch_blocked"},
		"script":    {sdktest.WithPage(url, "<html><body>"+scripts+"<p>Loading the application now.</p></body></html>"), "needs_render"},
		"parked":    {sdktest.WithPage(url, "<title>x</title><p>This domain is for sale. Buy this domain today from the owner of it.</p>"), "insufficient_evidence"},
		"missing":   {sdktest.WithReply(url, sdk.FetchReply{Status: 404}), "fetch_blocked"},
	}
	for name, c := range cases {
		_, r := call(t, map[string]any{"url": url}, c.option)
		if r.Failure == nil || r.Failure.Code != c.code || len(r.Failure.WhatWouldHelp) == 0 {
			t.Errorf("%s: %+v, want %s with a way out", name, r.Failure, c.code)
		}
	}
	if _, r := call(t, map[string]any{}); r.Failure == nil || r.Failure.Code != "invalid_input" {
		t.Errorf("no source at all: %+v", r.Failure)
	}
}

// Text that speaks to a machine must change nothing but the evidence.
func TestInjectedInstructionsChangeOnlyEvidence(t *testing.T) {
	b := brandtest.All()[0]
	clean, r := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	for i, attack := range brandtest.Injections() {
		page := strings.Replace(b.HTML(), "</main>", fmt.Sprintf("<section><p>%s</p></section></main>", attack), 1)
		dirty, r := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), page))
		if r.Failure != nil {
			t.Fatalf("%d: %v", i, r.Failure)
		}
		if want, got := mustJSON(t, clean.BrandDNA), mustJSON(t, dirty.BrandDNA); want != got {
			t.Errorf("%q changed the brand:\n%s\n%s", attack, want, got)
		}
		if len(dirty.Evidence) <= len(clean.Evidence) {
			t.Errorf("%q was not kept as evidence", attack)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSameInputSameOutput(t *testing.T) {
	b := brandtest.All()[4]
	_, first := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
	_, second := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
	if string(first.Structured) != string(second.Structured) {
		t.Error("two calls with the same page differ")
	}
}

func TestGolden(t *testing.T) {
	b := brandtest.All()[0]
	out, r := call(t, map[string]any{"url": b.URL()}, sdktest.WithPage(b.URL(), b.HTML()))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	raw, err := json.MarshalIndent(out.BrandDNA, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	brandtest.Golden(t, "ledgerline.json", string(raw)+"\n")
}
