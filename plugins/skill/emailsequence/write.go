package emailsequence

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// email is one drafted mail.
type email struct {
	AssetID       string            `json:"assetId"`
	N             int               `json:"n"`
	Purpose       string            `json:"purpose"`
	Delay         string            `json:"delay"`
	SendWindow    string            `json:"sendWindow"`
	SubjectLadder []rung            `json:"subjectLadder"`
	Preheader     string            `json:"preheader"`
	BodyMarkdown  string            `json:"bodyMarkdown"`
	BodyText      string            `json:"bodyText"`
	BodyHTML      string            `json:"bodyHtml"`
	CTA           *callToAction     `json:"cta,omitempty"`
	MergeFields   []string          `json:"mergeFields"`
	Footer        string            `json:"footer"`
	Headers       map[string]string `json:"headers"`
	StopRules     []string          `json:"stopRules"`
	SpamPoints    float64           `json:"spamPoints"`
	EvidenceIDs   []string          `json:"evidenceIds"`
	Publishable   bool              `json:"publishable"`
}

type rung struct {
	Rung string `json:"rung"`
	Text string `json:"text"`
	Len  int    `json:"len"`
}

type callToAction struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

// work is what one call writes from.
type work struct {
	*brand.Desk
	in       input
	out      *output
	link     string
	label    string
	subjects []string
	bodies   []string
}

// mail is the plan of one mail of a sequence: what it is for and the facts it tells, in order.
type mail struct {
	purpose string
	day     int
	roles   []draft.Role
}

// sequences are the plans by type. Each mail says one new true thing; one without evidence is left out.
var sequences = map[string][]mail{
	"launch": {
		{"announce what is new", 0, []draft.Role{draft.Change, draft.Capability, draft.Audience}},
		{"show how it works", 2, []draft.Role{draft.Capability, draft.Answer}},
		{"show the result", 5, []draft.Role{draft.Proof, draft.Problem, draft.Capability}},
		{"say what it does not do and ask for questions", 9, []draft.Role{draft.Limit, draft.Answer, draft.Price}},
	},
	"onboarding": {
		{"help with the first step", 0, []draft.Role{draft.Capability, draft.Answer}},
		{"show the next thing worth doing", 2, []draft.Role{draft.Capability, draft.Change}},
		{"answer a common question", 5, []draft.Role{draft.Answer, draft.Limit}},
		{"show what others reached", 9, []draft.Role{draft.Proof, draft.Capability}},
	},
	"nurture": {
		{"name the problem", 0, []draft.Role{draft.Problem, draft.Capability}},
		{"show how it works", 2, []draft.Role{draft.Capability, draft.Answer}},
		{"show the result", 5, []draft.Role{draft.Proof, draft.Audience}},
		{"compare honestly", 9, []draft.Role{draft.Comparison, draft.Limit, draft.Price}},
	},
	"winback": {
		{"say what changed since", 0, []draft.Role{draft.Change, draft.Capability}},
		{"say what else changed", 2, []draft.Role{draft.Change, draft.Answer}},
		{"show the result", 5, []draft.Role{draft.Proof, draft.Capability}},
		{"ask what was missing", 9, []draft.Role{draft.Limit, draft.Answer}},
	},
	"update": {
		{"say what is new", 0, []draft.Role{draft.Change, draft.Capability}},
		{"say what else is new", 2, []draft.Role{draft.Change, draft.Answer}},
		{"show how it works", 5, []draft.Role{draft.Capability, draft.Capability}},
		{"answer a common question", 9, []draft.Role{draft.Answer, draft.Limit}},
	},
}

// write drafts the sequence mail by mail.
func (w *work) write(ctx context.Context, c *sdk.Call) error {
	w.out.Requested = w.in.Emails
	for _, plan := range sequences[w.in.Type] {
		if len(w.out.Emails) == w.in.Emails {
			break
		}
		e, ok := w.compose(plan)
		if !ok {
			w.out.Because = append(w.out.Because, "no evidence to "+plan.purpose)
			continue
		}
		checked := w.judge(e)
		if !checked.Publishable {
			w.out.Because = append(w.out.Because, "the mail to "+plan.purpose+" did not pass: "+firstBlock(checked.Checks))
			continue
		}
		w.subjects = append(w.subjects, subjectOf(e))
		w.bodies = append(w.bodies, e.BodyText)
		if err := w.store(ctx, c, e, checked, draft.Deterministic); err != nil {
			return err
		}
		w.out.Timing = append(w.out.Timing, timing{e.N, plan.day})
	}
	if len(w.out.Emails) == 0 {
		return draft.NothingToSay("e-mails")
	}
	return nil
}

