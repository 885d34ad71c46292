package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/store"
)

func TestEveryPageOfARun(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(ownerMail)
	for path, empty := range map[string]string{"/inbox": "Nothing waits for a decision", "/runs": "No runs yet"} {
		contains(t, path, v.get(path).want(http.StatusOK).text(), empty)
	}
	runID := r.newRun("Get users for CSV export")
	v.get("/review/" + runID).want(http.StatusOK)
	contains(t, "review of nothing", v.text(), "This run proposes no actions")
	evidence, err := r.runs.SaveEvidence(t.Context(), r.ws, runID, []core.Evidence{{Kind: core.EvidenceKindRepoReadme, Source: "README.md", Locator: "line 3", Trust: core.EvidenceTrustObserved, Quote: new("Export all invoices of a month.")}})
	r.ok(err)
	asset, err := r.runs.SaveAsset(t.Context(), r.ws, runID, core.Asset{Kind: "email", Title: "Mail to readers", Channel: "email", Origin: core.AssetOriginDeterministic, Content: core.AssetContent{"subject": "CSV export", "body": "<b>Every</b> invoice", "n": 3},
		Claims:         []core.Claim{{Text: "Under 10 seconds", Verdict: core.AssetClaimsElemVerdictUnsupported}, {Text: "One file", Verdict: core.AssetClaimsElemVerdictSupported, EvidenceIds: []string{evidence[0].ID}}},
		GenericityRisk: &core.GenericityRisk{Band: core.GenericityRiskBandMedium, Score: 0.42, WorstSentences: []core.WorstSentence{{Text: "It saves you time.", Why: "Anyone could say it.", Fix: "Name the minutes."}}}})
	r.ok(err)
	with := func(p *approval.Proposal) {
		p.AssetRefs = []core.AssetRef{{ID: asset.ID, Revision: asset.Revision, Digest: asset.Digest}}
		p.EvidenceIDs = []string{evidence[0].ID}
	}
	mail := r.mail(runID, "CSV export", "Hello Grace,\n\nevery invoice of a month is one file now.\n", with)
	hook := r.hook(runID, "Invoices as one file.")
	hand := r.hook(runID, "x", byHand("Post on Product Hunt", "Invoices as one CSV file."))
	r.ready(runID)

	contains(t, "inbox", v.get("/inbox").want(http.StatusOK).text(), "(3) Inbox", "3 decisions wait for you", "Get users for CSV export", "Review 3 actions")
	contains(t, "runs", v.get("/runs").want(http.StatusOK).text(), "Get users for CSV export", "awaiting approval", "coding agent")
	contains(t, "run", v.get("/runs/"+runID).want(http.StatusOK).text(), "Mail to readers", "<b>Every</b> invoice", "Under 10 seconds", "README.md", "It saves you time.", "Proposed actions (3)")
	contains(t, "connectors", v.get("/connectors").want(http.StatusOK).text(), "1 of 2 connected", "Register a client", "echo <b>x</b>", "Developer token")
	v.get("/review/" + runID).want(http.StatusOK)
	contains(t, "review", v.text(), "(3) Review: Get users", "coding agent", "3 open decisions", "Cannot be unsent", `"Grace" <grace@reader.example>`, `"Acme" <launch@acme.example>`, "launch@acme.example → grace@reader.example",
		"every invoice of a month is one file now.", "mail.acme.example:587", "https://hooks.acme.example/launch", `{"type":"post.publish","data":{"text":"Invoices as one file."}}`,
		"Post on Product Hunt", "Tagline", "Read it aloud once.", "Unverified explanation", "0.42 of 1", "Name the minutes.", "Evidence (1)", "Export all invoices of a month.", "Approve all 3", "Timeline", "Asked by coding agent")
	for _, id := range []string{mail, hook, hand} {
		a := r.action(id)
		contains(t, "review", v.page.body, a.Digest)
		for _, sum := range a.ContentSha256 {
			contains(t, "review", v.page.body, sum)
		}
	}
	message := r.action(mail).Preview["steps"].([]any)[0].(map[string]any)["message"].(string)
	contains(t, "review", strings.ReplaceAll(v.text(), "\r", ""), strings.ReplaceAll(message, "\r", "")) // the exact bytes, whole
	if at, all := strings.Index(v.text(), "unsupported"), strings.Index(v.text(), "One file"); at < 0 || all < at {
		t.Error("what is not supported does not stand first")
	}
	contains(t, "audit", v.get("/audit").want(http.StatusOK).text(), "run.created", runID)
	contains(t, "a page that is not there", v.get("/nowhere").want(http.StatusNotFound).text(), "Not found")
	v.get("/static/app.css").want(http.StatusOK)
	v.get("/static/").want(http.StatusNotFound)
	v.get("/static/..%2fweb.go").want(http.StatusNotFound)
	if len(v.get("/review/"+runID).page.body) > 150<<10 {
		t.Errorf("the review page has %d bytes, too many for a slow line", len(v.page.body))
	}
}

