package ground

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
)

func indexOf(b brandtest.Brand) *Index {
	table := NewTable("run_1", "2026-11-20T10:00:00Z")
	for i, line := range b.Lines() {
		table.Add(Evidence{Kind: PageText, Source: b.URL(), Locator: fmt.Sprintf("p:%d", i), Quote: line, Trust: Observed})
	}
	return NewIndex(b.Name, table.Items(), "2026-11-21T10:00:00Z")
}

// filler is copy that says nothing about any product; {name} and {top} take the brand and its strongest phrase.
var filler = []string{
	"Unlock the power of seamless productivity for your business.",
	"The all-in-one platform that helps teams do their best work.",
	"Transform the way you work with our innovative solution.",
	"Save time, cut costs and grow your business with confidence.",
	"Trusted by teams who want to move faster and achieve more.",
	"A simple, powerful and intuitive tool built for modern teams.",
	"Everything you need to succeed, all in one place.",
	"Take control of your workflow and focus on what matters most.",
	"Designed with you in mind, from start to finish.",
	"Get more done in less time with smart automation.",
	"Join the growing community of people who love our product.",
	"Quality, performance and support you can count on.",
	"Experience the difference that great software makes.",
	"Your success is our mission, and we are here to help.",
	"Beautiful design meets powerful features in one easy app.",
}

var mailMerge = []string{
	"{name} is the smarter way to handle {top} for growing teams.",
	"With {name}, {top} has never been easier or more powerful.",
	"Discover how {name} can transform your {top} today.",
	"{name} takes your {top} to the next level with ease.",
	"Looking for better {top}? {name} has everything you need.",
	"{name} gives modern businesses the {top} they deserve.",
}

func TestGenericitySeparates(t *testing.T) {
	brands := brandtest.All()
	var own, swapped, plain, merged []float64
	for i, brand := range brands {
		ix := indexOf(brand)
		for _, copy := range brand.Copy {
			own = append(own, ix.Genericity(copy, nil, nil).Score)
		}
		for j, other := range brands {
			if i != j {
				swapped = append(swapped, ix.Genericity(other.Copy[0], nil, nil).Score)
			}
		}
		top := text.Keyphrases(brand.Lines(), 1)[0].Text
		for _, sentence := range filler {
			plain = append(plain, ix.Genericity(sentence, nil, nil).Score)
		}
		for _, sentence := range mailMerge {
			merged = append(merged, ix.Genericity(strings.NewReplacer("{name}", brand.Name, "{top}", top).Replace(sentence), nil, nil).Score)
		}
	}
	for name, negative := range map[string][]float64{"swap": swapped, "filler": plain, "mail-merge": merged} {
		auc := areaUnderCurve(own, negative)
		t.Logf("%-10s AUC %.4f, median %.3f", name, auc, median(negative))
		if auc < 0.95 {
			t.Errorf("%s: AUC %.3f, want at least 0.95", name, auc)
		}
	}
	flagged := 0
	for _, score := range own {
		if score >= 0.5 {
			flagged++
		}
	}
	t.Logf("own copy: median %.3f, %d of %d at 0.5 or more", median(own), flagged, len(own))
	if float64(flagged) > 0.05*float64(len(own)) {
		t.Errorf("%d of %d own texts are called generic, want at most 5 %%", flagged, len(own))
	}
}

