package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/auth"
)

func TestSetUpOnceWithTheToken(t *testing.T) {
	r := emptyRig(t)
	v := r.visitor()
	v.get("/login").want(http.StatusForbidden)
	contains(t, "sign-in before set-up", v.text(), "sallyport init")
	v.get("/setup").want(http.StatusGone)
	v.get("/setup?token=guessed").want(http.StatusGone)

	v.post("/setup", url.Values{"email": {ownerMail}, "password": {password}}).want(http.StatusForbidden)
	v.post("/setup", url.Values{"email": {ownerMail}, "password": {password}, "setup": {"guessed"}}).want(http.StatusGone)
	if ready, err := r.auth.Initialised(t.Context()); err != nil || ready {
		t.Fatalf("set up without the token: %v %v", ready, err)
	}

	token, _, err := r.auth.NewSetupToken(t.Context())
	r.ok(err)
	v.get("/setup?token=" + url.QueryEscape(token)).want(http.StatusOK)
	contains(t, "set-up", v.text(), "Set up Sallyport")
	v.submit("/setup", "email", ownerMail, "password", "short").want(http.StatusUnprocessableEntity)
	contains(t, "set-up with a short password", v.page.body, `role="alert"`, ownerMail)
	v.submit("/setup", "email", ownerMail, "password", password).follow("/inbox").want(http.StatusOK)
	contains(t, "inbox", v.text(), "Nothing waits for a decision", ownerMail)

	v.get("/setup?token=" + url.QueryEscape(token)).want(http.StatusGone)
}

func TestSigningInLeadsBack(t *testing.T) {
	r := newRig(t)
	v := r.visitor()
	v.get("/runs?cursor=x").want(http.StatusSeeOther)
	if to := v.page.header.Get("Location"); to != "/login?next=%2Fruns%3Fcursor%3Dx" {
		t.Errorf("an unknown visitor is sent to %q", to)
	}
	v.get("/login?next=%2Faudit").want(http.StatusOK)
	v.submit("/login", "email", ownerMail, "password", "wrong").want(http.StatusUnauthorized)
	contains(t, "refused sign-in", v.page.body, `role="alert"`, ownerMail)
	lacks(t, "refused sign-in", v.page.body, "wrong\"")
	v.submit("/login", "email", ownerMail, "password", password).follow("/audit").want(http.StatusOK)

	old := v.client.Jar.Cookies(&url.URL{Scheme: "http", Host: r.Listener.Addr().String(), Path: "/"})
	v.submit("/logout").follow("/login")
	v.get("/inbox").want(http.StatusSeeOther)
	stolen := r.visitor()
	stolen.client.Jar.SetCookies(&url.URL{Scheme: "http", Host: r.Listener.Addr().String(), Path: "/"}, old)
	stolen.get("/inbox").want(http.StatusSeeOther)
}

func TestTheCookieCannotBeRead(t *testing.T) {
	r := newRig(t)
	v := r.visitor()
	v.get("/login").submit("/login", "email", ownerMail, "password", password).want(http.StatusSeeOther)
	cookie := v.page.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %q lacks %s", cookie, want)
		}
	}
}

func TestRedirectsStayOnThisSite(t *testing.T) {
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/\n/evil.example", "javascript:alert(1)", "evil.example", "", "/ /evil.example",
		"http:/evil.example", "///evil.example", "/%2f/evil.example\r\nSet-Cookie: a=b", "//user@evil.example/", "/\u0000/evil.example", " //evil.example"} {
		if to := local(next); to != "/inbox" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
	for _, next := range []string{"/review/run_1", "/review/run_1?follow=1#act_2", "/runs?cursor=a%2Fb", "/"} {
		if to := local(next); to != next {
			t.Errorf("%q leads to %q", next, to)
		}
	}
	r := newRig(t)
	v := r.visitor()
	v.get("/login?next=" + url.QueryEscape("/\t/evil.example"))
	if next := v.fields("/login").Get("next"); next != "/inbox" {
		t.Errorf("the form holds %q", next)
	}
	v.submit("/login", "email", ownerMail, "password", password, "next", "//evil.example").want(http.StatusSeeOther)
	if to := v.page.header.Get("Location"); to != "/inbox" {
		t.Errorf("signing in leads to %q", to)
	}
}

