package web

import (
	"net/http"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/auth"
)

func (s *Site) home(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/inbox", http.StatusSeeOther)
}

func (s *Site) setupForm(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if err := s.Auth.CheckSetupToken(r.Context(), token); err != nil {
		s.fail(w, r, err)
		return
	}
	s.show(w, r, core.Anonymous(), http.StatusOK, "setup", page{Title: "Set up", Data: map[string]any{"Setup": token, "Min": auth.MinPassword}})
}

func (s *Site) setup(w http.ResponseWriter, r *http.Request) {
	email, password, token := r.PostFormValue("email"), r.PostFormValue("password"), r.PostFormValue("setup")
	// The token is what lets this form in; without it anybody who came first would be the owner.
	if token == "" {
		s.fail(w, r, core.Errf(core.KindForbidden, "setup_token_missing", "Open the set-up address that the host printed when it started."))
		return
	}
	_, err := s.Auth.Init(r.Context(), auth.Init{Email: email, Password: password, SetupToken: token, IP: addressOf(r)})
	if core.IsKind(err, core.KindInvalid) {
		s.show(w, r, core.Anonymous(), http.StatusUnprocessableEntity, "setup", page{Title: "Set up", Problem: problemOf(err), Data: map[string]any{"Setup": token, "Email": email, "Min": auth.MinPassword}})
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.enter(w, r, email, password, "/inbox")
}

func (s *Site) signInForm(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	data := map[string]any{"Next": local(q.Get("next")), "Again": q.Get("again") != ""}
	if p, err := s.Auth.FromCookie(r); err == nil {
		data["Email"] = p.Label // the usual case: the session is only too old to decide
	}
	if ready, err := s.Auth.Initialised(r.Context()); err == nil && !ready {
		s.fail(w, r, core.Errf(core.KindForbidden, "not_set_up", "Nobody has set this installation up. Open the address that the host printed when it started, or run `sallyport init`."))
		return
	}
	s.show(w, r, core.Anonymous(), http.StatusOK, "signin", page{Title: "Sign in", Data: data})
}

func (s *Site) signIn(w http.ResponseWriter, r *http.Request) {
	s.enter(w, r, r.PostFormValue("email"), r.PostFormValue("password"), local(r.PostFormValue("next")))
}

// enter signs a person in and goes on to next.
func (s *Site) enter(w http.ResponseWriter, r *http.Request, email, password, next string) {
	session, err := s.Auth.SignIn(r.Context(), auth.SignIn{Email: email, Password: password, IP: addressOf(r), UserAgent: r.UserAgent()})
	if err != nil {
		e := core.AsError(err)
		if e.Kind == core.KindInternal {
			s.fail(w, r, err)
			return
		}
		s.show(w, r, core.Anonymous(), e.Kind.Status(), "signin", page{Title: "Sign in", Problem: problemOf(err), Data: map[string]any{"Next": next, "Email": email, "Again": r.PostFormValue("again") != ""}})
		return
	}
	if old, err := s.Auth.FromCookie(r); err == nil { // signing in again ends the session before
		_ = s.Auth.SignOut(r.Context(), old)
	}
	s.Auth.SetCookie(w, session)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s *Site) signOut(w http.ResponseWriter, r *http.Request, p core.Principal) {
	if err := s.Auth.SignOut(r.Context(), p); err != nil {
		s.fail(w, r, err)
		return
	}
	s.Auth.ClearCookie(w)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
