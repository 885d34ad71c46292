package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// hostile is text that would act, hide or mislead if a page let it.
var hostile = []struct{ name, text, shown string }{
	{"script", `<script>alert(1)</script><img src=x onerror=alert(1)>`, `&lt;script&gt;alert(1)`},
	{"attribute", `" onmouseover="alert(1)" style="position:fixed`, `&#34; onmouseover=&#34;alert(1)`},
	{"form", `</pre></div><form action="https://evil.example"><button>Approve`, `&lt;/pre&gt;&lt;/div&gt;&lt;form`},
	{"comment", `--><!--`, `--&gt;&lt;!--`},
	{"entity", `&lt;b&gt; &amp; &#x202e;`, `&amp;lt;b&amp;gt; &amp;amp; &amp;#x202e;`},
	{"template", `{{.Token}} {{template "token"}}`, `{{.Token}}`},
	{"override", "pay \u202e001 REU\u202c now", `202E`},
	{"isolate", "a\u2066b\u2069c", `2066`},
	{"zero width", "ac\u200bme.example\u200d\ufeff", `200B`},
	{"soft hyphen", "ac\u00adme", `00AD`},
	{"tag letters", "x\U000e0041\U000e0042", `E0041`},
	{"bell and escape", "\x07\x1b[2Jwiped", `001B`},
	{"nul", "a\x00b", `0000`},
	{"line separator", "a\u2028b\u2029c", `2028`},
	{"filler", "a\u3164b\uffa0c\u115fd", `3164`},
	{"private use", "a\ue000b", `E000`},
	{"no-break", "a\u00a0b", `00A0`},
}

func TestVisibleLetsNothingThrough(t *testing.T) {
	for _, c := range hostile {
		got := string(visible(c.text))
		contains(t, c.name, got, c.shown)
		for _, r := range got {
			if isHidden(r) && r != '\n' && r != '\t' {
				t.Errorf("%s: %U is still there", c.name, r)
			}
		}
		bare := strings.NewReplacer(`<span class="hidden-char">`, "", `</span>`, "").Replace(got)
		if strings.ContainsAny(bare, `<>"'`) {
			t.Errorf("%s: markup in %q", c.name, bare)
		}
		for _, r := range plain(c.text) {
			if isHidden(r) {
				t.Errorf("%s: %U is in a title", c.name, r)
			}
		}
	}
	if got := string(visible("a\xff\xfeb\ufffd")); got != `a<span class="hidden-char">byte FF</span><span class="hidden-char">byte FE</span>b`+"\ufffd" {
		t.Errorf("bytes that are no text: %q", got)
	}
	if got := string(visible("one\r\ntwo\rthree\tfour")); got != "one\ntwo<span class=\"hidden-char\">U+000D</span>three\tfour" {
		t.Errorf("line ends: %q", got)
	}
	for _, fine := range []string{"naïve – “quoted” 你好 שלום مرحبا 👍🏽 ❤️", "a b"} {
		if got := string(visible(fine)); got != fine {
			t.Errorf("%q became %q", fine, got)
		}
	}
}

