package socialposts

import (
	"encoding/json"
	"fmt"
	"regexp"
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

const tool = "mkt_generate_social_posts"

type answer struct {
	Posts    []post            `json:"posts"`
	Dropped  []dropped         `json:"dropped"`
	Because  []string          `json:"because"`
	Gaps     []draft.Gap       `json:"gaps"`
	Checks   []json.RawMessage `json:"checks"`
	Assets   []draft.AssetView `json:"assets"`
	Scores   draft.Scores      `json:"scores"`
	Guide    draft.AgentGuide  `json:"agentGuide"`
	Evidence []json.RawMessage `json:"evidence"`
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

func TestConform(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestTenBrands(t *testing.T) {
	var risks []float64
	posts := 0
	for _, b := range brandtest.All() {
		out, r := call(t, map[string]any{"repoContext": b.RepoContext(), "perPlatform": 3}, remembered(b))
		if r.Failure != nil {
			t.Fatalf("%s: %v", b.Name, r.Failure)
		}
		if len(out.Posts) < 6 {
			t.Errorf("%s: only %d posts (%v; %v)", b.Name, len(out.Posts), out.Because, out.Dropped)
		}
		if out.Scores.GroundedShare < 0.95 || !out.Scores.Publishable || out.Scores.LimitViolations != 0 {
			t.Errorf("%s: scores %+v", b.Name, out.Scores)
		}
		index := ground.NewIndex(b.Name, allEvidence(t, out), "")
		var openings []string
		for _, p := range out.Posts {
			posts++
			risks = append(risks, p.Scores.GenericityRisk)
			if label := draft.Label(p.Body); label != "" {
				if slices.Contains(openings, p.Platform+label) {
					t.Errorf("%s: two %s posts open with %s", b.Name, p.Platform, label)
				}
				openings = append(openings, p.Platform+label)
			}
			if slices.Contains(openings, opening(p.Body)) {
				t.Errorf("%s: two posts open with %q", b.Name, opening(p.Body))
			}
			openings = append(openings, opening(p.Body))
			if p.CTA == "" || !strings.Contains(p.Body, p.CTA) || !strings.HasPrefix(p.Body, p.Hook) {
				t.Errorf("%s: a post without hook or call: %q", b.Name, p.Body)
			}
			if p.Platform == "instagram" && p.MediaBrief == nil {
				t.Errorf("%s: Instagram post without picture", b.Name)
			}
			if novel := draft.Novel(withoutTags(p.Body), index); len(novel) > 0 {
				t.Errorf("%s: %q holds words from nowhere: %v", b.Name, p.Body, novel)
			}
			checkLimit(t, p)
		}
		for i, a := range out.Posts {
			for _, other := range out.Posts[i+1:] {
				if d := text.NearDuplicate(a.Body, other.Body); d > 0.35 {
					t.Errorf("%s: two posts are alike (%.2f)", b.Name, d)
				}
			}
		}
		if text.Graphemes(out.Guide.UserMessage) > 600 {
			t.Errorf("userMessage has %d characters", text.Graphemes(out.Guide.UserMessage))
		}
	}
	slices.Sort(risks)
	t.Logf("%d posts, median genericity risk %.3f, worst %.3f", posts, risks[len(risks)/2], risks[len(risks)-1])
	if risks[len(risks)/2] > 0.35 {
		t.Errorf("median genericity risk %.3f, want at most 0.35", risks[len(risks)/2])
	}
}

func allEvidence(t *testing.T, out answer) []ground.Evidence {
	t.Helper()
	var items []ground.Evidence
	for _, raw := range out.Evidence {
		var item ground.Evidence
		if err := json.Unmarshal(raw, &item); err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	return items
}

var linksAndTags = regexp.MustCompile(`https?://\S+|#\S+|link in profile`)

func withoutTags(s string) string { return linksAndTags.ReplaceAllString(s, "") }

func checkLimit(t *testing.T, p post) {
	t.Helper()
	limits := map[string]int{"x": 280, "linkedin": 3000, "instagram": 2200}
	n := text.Graphemes(p.Body)
	if p.Platform == "x" {
		n = text.XWeight(p.Body)
	}
	if n > limits[p.Platform] {
		t.Errorf("%s post of %d: %q", p.Platform, n, p.Body)
	}
}

// No limit may break whatever the brand, topic and link.
func TestLimitsOver200Sets(t *testing.T) {
	brands := brandtest.All()
	sets := 0
	for i := 0; sets < 200; i++ {
		b := brands[i%len(brands)]
		context := b.RepoContext()
		context["whatChanged"] = b.Features[i%len(b.Features)].A + strings.Repeat(" and more of the same for every customer", i%9)
		input := map[string]any{"repoContext": context, "perPlatform": 1 + i%5, "link": fmt.Sprintf("https://%s/%s?q=%d", b.Domain, strings.Repeat("a", (i*37)%300), i), "goal": []string{"awareness", "signup", "feedback", "traffic"}[i%4]}
		out, r := call(t, input, remembered(b))
		if r.Failure != nil {
			t.Fatalf("%s: %v", b.Name, r.Failure)
		}
		sets += len(out.Posts)
		for _, p := range out.Posts {
			checkLimit(t, p)
			if p.Scores.GroundedShare < 0.95 {
				t.Errorf("grounded share %.2f: %q", p.Scores.GroundedShare, p.Body)
			}
		}
	}
}

func TestNothingKnown(t *testing.T) {
	_, r := call(t, map[string]any{"topic": "our new thing"})
	if r.Failure == nil || r.Failure.Code != "insufficient_evidence" || len(r.Failure.WhatWouldHelp) != 3 {
		t.Errorf("without evidence: %+v", r.Failure)
	}
}

func TestNoLinkIsMadeUp(t *testing.T) {
	out, r := call(t, map[string]any{"repoContext": map[string]any{"readme": brandtest.All()[1].Readme(), "whatChanged": "Cron schedules run each missed schedule once after a late start"}})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	for _, p := range out.Posts {
		if strings.Contains(p.Body, "http") || p.UTMURL != "" {
			t.Errorf("a link from nowhere: %q", p.Body)
		}
	}
	if !slices.ContainsFunc(out.Gaps, func(g draft.Gap) bool { return g.Role == "link" }) {
		t.Error("the missing link is not asked for")
	}
}

func TestCallerDraftsAreJudgedNotChanged(t *testing.T) {
	b := brandtest.All()[0]
	good := "Export a quarter of invoices as CSV with VAT columns."
	bad := "Ledgerline is the best invoicing app, trusted by 9,000 freelancers. Upvote us!"
	out, r := call(t, map[string]any{"mode": "caller", "drafts": map[string]any{"posts": []any{map[string]any{"platform": "linkedin", "body": good}, map[string]any{"platform": "x", "body": bad}}}}, remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if out.Posts[0].Body != good || out.Posts[1].Body != bad {
		t.Error("the caller's text was changed")
	}
	if !out.Posts[0].Scores.Publishable || out.Posts[1].Scores.Publishable {
		t.Errorf("verdicts: %+v, %+v", out.Posts[0].Scores, out.Posts[1].Scores)
	}
	all := string(mustJSON(t, out.Checks))
	for _, rule := range []string{"claim.unsupported", "votes"} {
		if !strings.Contains(all, rule) {
			t.Errorf("%s is not named: %s", rule, all)
		}
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

func TestInjectedReadmeChangesOnlyEvidence(t *testing.T) {
	b := brandtest.All()[1]
	clean, r := call(t, map[string]any{"repoContext": b.RepoContext()}, remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	for _, attack := range brandtest.Injections() {
		context := b.RepoContext()
		context["readme"] = map[string]any{"path": "README.md", "excerpt": b.Readme() + "\n" + attack + "\n"}
		dirty, r := call(t, map[string]any{"repoContext": context}, remembered(b))
		if r.Failure != nil {
			t.Fatal(r.Failure)
		}
		if string(mustJSON(t, clean.Posts)) != string(mustJSON(t, dirty.Posts)) {
			t.Errorf("%q changed the posts", attack)
		}
		if len(dirty.Evidence) != len(clean.Evidence)+1 {
			t.Errorf("%q: %d items of evidence, %d without it", attack, len(dirty.Evidence), len(clean.Evidence))
		}
	}
}

func TestGolden(t *testing.T) {
	b := brandtest.All()[0]
	out, r := call(t, map[string]any{"repoContext": b.RepoContext(), "campaignStart": "2026-03-02"}, remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var w strings.Builder
	for _, p := range out.Posts {
		fmt.Fprintf(&w, "== %s · %s · %s %s\n%s\n\n", p.Platform, p.Angle, p.Slot.Day, p.Slot.Window, p.Body)
	}
	brandtest.Golden(t, "posts.txt", w.String())
}