func TestAnEndedSessionLosesAPostButNotTheWay(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(ownerMail)
	r.clock.turn(auth.SessionIdle + time.Minute)
	v.post("/actions/act_x/approve", url.Values{"token": {"x"}}).want(http.StatusSeeOther)
	if to := v.page.header.Get("Location"); to != "/login?next=%2Finbox" { // the address of a post is no page
		t.Errorf("sent to %q", to)
	}
}

func TestFormsOfOthersAreRefused(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	id := r.hook(runID, "hello")
	r.ready(runID)
	v, other := r.signedIn(ownerMail), r.signedIn(ownerMail)
	foreign := other.get("/review/" + runID).fields("/logout").Get("token")
	v.get("/review/" + runID)
	approve := "/actions/" + id + "/approve"
	good := v.fields(approve)
	if good.Get("token") == foreign {
		t.Fatal("two sessions share the token of their forms")
	}
	with := func(token string) url.Values { return url.Values{"token": {token}, "digest": good["digest"]} }

	for name, send := range map[string]func(){
		"no token":      func() { v.post(approve, url.Values{"digest": good["digest"]}) },
		"empty token":   func() { v.post(approve, with("")) },
		"foreign token": func() { v.post(approve, with(foreign)) },
		"token in address": func() {
			v.post(approve+"?token="+url.QueryEscape(good.Get("token")), url.Values{"digest": good["digest"]})
		},
		"cross-site": func() { v.post(approve, good, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example") },
		"same-site":  func() { v.post(approve, good, "Sec-Fetch-Site", "same-site", "Origin", "http://sub.localhost") },
		"foreign origin": func() {
			v.do(http.MethodPost, approve, strings.NewReader(good.Encode()), "Origin", "https://evil.example")
		},
		"null origin": func() { v.do(http.MethodPost, approve, strings.NewReader(good.Encode()), "Origin", "null") },
	} {
		send()
		if v.page.status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, v.page.status)
		}
		r.is(id, core.ActionStatusPending)
	}
	for _, path := range []string{"/logout", "/review/" + runID + "/approve", "/review/" + runID + "/reject", "/actions/" + id + "/reject", "/actions/" + id + "/edit", "/actions/" + id + "/revoke", "/actions/" + id + "/done", "/actions/" + id + "/reconcile", "/actions/" + id + "/retry"} {
		v.post(path, with(foreign)).want(http.StatusForbidden)
	}
	v.post("/login", url.Values{"email": {ownerMail}, "password": {password}}, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example").want(http.StatusForbidden)
	// A body of another kind is not read as a form.
	v.do(http.MethodPost, approve, strings.NewReader(`{"token":"`+good.Get("token")+`"}`), "Content-Type", "application/json", "Origin", r.URL)
	v.want(http.StatusForbidden)
	v.post(approve, good).want(http.StatusSeeOther) // and ours is taken
}

func TestGettingDecidesNothing(t *testing.T) {
	r := newRig(t)
	runID := r.newRun("Tell the world")
	id := r.hook(runID, "hello")
	r.ready(runID)
	v := r.signedIn(ownerMail)
	form := v.get("/review/" + runID).fields("/actions/" + id + "/approve").Encode()
	for _, verb := range []string{"approve", "reject", "revoke", "edit", "done", "reconcile", "retry"} {
		v.get("/actions/" + id + "/" + verb + "?" + form).want(http.StatusMethodNotAllowed)
	}
	v.get("/review/" + runID + "/approve?" + form).want(http.StatusMethodNotAllowed)
	v.get("/logout?" + form).want(http.StatusMethodNotAllowed)
	before := r.action(id)
	v.get("/review/" + runID + "?follow=1").want(http.StatusOK)
	if after := r.action(id); after.Version != before.Version {
		t.Errorf("looking changed version %d to %d", before.Version, after.Version)
	}
	v.get("/inbox").want(http.StatusOK)
}