func TestDecidingByForms(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	mail, no, hand := r.mail(runID, "News", "Hello\n"), r.hook(runID, "no"), r.hook(runID, "x", byHand("Post it", "We launched."))
	r.ready(runID)
	v := r.signedIn(ownerMail)
	review := "/review/" + runID

	v.get(review).submit("/actions/" + mail + "/approve").follow(review).want(http.StatusOK)
	r.is(mail, core.ActionStatusApproved)
	contains(t, "after the approval", v.text(), "Recorded: 1 approved.", "Receipt: the audit log then held", "root", "Approve by "+ownerMail)
	lacks(t, "the page after it", v.get(review).text(), "Recorded:")

	v.submit("/actions/"+no+"/reject", "reason", " ").want(http.StatusUnprocessableEntity)
	contains(t, "rejection without a reason", v.text(), "Say why")
	r.is(no, core.ActionStatusPending)
	v.submit("/actions/"+no+"/reject", "reason", "Not <b>now</b>").follow(review)
	r.is(no, core.ActionStatusRejected)
	contains(t, "after the rejection", v.text(), "“Not <b>now</b>”")

	v.submit("/actions/" + mail + "/revoke").follow(review)
	r.is(mail, core.ActionStatusRevoked)

	v.submit("/actions/" + hand + "/approve").follow(review)
	v.submit("/actions/"+hand+"/done", "url", "javascript:alert(1)").want(http.StatusUnprocessableEntity)
	r.is(hand, core.ActionStatusApproved)
	v.submit("/actions/"+hand+"/done", "url", "https://www.producthunt.com/posts/acme").follow(review)
	r.is(hand, core.ActionStatusSucceeded)
	contains(t, "after it was done", v.text(), "https://www.producthunt.com/posts/acme")
	if v.find("/actions/"+hand+"/approve") != nil {
		t.Error("what is done can be approved again")
	}
}

func TestSettlingAndDraftingAgain(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	lost, refused := r.hook(runID, "lost"), r.hook(runID, "refused")
	r.ready(runID)
	r.store(lost, func(a *store.Action) { a.Status = core.ActionStatusUnknown })
	r.store(refused, func(a *store.Action) { a.Status = core.ActionStatusFailed })
	v := r.signedIn(ownerMail)
	v.get("/review/" + runID)
	contains(t, "unknown outcome", v.text(), "It is not known whether this was sent.")
	settle := v.fields("/actions/" + lost + "/reconcile")
	settle.Set("note", "It stands in the channel.")
	settle.Del("happened")
	v.post("/actions/"+lost+"/reconcile", settle).want(http.StatusUnprocessableEntity)
	settle.Set("happened", "yes")
	v.post("/actions/"+lost+"/reconcile", settle).follow("/review/" + runID)
	r.is(lost, core.ActionStatusSucceeded)

	v.submit("/actions/" + refused + "/retry").follow("/review/" + runID)
	r.is(refused, core.ActionStatusSuperseded)
	again := r.action(*r.action(refused).SupersededBy)
	if again.Status != core.ActionStatusPending || v.find("/actions/"+again.ID+"/approve") == nil {
		t.Errorf("drafted again it is %s", again.Status)
	}
}

func TestDecidingOnAllAtOnce(t *testing.T) {
	for verb, want := range map[string]core.ActionStatus{"approve": core.ActionStatusApproved, "reject": core.ActionStatusRejected} {
		r := newRig(t)
		runID := r.newRun("Tell the world")
		ids := []string{r.hook(runID, "one"), r.mail(runID, "Two", "two\n")}
		r.ready(runID)
		v := r.signedIn(ownerMail)
		v.get("/review/"+runID).submit("/review/"+runID+"/"+verb, "reason", "All of it").follow("/review/" + runID)
		for _, id := range ids {
			r.is(id, want)
		}
		contains(t, "notice", v.text(), fmt.Sprintf("Recorded: 2 %s.", want))
	}
}

