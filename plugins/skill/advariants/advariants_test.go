package advariants

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk/sdktest"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest/records"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

const tool = "mkt_generate_ad_variants"

type answer struct {
	Google   *googleAds   `json:"google"`
	Meta     []metaAd     `json:"meta"`
	Policy   []finding    `json:"policy"`
	TestPlan testPlan     `json:"testPlan"`
	Because  []string     `json:"because"`
	Gaps     []draft.Gap  `json:"gaps"`
	Scores   draft.Scores `json:"scores"`
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

func offer(b brandtest.Brand) map[string]any {
	return map[string]any{"offer": map[string]any{"what": b.Sub, "url": b.URL() + "signup"}, "repoContext": b.RepoContext()}
}

func remembered(b brandtest.Brand) sdktest.Option {
	return sdktest.WithMemory(brand.NewestKey, records.Of(b, sdktest.RunID))
}

func TestConform(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestTenBrands(t *testing.T) {
	for i, b := range brandtest.All() {
		in := offer(b)
		in["variants"] = 2 + i%4
		out, r := call(t, in, remembered(b))
		if r.Failure != nil {
			t.Fatalf("%s: %v", b.Name, r.Failure)
		}
		if out.Google == nil || len(out.Meta) < 2 {
			t.Errorf("%s: no search ad, or %d Meta ads: %v", b.Name, len(out.Meta), out.Because)
			continue
		}
		if out.Scores.GroundedShare < 0.95 || out.Scores.LimitViolations > 0 || len(out.Policy) > 0 {
			t.Errorf("%s: %+v, policy %+v", b.Name, out.Scores, out.Policy)
		}
		group := out.Google.AdGroups[0]
		ad := group.RSAs[0]
		if len(group.Negatives) < 8 || len(group.Keywords) == 0 || ad.CombinationRisk != 0 {
			t.Errorf("%s: %d negatives, %d keywords, combination risk %.2f", b.Name, len(group.Negatives), len(group.Keywords), ad.CombinationRisk)
		}
		seen := map[string]bool{}
		for _, h := range ad.Headlines {
			if h.Len > 30 || h.Len != text.Graphemes(h.Text) || seen[strings.ToLower(h.Text)] {
				t.Errorf("%s: headline %+v", b.Name, h)
			}
			seen[strings.ToLower(h.Text)] = true
		}
		for _, d := range ad.Descriptions {
			if d.Len > 90 || seen[strings.ToLower(d.Text)] {
				t.Errorf("%s: description %+v", b.Name, d)
			}
		}
		if len(ad.Path1) > 15 || len(ad.Path2) > 15 {
			t.Errorf("paths %q, %q", ad.Path1, ad.Path2)
		}
		for _, m := range out.Meta {
			if text.Graphemes(m.PrimaryText) > 125 || text.Graphemes(m.Headline) > 40 || m.CTA != "SIGN_UP" || m.CreativeBrief == "" {
				t.Errorf("%s: %+v", b.Name, m)
			}
		}
	}
}

func TestSampleSizes(t *testing.T) {
	for _, c := range []struct {
		p1, p2, alpha float64
		want          int
	}{{0.05, 0.06, 0.05, 8158}, {0.03, 0.036, 0.05, 13914}, {0.01, 0.012, 0.05, 42693}, {0.10, 0.11, 0.05, 14751}, {0.05, 0.06, 0.05 / 3, 10882}} {
		if got := perArm(c.p1, c.p2, c.alpha, 0.8); math.Abs(float64(got-c.want)) > 1 {
			t.Errorf("%.3f to %.3f: %d, want %d", c.p1, c.p2, got, c.want)
		}
	}
}

func TestPlanSaysWhatAVerdictCosts(t *testing.T) {
	clicks, price := 1200.0, 0.8
	p := plan(input{Baseline: &baseline{CVR: 0.05, CPC: &price, DailyClicks: &clicks, Currency: "EUR"}, MDE: 0.2, Alpha: 0.05, Power: 0.8}, 2)
	if p.PerArm != 8158 || p.Total != 16316 || *p.Days != 14 || math.Abs(*p.Cost-13052.8) > 0.01 || !p.Testable {
		t.Errorf("%+v days %d cost %.2f", p, *p.Days, *p.Cost)
	}
	few := 40.0
	if p := plan(input{Baseline: &baseline{CVR: 0.01, DailyClicks: &few}, MDE: 0.2, Alpha: 0.05, Power: 0.8}, 3); p.Testable || len(p.WaysOut) != 3 || p.Cost != nil {
		t.Errorf("a test of years is called testable: %+v", p)
	}
	if p := plan(input{MDE: 0.2, Alpha: 0.05, Power: 0.8}, 2); p.Testable || len(p.Assumptions) != 3 || p.Days != nil {
		t.Errorf("without a baseline: %+v", p)
	}
}

func TestPolicy(t *testing.T) {
	for s, rule := range map[string]string{
		"Flowers!!": "policy.punctuation", "f1owers for you": "policy.punctuation", "F.L.O.W.E.R.S.": "policy.punctuation", "Flowers here buy": "policy.clickhere", "F L O W E R S": "policy.punctuation",
		"• fresh • cheap": "policy.emoji", "Fresh bread 🥖": "policy.emoji", "Click here": "policy.clickhere", "FREE BREAD NOW TODAY": "policy.capitals", "Call +49 30 1234567": "policy.phone",
		"Guaranteed results": "policy.guarantee", "The best app": "policy.superlative", "An alternative to PaperDesk": "policy.trademark",
	} {
		found := judge(s, "google", "", []string{"PaperDesk"})
		if !strings.Contains(fmt.Sprint(found), rule) {
			t.Errorf("%q: %v, want %s", s, found, rule)
		}
	}
	for _, s := range []string{"CSV export for accountants", "Solo: $9 per month", "Bank matching", "Retries after 1, 5 and 25 seconds"} {
		if found := judge(s, "google", "finance", nil); len(found) != 0 {
			t.Errorf("%q: %v", s, found)
		}
	}
	if len(judge("Are you depressed?", "meta", "", nil)) == 0 || len(judge("Are you depressed?", "google", "", nil)) != 0 {
		t.Error("personal attributes are a rule of Meta")
	}
	if len(judge("No credit check", "google", "finance", nil)) == 0 {
		t.Error("a forbidden claim of finance passes")
	}
}

func TestLittleEvidenceGivesFewerAds(t *testing.T) {
	out, r := call(t, map[string]any{"offer": map[string]any{"what": "Pebble sorts the photos of your archaeology dig by trench and layer.", "url": "https://pebble.example/"}, "audience": "archaeologists who photograph a dig", "variants": 5})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if len(out.Because) == 0 || len(out.Meta) >= 5 {
		t.Errorf("%d ads from one sentence; %v", len(out.Meta), out.Because)
	}
}

func TestGolden(t *testing.T) {
	b := brandtest.All()[0]
	out, r := call(t, offer(b), remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var w strings.Builder
	for _, h := range out.Google.AdGroups[0].RSAs[0].Headlines {
		fmt.Fprintf(&w, "headline (%s): %s\n", h.Role, h.Text)
	}
	for _, d := range out.Google.AdGroups[0].RSAs[0].Descriptions {
		fmt.Fprintf(&w, "description: %s\n", d.Text)
	}
	for _, m := range out.Meta {
		fmt.Fprintf(&w, "\n== %s\n%s\n%s | %s | %s\n%s\n", m.Angle, m.PrimaryText, m.Headline, m.Description, m.CTA, m.CreativeBrief)
	}
	brandtest.Golden(t, "ads.txt", w.String())
}