// compose tells the facts of a plan. The first role that has evidence leads; without any there is no mail.
func (w *work) compose(plan mail) (email, bool) {
	var lines []draft.Line
	for _, role := range plan.roles {
		fact, ok := w.Pool.Best(role, func(f draft.Fact) bool {
			told := slices.ContainsFunc(lines, func(l draft.Line) bool { return l.Fact.ID == f.ID || l.Fact.Like(f) > 0.6 })
			before := slices.ContainsFunc(w.bodies, func(body string) bool { return strings.Contains(body, draft.Unlabelled(f.Text)) })
			return !told && !before && draft.Supported(w.Index, draft.Realise(f))
		})
		if ok {
			lines = append(lines, draft.Line{Role: role, Text: draft.Realise(fact), Fact: fact})
		}
	}
	if len(lines) == 0 {
		return email{}, false
	}
	e := email{
		N: len(w.out.Emails) + 1, Purpose: plan.purpose, Delay: fmt.Sprintf("P%dD", plan.day), SendWindow: "Tuesday to Thursday, 09:00–11:00 of the recipient (default)",
		MergeFields: []string{}, Footer: footer(w.in, w.Brand), Headers: headers(w.in),
		StopRules: []string{"conversion", "reply", "unsubscribe", "bounce"}, EvidenceIDs: []string{},
	}
	e.SubjectLadder = w.ladder(lines)
	e.Preheader = w.preheader(lines, e.SubjectLadder)
	for _, line := range lines {
		w.Pool.Take(line.Fact)
	}
	e.body(w, lines)
	return e, len(e.SubjectLadder) > 0
}

// body writes the mail: greeting, one statement a paragraph, one link, the sender.
func (e *email) body(w *work, lines []draft.Line) {
	var statements []string
	for _, line := range lines {
		statements = append(statements, line.Text)
	}
	paragraphs := append([]string{"Hi,"}, draft.Named(statements, w.Brand)...)
	if w.link != "" {
		label := w.label
		if label == "" {
			label = "Read more"
		}
		e.CTA = &callToAction{label, draft.WithUTM(w.link, "email", "email", fmt.Sprintf("%s-mail-%d", w.in.Type, e.N))}
		paragraphs = append(paragraphs, label+": "+e.CTA.Href)
	} else {
		paragraphs = append(paragraphs, "Questions? Reply to this mail.")
	}
	name := w.in.Sender.Name
	if name == "" {
		name = w.Brand
	}
	paragraphs = append(paragraphs, name)
	e.BodyText = strings.Join(paragraphs, "\n\n")
	e.BodyMarkdown = e.BodyText
	if e.CTA != nil {
		e.BodyMarkdown = strings.Replace(e.BodyText, e.CTA.Text+": "+e.CTA.Href, "["+e.CTA.Text+"]("+e.CTA.Href+")", 1)
	}
	e.BodyHTML = bodyHTML(e.BodyText)
}

const maxSubject = 60

// ladder offers up to five subjects that say different things; a rung without evidence is left out. Subjects of earlier
// mails are not used again.
func (w *work) ladder(lines []draft.Line) []rung {
	out := []rung{}
	add := func(name, s string) {
		s = strings.TrimRight(draft.Fit(s, maxSubject, text.Graphemes), ".")
		if s == "" || text.WordCount(s) < 2 || !draft.Supported(w.Index, s) || deceptive(s) != "" {
			return
		}
		near := func(other string) bool { return text.StemOverlap(other, s) > 0.5 }
		if slices.ContainsFunc(w.subjects, near) || slices.ContainsFunc(out, func(r rung) bool { return strings.EqualFold(r.Text, s) || near(r.Text) }) {
			return
		}
		out = append(out, rung{name, s, text.Graphemes(s)})
	}
	for _, line := range lines {
		if line.Role != draft.Answer {
			add("plain fact", draft.Named([]string{line.Text}, w.Brand)[0])
			add("plain fact", line.Text)
		}
	}
	for _, line := range lines {
		if line.Role == draft.Proof || line.Role != draft.Answer && len(text.Quantities(line.Text)) > 0 {
			add("number", draft.NumberFirst(draft.FirstSentence(line.Text)))
			add("number", w.Brand+": "+draft.FromTo(line.Text))
		}
		if line.Role == draft.Answer {
			add("question", line.Fact.Question)
		}
		if line.Fact.Heading != "" && !strings.HasSuffix(line.Fact.Heading, "?") {
			add("named new thing", line.Fact.Heading)
		}
	}
	for _, fact := range w.Pool.All(draft.Problem) {
		if question := draft.AsQuestion(draft.FirstSentence(fact.Text)); strings.HasSuffix(question, "?") {
			add("question", question)
		}
	}
	if tagline := w.DNA().Identity.Tagline; tagline != "" && len(w.subjects) == 0 {
		add("outcome", tagline)
	}
	return out[:min(5, len(out))]
}