func TestAChangedActionIsNotDecidedOn(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	id, other := r.hook(runID, "before"), r.hook(runID, "other")
	r.ready(runID)
	v, editor := r.signedIn(ownerMail), r.signedIn(ownerMail)
	v.get("/review/" + runID)
	stale, pack := v.fields("/actions/"+id+"/approve"), v.fields("/review/"+runID+"/approve")

	editor.get("/review/"+runID).submit("/actions/"+id+"/edit", "field.data/text", "line 1\r\nline 2").follow("/review/" + runID)
	contains(t, "after the edit", editor.text(), "Saved as a new revision", "Revision 2", "line 2")
	if text := r.action(id).Input["data"].(map[string]any)["text"]; text != "line 1\nline 2" {
		t.Errorf("the input is %q", text)
	}

	for path, form := range map[string]url.Values{"/actions/" + id + "/approve": stale, "/review/" + runID + "/approve": pack} {
		v.post(path, form).want(http.StatusPreconditionFailed)
		contains(t, path, v.text(), "Something changed meanwhile.", "Nothing was changed by what you just did", "line 2", "Revision 2")
		r.is(id, core.ActionStatusPending)
		r.is(other, core.ActionStatusPending)
	}
	stale.Del("digest")
	v.post("/actions/"+id+"/approve", stale).want(http.StatusUnprocessableEntity) // seen, but said of nothing
	r.is(id, core.ActionStatusPending)
	v.submit("/actions/" + id + "/approve").follow("/review/" + runID) // the page below the problem is good
	r.is(id, core.ActionStatusApproved)
}

func TestEditingKeepsWhatWasNotTouched(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	text := "\n\n  starts with empty lines\nends </textarea><script>alert(1)</script>\t\n"
	id := r.mail(runID, `Quotes " and <tags>`, text)
	r.ready(runID)
	v := r.signedIn(ownerMail)
	edit := "/actions/" + id + "/edit"
	v.get("/review/"+runID).submit(edit, "field.to", "Alan <alan@reader.example>", "field.unknown", "x").follow("/review/" + runID)
	a := r.action(id)
	if a.Revision != 2 || a.Input["to"] != "Alan <alan@reader.example>" || a.Input["text"] != text || a.Input["subject"] != `Quotes " and <tags>` || a.Input["unknown"] != nil {
		t.Errorf("revision %d is %q", a.Revision, a.Input)
	}
	v.submit(edit, "field.to", "nobody").want(http.StatusUnprocessableEntity)
	contains(t, "a refused edit", v.text(), "That did not work.", "address")
	if r.action(id).Revision != 2 {
		t.Error("a refused edit made a revision")
	}
}

func TestAnOldSignInIsRenewed(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	id := r.hook(runID, "hello")
	r.ready(runID)
	v := r.signedIn(ownerMail)
	v.get("/review/" + runID)
	r.clock.turn(core.RecentSignIn + time.Second)
	v.submit("/actions/" + id + "/approve").follow("/login?again=1&next=%2Freview%2F" + runID + "%23" + id).want(http.StatusOK)
	r.is(id, core.ActionStatusPending)
	contains(t, "sign-in", v.page.body, "Sign in again to decide", ownerMail)
	v.submit("/login", "password", "wrong").want(http.StatusUnauthorized)
	contains(t, "second try", v.text(), "Sign in again to decide")
	v.submit("/login", "password", password).want(http.StatusSeeOther)
	if to := v.page.header.Get("Location"); to != "/review/"+runID+"#"+id {
		t.Errorf("back to %q", to)
	}
	r.is(id, core.ActionStatusPending) // signing in decides nothing
	v.follow("/review/" + runID).submit("/actions/" + id + "/approve").follow("/review/" + runID)
	r.is(id, core.ActionStatusApproved)
}

