package emailsequence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk/sdktest"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest"
	"github.com/sallyport-dev/sallyport/sdk/text/brandtest/records"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

const tool = "mkt_generate_email_sequence"

type answer struct {
	Emails        []email           `json:"emails"`
	SendBlockedBy []blocker         `json:"sendBlockedBy"`
	Because       []string          `json:"because"`
	Checks        []json.RawMessage `json:"checks"`
	Scores        draft.Scores      `json:"scores"`
	Timing        []timing          `json:"timing"`
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

func complete(b brandtest.Brand, kind string) map[string]any {
	return map[string]any{
		"type": kind, "repoContext": b.RepoContext(), "lawfulBasis": "consent", "listSource": "you signed up on our site", "unsubscribeUrl": "https://" + b.Domain + "/bye",
		"sender": map[string]any{"name": "Ada Fields", "email": "ada@" + b.Domain, "postalAddress": "1 Mill Lane, Ghent"},
	}
}

func TestConform(t *testing.T) { sdktest.Conform(t, Plugin()) }

// Fifty sequences of up to four mails each: 100 generated mails at least, none with a legal part missing.
func TestSequencesOfTenBrands(t *testing.T) {
	mails := 0
	for _, b := range brandtest.All() {
		for _, kind := range []string{"launch", "onboarding", "nurture", "winback", "update"} {
			out, r := call(t, complete(b, kind), remembered(b))
			if r.Failure != nil {
				t.Fatalf("%s %s: %v", b.Name, kind, r.Failure)
			}
			if len(out.SendBlockedBy) != 0 {
				t.Errorf("%s: blocked by %+v", b.Name, out.SendBlockedBy)
			}
			if len(out.Emails) < 2 {
				t.Errorf("%s %s: %d mails (%v)", b.Name, kind, len(out.Emails), out.Because)
			}
			if out.Scores.GroundedShare < 0.95 || !out.Scores.Publishable {
				t.Errorf("%s %s: %+v", b.Name, kind, out.Scores)
			}
			for i, e := range out.Emails {
				mails++
				checkMail(t, b, e)
				for _, other := range out.Emails[:i] {
					if d := text.StemOverlap(subjectOf(e), subjectOf(other)); d > 0.5 {
						t.Errorf("%s %s: subjects %q and %q are alike (%.2f)", b.Name, kind, subjectOf(e), subjectOf(other), d)
					}
				}
			}
		}
	}
	t.Logf("%d mails", mails)
	if mails < 100 {
		t.Errorf("only %d mails were checked", mails)
	}
}

func checkMail(t *testing.T, b brandtest.Brand, e email) {
	t.Helper()
	for _, part := range []string{"1 Mill Lane, Ghent", "https://" + b.Domain + "/bye", "Ada Fields", "you signed up on our site"} {
		if !strings.Contains(e.Footer, part) {
			t.Errorf("%s: the footer misses %q: %q", b.Name, part, e.Footer)
		}
	}
	if e.Headers["List-Unsubscribe"] == "" || e.Headers["List-Unsubscribe-Post"] != "List-Unsubscribe=One-Click" {
		t.Errorf("headers %v", e.Headers)
	}
	if e.CTA == nil || strings.Count(e.BodyText, "http") != 1 {
		t.Errorf("%s: not exactly one link: %q", b.Name, e.BodyText)
	}
	if e.SpamPoints >= 1 {
		t.Errorf("%.1f spam points: %q", e.SpamPoints, e.BodyText)
	}
	if plainOf(e.BodyHTML) != normal(e.BodyText) {
		t.Errorf("the two parts differ: %q, %q", plainOf(e.BodyHTML), normal(e.BodyText))
	}
	for _, r := range e.SubjectLadder {
		if r.Len > maxSubject || r.Len != text.Graphemes(r.Text) || deceptive(r.Text) != "" {
			t.Errorf("subject %+v", r)
		}
	}
	if n := text.Graphemes(e.Preheader); e.Preheader != "" && (n < 40 || n > 90) {
		t.Errorf("preheader of %d characters: %q", n, e.Preheader)
	}
	if len(text.Placeholders(e.BodyText)) != 0 {
		t.Errorf("placeholders in %q", e.BodyText)
	}
}

func TestWhatBlocksASend(t *testing.T) {
	b := brandtest.All()[0]
	for field, change := range map[string]func(map[string]any){
		"sender.email":         func(in map[string]any) { delete(in, "sender") },
		"sender.postalAddress": func(in map[string]any) { in["sender"] = map[string]any{"name": "Ada", "email": "ada@a.example"} },
		"unsubscribeUrl":       func(in map[string]any) { delete(in, "unsubscribeUrl") },
		"lawfulBasis":          func(in map[string]any) { delete(in, "lawfulBasis") },
		"listSource":           func(in map[string]any) { in["listSource"] = "bought from a broker" },
	} {
		in := complete(b, "launch")
		change(in)
		out, r := call(t, in, remembered(b))
		if r.Failure != nil {
			t.Fatal(r.Failure)
		}
		if !slices.ContainsFunc(out.SendBlockedBy, func(got blocker) bool { return got.Field == field }) {
			t.Errorf("%s: blocked by %+v", field, out.SendBlockedBy)
		}
		if len(out.Emails) == 0 {
			t.Errorf("%s: the drafts were withheld", field)
		}
	}
	in := complete(b, "launch")
	delete(in, "lawfulBasis")
	in["jurisdictions"] = []string{"US"}
	if out, _ := call(t, in, remembered(b)); len(out.SendBlockedBy) != 0 {
		t.Errorf("the basis is asked for outside the EU: %+v", out.SendBlockedBy)
	}
}

func TestDeceptiveSubjects(t *testing.T) {
	for _, s := range []string{"Re: your order", "FWD: news", "LAST CALL FOR EVERYONE", "Act now, only 2 spots left"} {
		if deceptive(s) == "" {
			t.Errorf("%q passes", s)
		}
	}
	for _, s := range []string{"CSV export of invoices", "What happens after a crash?", "VAT"} {
		if why := deceptive(s); why != "" {
			t.Errorf("%q: %s", s, why)
		}
	}
}

func TestSpamRules(t *testing.T) {
	for rule, body := range map[string]string{
		"spam.guaranteed": "Results are 100% guaranteed.", "spam.dearfriend": "Dear friend", "spam.millions": "He won a million dollars: $5 million.", "spam.freemoney": "Make money fast.",
		"spam.clickhere": "Click here.", "spam.remove": "To be removed, write back.", "spam.capitals": "BUY OUR VERY GOOD THING TODAY", "spam.exclamations": "Wow! Great!", "spam.notext": " ",
		"spam.links": strings.Repeat("https://a.example/x ", 7),
	} {
		_, hits := spam(email{BodyText: body, SubjectLadder: []rung{{Text: ""}}})
		if rule == "spam.dearfriend" {
			_, hits = spam(email{BodyText: "x", SubjectLadder: []rung{{Text: body}}})
		}
		if !strings.Contains(fmt.Sprint(hits), rule) {
			t.Errorf("%s does not hit %q: %v", rule, body, hits)
		}
	}
	if points, hits := spam(email{BodyText: "Deposits are matched to open invoices.", SubjectLadder: []rung{{Text: "Bank matching"}}}); points != 0 {
		t.Errorf("an honest mail: %v", hits)
	}
}

func TestCallerMailIsJudged(t *testing.T) {
	b := brandtest.All()[0]
	in := complete(b, "launch")
	in["drafts"] = map[string]any{"emails": []any{map[string]any{"subject": "RE: GUARANTEED GROWTH!!!", "body": "Hi {{first_name}},\n\nWe are the world's leading invoicing platform."}}}
	out, r := call(t, in, remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if out.Emails[0].Publishable {
		t.Error("a deceptive mail passes")
	}
	raw, err := json.Marshal(out.Checks)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{"email.subject.truthful", "placeholder", "claim.unsupported"} {
		if !strings.Contains(string(raw), rule) {
			t.Errorf("%s is not named: %s", rule, raw)
		}
	}
}

func TestGolden(t *testing.T) {
	b := brandtest.All()[0]
	out, r := call(t, complete(b, "launch"), remembered(b))
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var w strings.Builder
	for _, e := range out.Emails {
		fmt.Fprintf(&w, "== mail %d: %s (%s)\n", e.N, e.Purpose, e.Delay)
		for _, r := range e.SubjectLadder {
			fmt.Fprintf(&w, "subject (%s): %s\n", r.Rung, r.Text)
		}
		fmt.Fprintf(&w, "preheader: %s\n\n%s\n\n-- \n%s\n\n", e.Preheader, e.BodyText, e.Footer)
	}
	brandtest.Golden(t, "launch.txt", w.String())
}