// preheader continues the subject with another fact, of 40 to 90 characters.
func (w *work) preheader(lines []draft.Line, subjects []rung) string {
	rule := draft.Rule("email.preheader")
	candidates := []string{}
	for i := len(lines) - 1; i >= 0; i-- {
		candidates = append(candidates, lines[i].Text)
	}
	for _, fact := range w.Pool.All(draft.Capability) {
		candidates = append(candidates, draft.Realise(fact))
	}
	for _, s := range candidates {
		s = draft.Fit(s, rule.Max(), text.Graphemes)
		if text.Graphemes(s) >= 40 && draft.Supported(w.Index, s) && !slices.ContainsFunc(subjects, func(r rung) bool { return text.StemOverlap(s, r.Text) > 0.5 }) {
			return s
		}
	}
	return ""
}

func subjectOf(e email) string {
	if len(e.SubjectLadder) == 0 {
		return ""
	}
	return e.SubjectLadder[0].Text
}

func (w *work) judge(e email) draft.Checked {
	slots := []draft.Slot{{Path: "preheader", Text: e.Preheader}, {Path: "body", Text: strings.TrimPrefix(e.BodyText, "Hi,\n\n")}}
	for i, r := range e.SubjectLadder {
		slots = append(slots, draft.Slot{Path: fmt.Sprintf("subject[%d]", i), Text: r.Text})
	}
	checked := draft.Checker{Index: w.Index}.Check(slots, nil)
	if near := slices.IndexFunc(w.bodies, func(body string) bool { return text.NearDuplicate(body, e.BodyText) > 0.35 }); near >= 0 {
		checked.Add("email.distinct", false, draft.Block, fmt.Sprintf("says nearly the same as mail %d", near+1))
	}
	legal(e, &checked)
	return checked
}

func firstBlock(checks []sdk.Check) string {
	for _, check := range checks {
		if !check.OK && check.Severity == draft.Block {
			return check.Detail
		}
	}
	return "blocked"
}

func (w *work) store(ctx context.Context, c *sdk.Call, e email, checked draft.Checked, origin string) error {
	e.EvidenceIDs, e.Publishable = checked.EvidenceIDs(), checked.Publishable
	e.SpamPoints, _ = spam(e)
	view, err := w.out.Store(ctx, c, asset(e, origin), checked, map[string]any{"email": e})
	if err != nil {
		return err
	}
	e.AssetID = view.ID
	w.out.Emails = append(w.out.Emails, e)
	return nil
}

// check judges the caller's own mails and leaves their text as it is.
func (w *work) check(ctx context.Context, c *sdk.Call) error {
	w.out.Requested = len(w.in.Drafts.Emails)
	for i, given := range w.in.Drafts.Emails {
		e := email{
			N: i + 1, Purpose: "written by the caller", Delay: "P0D", SendWindow: "as the caller decides", Preheader: "",
			SubjectLadder: []rung{{"caller", given.Subject, text.Graphemes(given.Subject)}}, BodyText: given.Body, BodyMarkdown: given.Body, BodyHTML: bodyHTML(given.Body),
			MergeFields: []string{}, Footer: footer(w.in, w.Brand), Headers: headers(w.in), StopRules: []string{"conversion", "reply", "unsubscribe", "bounce"}, EvidenceIDs: []string{},
		}
		checked := w.judge(e)
		w.bodies = append(w.bodies, e.BodyText)
		if err := w.store(ctx, c, e, checked, draft.Caller); err != nil {
			return err
		}
		w.out.Timing = append(w.out.Timing, timing{e.N, 0})
	}
	return nil
}