func TestRolesSeeWhatTheyMayDo(t *testing.T) {
	r := newRig(t)
	for name, role := range map[string]core.UserRole{"viewer": core.UserRoleViewer, "member": core.UserRoleMember, "approver": core.UserRoleApprover} {
		_, err := r.auth.AddUser(t.Context(), r.owner, auth.NewUser{Email: name + "@example.com", Password: password, Role: role})
		r.ok(err)
	}
	runID := r.newRun("Tell the world")
	id := r.hook(runID, "hello")
	second := r.hook(runID, "second")
	done := r.hook(runID, "x", byHand("Post it", "We launched."))
	r.ready(runID)
	o := r.signedIn(ownerMail)
	digest := o.get("/review/" + runID).fields("/actions/" + id + "/approve").Get("digest")
	o.submit("/actions/" + done + "/approve").follow("/review/")

	for name, sees := range map[string]struct{ approve, write bool }{"viewer": {}, "member": {write: true}, "approver": {true, true}} {
		v := r.signedIn(name + "@example.com")
		v.get("/review/" + runID).want(http.StatusOK)
		for action, want := range map[string]bool{"/actions/" + id + "/approve": sees.approve, "/review/" + runID + "/approve": sees.approve, "/actions/" + done + "/revoke": sees.approve,
			"/actions/" + id + "/reject": sees.write, "/actions/" + id + "/edit": sees.write, "/actions/" + done + "/done": sees.write} {
			if got := v.find(action) != nil; got != want {
				t.Errorf("%s sees %s: %v, want %v", name, action, got, want)
			}
		}
		if !sees.approve { // and guessing the form does not help
			token := v.fields("/logout").Get("token")
			v.post("/actions/"+id+"/approve", url.Values{"token": {token}, "digest": {digest}}).want(http.StatusForbidden)
		}
		if !sees.write {
			token := v.fields("/logout").Get("token")
			v.post("/actions/"+second+"/reject", url.Values{"token": {token}, "digest": {r.action(second).Digest}, "reason": {"no"}}).want(http.StatusForbidden)
			v.post("/actions/"+id+"/edit", url.Values{"token": {token}, "digest": {digest}, "field.data/text": {"mine"}}).want(http.StatusForbidden)
			v.get("/audit").want(http.StatusForbidden)
		}
	}
	r.is(id, core.ActionStatusPending)
	r.is(second, core.ActionStatusPending)
}

func TestForeignWorkspacesAreNotThere(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Secret plan")
	id := r.hook(runID, "secret words")
	r.ready(runID)
	r.stranger("eve@example.com")
	v := r.signedIn("eve@example.com")
	token := v.fields("/logout").Get("token")
	for _, path := range []string{"/runs/" + runID, "/review/" + runID, "/runs/run_none", "/review/run_none", "/review/..%2f..%2finbox"} {
		lacks(t, path, v.get(path).want(http.StatusNotFound).page.body, "Secret plan", "secret words")
	}
	for _, path := range []string{"/inbox", "/runs", "/audit"} {
		lacks(t, path, v.get(path).want(http.StatusOK).page.body, "Secret plan", runID)
	}
	form := url.Values{"token": {token}, "digest": {r.action(id).Digest}, "reason": {"x"}, "url": {"https://x.example"}, "note": {"x"}, "happened": {"yes"}}
	for _, verb := range []string{"approve", "reject", "revoke", "edit", "done", "reconcile", "retry"} {
		lacks(t, verb, v.post("/actions/"+id+"/"+verb, form).want(http.StatusNotFound).page.body, "secret words")
	}
	form.Set("digest", r.packDigest(runID))
	for _, verb := range []string{"approve", "reject"} {
		lacks(t, verb, v.post("/review/"+runID+"/"+verb, form).want(http.StatusNotFound).page.body, "Secret plan")
	}
	r.is(id, core.ActionStatusPending)
}

func TestPagesReloadOnlyWhenAsked(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	v := r.signedIn(ownerMail)
	for _, path := range []string{"/runs/" + runID, "/inbox"} {
		lacks(t, path, v.get(path).page.body, "http-equiv")
	}
	contains(t, "followed run", v.get("/runs/"+runID+"?follow=1").page.body, `http-equiv="refresh" content="3"`, "Stop")
	id := r.hook(runID, "hello")
	r.ready(runID)
	lacks(t, "a run at rest", v.get("/runs/"+runID+"?follow=1").page.body, "http-equiv")
	lacks(t, "a review at rest", v.get("/review/"+runID+"?follow=1").page.body, "http-equiv")
	v.submit("/actions/" + id + "/approve").follow("/review/" + runID)
	contains(t, "what is on its way", v.text(), "Something is on its way")
	contains(t, "followed review", v.get("/review/"+runID+"?follow=1").page.body, "http-equiv")
}