func areaUnderCurve(low, high []float64) float64 {
	wins := 0.0
	for _, a := range low {
		for _, b := range high {
			if b > a {
				wins++
			} else if b == a {
				wins += 0.5
			}
		}
	}
	return wins / float64(len(low)*len(high))
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Adding a number that the evidence holds must never make copy look more generic.
func TestGroundedNumberNeverRaisesTheScore(t *testing.T) {
	brands := brandtest.All()
	rapid.Check(t, func(t *rapid.T) {
		brand := rapid.SampledFrom(brands).Draw(t, "brand")
		source := rapid.SampledFrom(brands).Draw(t, "source of copy")
		copy := rapid.SampledFrom(append(slices.Clone(filler), source.Copy...)).Draw(t, "copy")
		ix := indexOf(brand)
		var numbers []string
		for _, line := range brand.Lines() {
			for _, token := range text.Tokens(line) {
				if token.Number {
					numbers = append(numbers, token.Text)
				}
			}
		}
		number := rapid.SampledFrom(numbers).Draw(t, "number")
		words := strings.Split(copy, " ")
		at := rapid.IntRange(0, len(words)).Draw(t, "at")
		with := strings.Join(slices.Insert(slices.Clone(words), at, number), " ")
		before, after := ix.CopyRisk(copy), ix.CopyRisk(with)
		if after > before+1e-12 {
			t.Fatalf("score rose from %.6f to %.6f by adding %q: %q", before, after, number, with)
		}
	})
}

func TestVerdicts(t *testing.T) {
	ledgerline := brandtest.All()[0]
	ix := indexOf(ledgerline)
	cases := []struct{ text, kind, verdict string }{
		{"Deposits from 14 European banks are matched to open invoices.", Numeric, Supported},
		{"Deposits from 40 European banks are matched to open invoices.", Numeric, Unsupported},
		{"You can edit each reminder before it goes out.", Capability, Supported},
		{"You cannot edit a reminder before it goes out.", Capability, Contradicted},
		{"Ledgerline files your tax returns.", Capability, Contradicted},
		{"Ledgerline predicts cash flow with satellite imagery.", Capability, Unsupported},
		{"The fastest invoicing app in Europe.", Superlative, Unsupported},
		{"Ledgerline is better than PaperDesk.", Comparison, Unsupported},
		{"Trusted by 4,000 freelancers.", SocialProof, Unsupported},
		{"“It paid for itself in a week” — Dana Whitfield", SocialProof, Unsupported},
		{"Solo costs $9 per month.", Price, Supported},
		{"Solo costs $7 per month.", Price, Unsupported},
		{"Get paid in minutes.", TimeToValue, Unsupported},
		{"Reminders are guaranteed to work.", Guarantee, Unsupported},
		{"Try it now: https://ledgerline.example/signup", NoClaim, NotAClaim},
		{"Are late clients your problem?", NoClaim, NotAClaim},
		{"Hi Dana,", NoClaim, NotAClaim},
	}
	for _, c := range cases {
		claims := ix.Check(c.text)
		if len(claims) == 0 {
			t.Errorf("%q: no sentence found", c.text)
			continue
		}
		got := claims[0]
		if got.Type != c.kind || got.Verdict != c.verdict {
			t.Errorf("%q: %s/%s (support %.2f, %s), want %s/%s", c.text, got.Type, got.Verdict, got.Support, got.Why, c.kind, c.verdict)
		}
		if got.Verdict == Supported && len(got.EvidenceIDs) == 0 {
			t.Errorf("%q: supported by nothing", c.text)
		}
		if got.Text != c.text[got.Span[0]:got.Span[1]] {
			t.Errorf("%q: span %v does not cut out the claim", c.text, got.Span)
		}
	}
}

func TestOldPricesDoNotCount(t *testing.T) {
	item := Evidence{Kind: PageText, Quote: "Solo: $9 per month", Trust: Observed, CapturedAt: "2026-09-01T00:00:00Z"}
	ix := NewIndex("Ledgerline", []Evidence{NewEvidence("run_1", item)}, "2026-11-21T10:00:00Z")
	if got := ix.Check("Solo costs $9 per month.")[0]; got.Verdict != Unsupported || !strings.Contains(got.Why, "30 days") {
		t.Errorf("a price read eleven weeks ago: %s (%s)", got.Verdict, got.Why)
	}
}

func TestSocialProofNeedsWhatWasRead(t *testing.T) {
	for trust, want := range map[string]string{Observed: Supported, OwnerStated: Unsupported} {
		e := NewEvidence("run_1", Evidence{Kind: PageText, Quote: "Used by 320 choirs in Sweden.", Trust: trust})
		if got := NewIndex("Cobalt", []Evidence{e}, "").Check("Used by 320 choirs in Sweden.")[0]; got.Verdict != want {
			t.Errorf("%s: %s, want %s", trust, got.Verdict, want)
		}
	}
}

func TestEvidenceIDs(t *testing.T) {
	base := Evidence{Kind: PageText, Source: "https://a.example/", Locator: "h1", Quote: "One", Trust: Observed}
	a, b := NewEvidence("run_1", base), NewEvidence("run_2", base)
	if a.ID == b.ID || a.Digest != b.Digest {
		t.Errorf("ids %s, %s must differ by run; digests %s, %s must not", a.ID, b.ID, a.Digest, b.Digest)
	}
	base.Quote = "One\u200b\u202e "
	if again := NewEvidence("run_1", base); again.ID != a.ID {
		t.Error("invisible characters changed the id")
	}
	moved := base
	moved.Source, moved.Locator = "https://a.example/h", "1"
	if NewEvidence("run_1", moved).ID == a.ID {
		t.Error("two places share an id")
	}
	table := NewTable("run_1", "")
	if first, again := table.Add(base), table.Add(base); first != again || table.Len() != 1 {
		t.Error("the same item was stored twice")
	}
	if table.Add(Evidence{Kind: PageText, Quote: " \u200b "}) != "" {
		t.Error("an empty item was stored")
	}
}

func TestWorstSentencesExplain(t *testing.T) {
	ix := indexOf(brandtest.All()[0])
	risk := ix.Genericity("Unlock the power of seamless invoicing. Reminders go to late clients on days 3, 10 and 21.", nil, nil)
	if len(risk.WorstSentences) == 0 || !strings.Contains(risk.WorstSentences[0].Text, "Unlock") {
		t.Fatalf("the filler sentence is not named: %+v", risk.WorstSentences)
	}
	if w := risk.WorstSentences[0]; !strings.Contains(w.Why, "unlock the power") || w.Fix == "" {
		t.Errorf("no reason or no way out: %+v", w)
	}
	if swap := ix.Genericity(filler[1], nil, nil).SwapTest; !swap.CouldBeAnyones {
		t.Errorf("filler passes the swap test: %+v", swap)
	}
	if swap := ix.Genericity(brandtest.All()[0].Copy[0], nil, nil).SwapTest; swap.CouldBeAnyones {
		t.Errorf("own copy fails the swap test: %+v", swap)
	}
}
