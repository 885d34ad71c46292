package landingcopy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk/sdktest"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest/records"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

const tool = "mkt_generate_landing_copy"

type answer struct {
	Page     page              `json:"page"`
	Gaps     []draft.Gap       `json:"gaps"`
	Checks   []json.RawMessage `json:"checks"`
	Scores   draft.Scores      `json:"scores"`
	Evidence []ground.Evidence `json:"evidence"`
	Assets   []draft.AssetView `json:"assets"`
	Match    *float64          `json:"messageMatch"`
}

func call(t *testing.T, input map[string]any, opts ...sdktest.Option) (answer, *sdktest.Result) {
	t.Helper()
	r := sdktest.New(t, Plugin(), opts...).Call(tool, input)
	var out answer
	if r.Failure == nil {
		if err := r.Decode(&out); err != nil {
			t.Fatal(err)
		}
	}
	return out, r
}

func remembered(b brandtest.Brand) sdktest.Option {
	return sdktest.WithMemory(brand.NewestKey, records.Of(b, sdktest.RunID))
}

func inputFor(b brandtest.Brand) map[string]any {
	return map[string]any{"product": map[string]any{"name": b.Name, "what": b.Sub, "url": b.URL()}, "repoContext": b.RepoContext()}
}

func TestConform(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestTenBrands(t *testing.T) {
	for _, b := range brandtest.All() {
		t.Run(b.Name, func(t *testing.T) {
			out, r := call(t, inputFor(b), remembered(b))
			if r.Failure != nil {
				t.Fatal(r.Failure)
			}
			p := out.Page
			if p.Hero.Headline == "" || p.Hero.Sub == "" || p.Hero.CTA == nil {
				t.Fatalf("hero %+v", p.Hero)
			}
			if !strings.HasSuffix(p.Hero.CTA.Href, b.CTAs[0].B) && len(b.CTAs) == 1 {
				t.Errorf("the call leads to %s, the site to %s", p.Hero.CTA.Href, b.CTAs[0].B)
			}
			if len(p.ValueProps) < 3 || len(p.FAQ) < 4 {
				t.Errorf("%d value props, %d questions", len(p.ValueProps), len(p.FAQ))
			}
			if out.Scores.GroundedShare < 0.95 || out.Scores.LimitViolations > 0 || !out.Scores.Publishable {
				t.Errorf("scores %+v, checks %s", out.Scores, mustJSON(t, out.Checks))
			}
			if swap := out.Assets[0].Risk.SwapTest; swap.Difference < 0.15 {
				t.Errorf("could be anyone's: %+v", swap)
			}
			limits := map[string]int{p.Meta.Title: 60, p.Meta.Description: 155, p.Hero.Headline: 70, p.Hero.Sub: 160}
			for s, limit := range limits {
				if s == "" || text.Graphemes(s) > limit {
					t.Errorf("%d characters of %d: %q", text.Graphemes(s), limit, s)
				}
			}
			for i, v := range p.ValueProps {
				for _, other := range p.ValueProps[:i] {
					if v.Feature == other.Feature || strings.Contains(other.Benefit, v.Benefit) {
						t.Errorf("%q is said twice", v.Benefit)
					}
				}
			}
			reused := 0
			for _, s := range p.SocialProof {
				if s.Text == b.Proof {
					reused++
				}
			}
			if reused != 1 || len(p.SocialProof) > reused && strings.Contains(string(mustJSON(t, p.SocialProof)), "trusted") {
				t.Errorf("proof %+v, the brand states %q", p.SocialProof, b.Proof)
			}
			known := map[string]bool{}
			for _, e := range out.Evidence {
				known[e.ID] = true
			}
			for _, f := range p.FAQ {
				if len(f.EvidenceIDs) == 0 || slices.ContainsFunc(f.EvidenceIDs, func(id string) bool { return !known[id] }) {
					t.Errorf("the answer to %q rests on %v", f.Q, f.EvidenceIDs)
				}
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestWithoutRouteNoLink(t *testing.T) {
	out, r := call(t, map[string]any{"product": map[string]any{"name": "Tidepool", "what": "A durable job queue inside your SQLite file."}, "repoContext": map[string]any{"readme": brandtest.All()[1].Readme()}})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if out.Page.Hero.CTA != nil || strings.Contains(out.Page.HTML, "href") || out.Scores.Publishable {
		t.Errorf("a link from nowhere, or publishable without one: %+v %+v", out.Page.Hero.CTA, out.Scores)
	}
	if !strings.Contains(string(mustJSON(t, out.Checks)), "landing.cta.route") {
		t.Error("the missing route is not named")
	}
}

func TestLittleEvidenceGivesQuestionsNotFiller(t *testing.T) {
	out, r := call(t, map[string]any{"product": map[string]any{"name": "Pebble", "what": "Pebble sorts the photos of your archaeology dig by trench and layer."}})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if len(out.Page.ValueProps) != 0 || len(out.Page.FAQ) != 0 || len(out.Page.SocialProof) != 0 {
		t.Errorf("filled in without evidence: %+v", out.Page)
	}
	if len(out.Gaps) < 3 {
		t.Errorf("only %d questions: %+v", len(out.Gaps), out.Gaps)
	}
}

func TestMarkupOfSourcesIsNotCopied(t *testing.T) {
	out, r := call(t, map[string]any{"product": map[string]any{"name": "Pebble", "what": `Pebble sorts the photos of a dig <img src=x onerror=alert(1)> by trench and layer.`}})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if strings.Contains(out.Page.HTML, "<img") {
		t.Errorf("markup of the input is in the page: %s", out.Page.HTML)
	}
}

func TestCallerDraftsAreJudged(t *testing.T) {
	b := brandtest.All()[0]
	in := inputFor(b)
	in["drafts"] = map[string]any{"sections": []any{
		map[string]any{"path": "hero.headline", "text": "Unlock the power of seamless invoicing"},
		map[string]any{"path": "hero.sub", "text": "Trusted by 12,000 companies worldwide."},
	}}
	out, r := call(t, in, remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if out.Scores.Publishable || out.Page.Hero.Headline != "Unlock the power of seamless invoicing" {
		t.Errorf("filler passes or was changed: %+v %+v", out.Scores, out.Page.Hero)
	}
}

func TestGolden(t *testing.T) {
	b := brandtest.All()[1]
	out, r := call(t, inputFor(b), remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	brandtest.Golden(t, "page.md", out.Page.Markdown)
	brandtest.Golden(t, "page.html", out.Page.HTML)
}