func TestHostileTextIsInertEverywhere(t *testing.T) {
	r := newRig(t)
	var all []string
	for _, c := range hostile {
		if c.name != "nul" { // no interface takes it
			all = append(all, c.text)
		}
	}
	text := strings.Join(all, "\n")
	line := strings.ReplaceAll(text, "\n", " ")
	runID := r.newRun(line)
	evidence, err := r.runs.SaveEvidence(t.Context(), r.ws, runID, []core.Evidence{{Kind: core.EvidenceKindURL, Source: line, Locator: line, Trust: core.EvidenceTrustThirdParty, Fact: &text, Quote: &text, URL: new("javascript:alert(1)")}})
	r.ok(err)
	asset, err := r.runs.SaveAsset(t.Context(), r.ws, runID, core.Asset{Kind: "email", Title: line, Channel: line, Origin: core.AssetOriginModel, Content: core.AssetContent{"body": text, "list": []any{text}},
		Claims:         []core.Claim{{Text: text, Verdict: core.AssetClaimsElemVerdictPartial}},
		GenericityRisk: &core.GenericityRisk{Band: core.GenericityRiskBandHigh, Score: 1, WorstSentences: []core.WorstSentence{{Text: text, Why: text, Fix: text}}}})
	r.ok(err)
	with := func(p *approval.Proposal) {
		p.AssetRefs = []core.AssetRef{{ID: asset.ID, Revision: 1, Digest: asset.Digest}}
		p.EvidenceIDs = []string{evidence[0].ID}
		p.Sealed.Explanation, p.Sealed.Target = text, effect.Target{AccountID: line, Label: line}
		p.Channel = line
	}
	r.hook(runID, text, with)
	r.hook(runID, "x", func(p *approval.Proposal) {
		byHand(line, text)(p)
		with(p)
		p.Sealed.Manual.Fields = []effect.Pair{{Name: line, Value: text}}
		p.Sealed.Manual.Checklist = []string{text}
	})
	r.ready(runID)
	v := r.signedIn(ownerMail)
	for _, path := range []string{"/inbox", "/runs", "/runs/" + runID, "/review/" + runID, "/audit"} {
		body := v.get(path).want(http.StatusOK).page.body // get itself looks for scripts, handlers and foreign addresses
		lacks(t, path, body, "<script", "<img src=x", `action="https://evil`, "javascript:alert(1)\"")
		for i, c := range body {
			if isHidden(c) && c != '\n' && c != '\t' && !inField(body, i) {
				t.Errorf("%s: %U is on the page: %q", path, c, body[max(0, i-80):i])
				break
			}
		}
	}
	v.get("/review/" + runID)
	contains(t, "review", v.text(), "characters that cannot be seen", `\u{202E}`)
}

// inField reports whether a position stands in a field to edit: what is written there is
// what is sent, so it is not changed; it is judged by the bytes above it.
func inField(body string, at int) bool {
	open := max(strings.LastIndex(body[:at], "<textarea"), strings.LastIndex(body[:at], "<input"))
	return open > strings.LastIndex(body[:at], "</textarea>") && open > strings.LastIndex(body[:at], "<pre") && open > strings.LastIndex(body[:at], "<p ")
}

// raw puts the given bytes into the body of a webhook.
func raw(body string) func(*approval.Proposal) {
	return func(p *approval.Proposal) { p.Sealed.Steps[0].HTTP.Body = []byte(body) }
}

func TestWhatIsNotShownWholeCannotBeApproved(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	small, large := r.hook(runID, "small"), r.hook(runID, "large", raw("x"+strings.Repeat("é", 512<<10-4)+"THE END"))
	r.ready(runID)
	v := r.signedIn(ownerMail)
	v.get("/review/" + runID).want(http.StatusOK)
	contains(t, "review", v.text(), "Not everything could be shown", fmt.Sprintf("Only the first %d of %d bytes are shown.", showLimit-1, 1<<20))
	lacks(t, "review", v.page.body, "THE END", "byte C3")
	if v.find("/actions/"+large+"/approve") != nil || v.find("/review/"+runID+"/approve") != nil {
		t.Error("what is not shown can be approved")
	}
	if v.find("/actions/"+large+"/edit") != nil {
		t.Error("what is too large to show is put into fields")
	}
	if v.find("/actions/"+small+"/approve") == nil || v.find("/actions/"+large+"/reject") == nil {
		t.Error("what is shown cannot be approved, or the other not rejected")
	}
	// Nor by a form that is put together by hand.
	form := v.fields("/actions/" + small + "/approve")
	form.Set("digest", r.action(large).Digest)
	contains(t, "crafted form", v.post("/actions/"+large+"/approve", form).want(http.StatusUnprocessableEntity).text(), "too large to be shown whole")
	form.Set("digest", r.packDigest(runID))
	v.post("/review/"+runID+"/approve", form).want(http.StatusUnprocessableEntity)
	r.is(large, core.ActionStatusPending)
	r.is(small, core.ActionStatusPending)
	v.get("/review/"+runID).submit("/actions/"+large+"/reject", "reason", "Too long").follow("/review/")
	r.is(large, core.ActionStatusRejected)
}

