package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/auth"
)

func TestConnectingByForm(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(ownerMail)
	form := "/connectors/google_ads"
	v.get("/connectors").want(http.StatusOK)
	if connected, open := strings.Index(v.text(), "E-mail (SMTP)"), strings.Index(v.text(), "Google Ads"); connected > open {
		t.Error("what is connected does not stand first")
	}
	if v.find("/connectors/smtp") != nil {
		t.Error("there is a form without fields")
	}

	e := core.Errf(core.KindInvalid, "invalid", "The form is not complete.")
	e.Fields = []core.FieldError{{Pointer: "/fields/account", Message: "is not an account"}}
	r.catalog.refuse = e
	v.submit(form, "field.name", "main", "field.account", `12"3`, "field.token", "secret-token").want(http.StatusUnprocessableEntity)
	contains(t, "refused form", v.text(), "fields/account: is not an account")
	if kept := v.fields(form); kept.Get("field.account") != `12"3` || kept.Get("field.name") != "main" {
		t.Errorf("what was typed is lost: %v", kept)
	}
	lacks(t, "refused form", v.page.body, "secret-token")

	r.catalog.refuse = core.Errf(core.KindForbidden, "weak_proof", "Sign in again.")
	v.submit(form).follow("/login?again=1&next=%2Fconnectors")
	r.catalog.refuse = nil
	v.get("/connectors").submit(form, "field.name", "main", "field.account", "123", "field.token", "").follow("/connectors")
	contains(t, "connected", v.text(), "Google Ads is connected.")
	if got := r.catalog.put; len(got) != 1 || got[0].Name != "main" || len(got[0].Fields) != 1 || got[0].Fields["account"] != "123" {
		t.Errorf("stored: %+v", got)
	}
	values := v.fields(form)
	values.Del("token")
	v.post(form, values).want(http.StatusForbidden)
}

func TestOnlyWhoMayConnectSeesTheForm(t *testing.T) {
	r := newRig(t)
	_, err := r.auth.AddUser(t.Context(), r.owner, auth.NewUser{Email: "approver@example.com", Password: password, Role: core.UserRoleApprover})
	r.ok(err)
	v := r.signedIn("approver@example.com")
	v.get("/connectors").want(http.StatusOK)
	if v.find("/connectors/google_ads") != nil {
		t.Error("an approver is offered to connect")
	}
	contains(t, "connectors", v.text(), "Developer token", "secret")
}
