package auth

import (
	"testing"

	"github.com/sallyport-dev/sallyport/core"
)

// A key can never do more than the person it acts for may do now.
func TestKeyOfADemotedOwnerIsDemotedToo(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	if _, err := f.AddUser(ctx, owner, NewUser{Email: "grace@example.com", Password: testPassword, Role: core.UserRoleOwner}); err != nil {
		t.Fatal(err)
	}
	grace, err := f.OnThisMachine(ctx, "grace@example.com")
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.CreateKey(ctx, grace, NewKey{Name: "svc", Kind: core.APIKeyKindService, Scopes: []string{core.ScopeRunsRead, core.ScopeActionsApprove, core.ScopeKeysManage}})
	if err != nil {
		t.Fatal(err)
	}
	for role, may := range map[core.UserRole][]string{core.UserRoleApprover: {core.ScopeRunsRead, core.ScopeActionsApprove}, core.UserRoleViewer: {core.ScopeRunsRead}} {
		if _, err := f.EditUser(ctx, owner, grace.ID, &role, nil); err != nil {
			t.Fatal(err)
		}
		p, err := f.FromKey(ctx, *made.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, scope := range core.Scopes() {
			want := false
			for _, s := range may {
				want = want || s == scope
			}
			if p.Can(scope) != want {
				t.Errorf("key of a %s: %s is %v", role, scope, p.Can(scope))
			}
		}
	}
}

// What was typed for one thing opens no other: set-up tokens, session tokens, form
// tokens and keys are not interchangeable.
func TestCredentialsAreNotInterchangeable(t *testing.T) {
	f, owner := settled(t)
	ctx := t.Context()
	session, err := f.SignIn(ctx, SignIn{Email: testEmail, Password: testPassword, IP: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.FromCredential(ctx, session.Token); err == nil {
		t.Error("a session token was taken as an access token")
	}
	if err := f.CheckSetupToken(ctx, session.Token); err == nil {
		t.Error("a session token was taken as a set-up token")
	}
	tok, err := f.MintToken(ctx, owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.FromSession(ctx, tok.Token); err == nil {
		t.Error("an access token was taken as a session")
	}
	if err := f.CheckFormToken(owner, f.FormToken(session.Principal)); err == nil { // a token's principal has no session
		t.Error("a form was taken without a session")
	}
	again, err := f.SignIn(ctx, SignIn{Email: testEmail, Password: testPassword, IP: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	if again.Token == session.Token || f.FormToken(again.Principal) == f.FormToken(session.Principal) {
		t.Error("a second sign-in shares secrets with the first")
	}
}
