// Package web serves the pages on which people set up, sign in, look and decide. Every
// page works without scripts: forms post and redirect. A GET decides nothing. Text of
// plugins, providers and callers is text: it is escaped, and characters that hide or
// reorder are shown as escapes.
package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"log/slog"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/tool"
)

// maxForm is the largest form that is read. An edit posts every text of an input.
const maxForm = 2 << 20

// Connectors tells what a workspace is connected to, and connects it.
type Connectors interface {
	Catalog(ctx context.Context, p core.Principal) ([]core.Connector, error)
	Put(ctx context.Context, p core.Principal, provider string, c connector.Credentials) (*core.Connector, error)
}

// Deps is what the pages stand on.
type Deps struct {
	Auth       *auth.Service
	Runs       *run.Service
	Approval   *approval.Service
	Tools      *tool.Dispatcher
	Connectors Connectors // the page of connectors is left out when nil
	Audit      *audit.Log
	Clock      core.Clock
	Log        *slog.Logger
	BaseURL    string
	// Banner is shown on every page, for example that plugins run unjailed; may be empty.
	Banner string
}

// Site serves the pages.
type Site struct {
	Deps
	pages  map[string]*template.Template
	assets string // version of the static files, so that they may be cached for ever
}

// New parses the templates and returns the handler of every page.
func New(d Deps) (http.Handler, error) {
	s := &Site{Deps: d, pages: map[string]*template.Template{}}
	for _, name := range []string{"setup", "signin", "inbox", "runs", "run", "review", "connectors", "audit", "message"} {
		t, err := template.New(name).Funcs(funcs(d.Clock)).ParseFS(files, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		s.pages[name] = t
	}
	sum := sha256.New()
	for _, name := range []string{"app.css", "icon.svg"} {
		b, err := files.ReadFile("static/" + name)
		if err != nil {
			return nil, err
		}
		sum.Write(b)
	}
	s.assets = hex.EncodeToString(sum.Sum(nil)[:6])
	return s.routes(), nil
}

func (s *Site) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.headers, s.sameOrigin)
	r.Get("/static/{file:app.css|icon.svg}", s.static)
	r.Get("/", s.home)
	r.Get("/setup", s.setupForm)
	r.Post("/setup", s.setup)
	r.Get("/login", s.signInForm)
	r.Post("/login", s.signIn)
	r.Get("/inbox", s.person(s.inbox))
	r.Get("/runs", s.person(s.runs))
	r.Get("/runs/{id}", s.person(s.run))
	r.Get("/review/{id}", s.person(s.review))
	if s.Connectors != nil {
		r.Get("/connectors", s.person(s.connectors))
		r.Post("/connectors/{provider}", s.form(s.connect))
	}
	r.Get("/audit", s.person(s.audit))
	r.Post("/logout", s.form(s.signOut))
	r.Post("/review/{id}/{verb:approve|reject}", s.form(s.decideRun))
	r.Post("/actions/{id}/{verb:approve|reject|revoke}", s.form(s.decideAction))
	r.Post("/actions/{id}/edit", s.form(s.edit))
	r.Post("/actions/{id}/retry", s.form(s.retry))
	r.Post("/actions/{id}/done", s.form(s.done))
	r.Post("/actions/{id}/reconcile", s.form(s.reconcile))
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, core.Errf(core.KindNotFound, "no_such_page", "There is no page at this address."))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		s.showMessage(w, r, http.StatusMethodNotAllowed, "That did not work", "This address takes another kind of request. Use the buttons of the pages.")
	})
	return r
}

func (s *Site) static(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // the address carries the version
	http.ServeFileFS(w, r, files, "static/"+chi.URLParam(r, "file"))
}

// headers keeps scripts, frames, foreign resources and the referrer out of every page.
func (s *Site) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses posts that another site's page began. Requests without any origin
// come from no browser; they still need the token of a form.
func (s *Site) sameOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.showMessage(w, r, http.StatusForbidden, "Not allowed", "This form was sent by a page of another site. Nothing was changed.")
	}))
	return guard.Handler(next)
}

type handler func(w http.ResponseWriter, r *http.Request, p core.Principal)

// person lets signed-in people in and sends others to sign in, and back afterwards.
func (s *Site) person(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Auth.FromCookie(r)
		if core.IsKind(err, core.KindUnauthenticated) {
			back := "/inbox"
			if r.Method == http.MethodGet {
				back = r.URL.RequestURI()
			}
			http.Redirect(w, r, signInAt(back, false), http.StatusSeeOther)
			return
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		p.RequestID, p.IP, p.Client = w.Header().Get("X-Request-Id"), addressOf(r), "web"
		next(w, r, p)
	}
}

// form is person for posts: the form must have been made for this session.
func (s *Site) form(next handler) http.HandlerFunc {
	return s.person(func(w http.ResponseWriter, r *http.Request, p core.Principal) {
		if err := r.ParseForm(); err != nil {
			s.fail(w, r, core.Errf(core.KindTooLarge, "form_too_large", "The form is too large or broken. Nothing was changed."))
			return
		}
		if err := s.Auth.CheckFormToken(p, r.PostFormValue("token")); err != nil {
			s.fail(w, r, err)
			return
		}
		next(w, r, p)
	})
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