func TestAPageHasRoomForSoMuch(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	var ids []string
	for i := range pageLimit/showLimit + 1 {
		ids = append(ids, r.hook(runID, "x", raw(strings.Repeat("y", showLimit-1)+fmt.Sprint(i%10))))
	}
	r.ready(runID)
	v := r.signedIn(ownerMail)
	v.get("/review/" + runID).want(http.StatusOK)
	last := ids[len(ids)-1]
	if v.find("/actions/"+last+"/approve") != nil || v.find("/actions/"+ids[0]+"/approve") == nil || v.find("/review/"+runID+"/approve") != nil {
		t.Error("the page offers what it has no room for, or not what it shows")
	}
	form := v.fields("/actions/" + ids[0] + "/approve")
	form.Set("digest", r.packDigest(runID))
	v.post("/review/"+runID+"/approve", form).want(http.StatusUnprocessableEntity)
	// Once others are out of the way there is room for it.
	for _, id := range ids[:2] {
		v.submit("/actions/"+id+"/reject", "reason", "no").follow("/review/")
	}
	v.submit("/actions/" + last + "/approve").want(http.StatusSeeOther)
	r.is(last, core.ActionStatusApproved)
}

func TestBytesThatAreNoTextAreShownAsBase64(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	r.hook(runID, "x", raw("\xff\xfe<script>\x00"))
	r.hook(runID, "x", raw("say \u202ehtiw"))
	r.ready(runID)
	v := r.signedIn(ownerMail)
	v.get("/review/" + runID).want(http.StatusOK)
	contains(t, "review", v.text(), "//48c2NyaXB0PgA=", "These bytes are not text", `say \u{202E}htiw`, "shown as escapes")
	lacks(t, "review", v.page.body, "\u202e")
}

func TestAFormThatIsTooLargeChangesNothing(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	id := r.hook(runID, "hello")
	r.ready(runID)
	v := r.signedIn(ownerMail)
	form := v.get("/review/" + runID).fields("/actions/" + id + "/edit")
	form.Set("field.data/text", strings.Repeat("x", maxForm))
	v.post("/actions/"+id+"/edit", form).want(http.StatusRequestEntityTooLarge)
	if r.action(id).Revision != 1 {
		t.Error("it was edited")
	}
}

func TestNoticesOfOthersAreNotShown(t *testing.T) {
	r := newRig(t)
	v, other := r.signedIn(ownerMail), r.signedIn(ownerMail)
	runID := r.newRun("Tell the world")
	id := r.hook(runID, "hello")
	r.ready(runID)
	other.get("/review/" + runID).submit("/actions/" + id + "/approve").want(http.StatusSeeOther)
	theirs, _, _ := strings.Cut(strings.TrimPrefix(other.page.header.Get("Set-Cookie"), noticeCookie+"="), ";")
	session := ""
	for _, c := range v.client.Jar.Cookies(v.address()) {
		session = c.String()
	}
	for _, notice := range []string{theirs, "", ".", "QXBwcm92ZSE", "QXBwcm92ZSE.QXBwcm92ZSE"} {
		v.do(http.MethodGet, "/inbox", nil, "Cookie", session+"; "+noticeCookie+"="+notice)
		if v.page.status != http.StatusOK || strings.Contains(v.page.body, `role="status"`) {
			t.Errorf("the notice %q is shown, or breaks the page", notice)
		}
	}
	contains(t, "its own notice", other.follow("/review/").page.body, `role="status"`, "Recorded: 1 approved.")
}
