// Package web serves the pages on which people set up, sign in, look and decide. Every
// page works without scripts: forms post and redirect. A GET changes nothing. Text of
// plugins, providers and callers is text: it is escaped, and characters that hide or
// reorder are shown as escapes.
package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/auth"
	"github.com/sallyport-dev/sallyport/core/run"
	"github.com/sallyport-dev/sallyport/core/tool"
)

// Deps is what the pages stand on.
type Deps struct {
	Auth     *auth.Service
	Runs     *run.Service
	Approval *approval.Service
	Tools    *tool.Dispatcher
	Audit    *audit.Log
	Clock    core.Clock
	Log      *slog.Logger
	BaseURL  string
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
	for _, name := range []string{"setup", "signin", "inbox", "runs", "run", "review", "audit", "message"} {
		t, err := template.New(name).Funcs(funcs(d.Clock.Now())).ParseFS(files, "templates/layout.html", "templates/run.html", "templates/"+name+".html")
		if err != nil {
			return nil, err
		}
		s.pages[name] = t
	}
	css, err := files.ReadFile("static/app.css")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(css)
	s.assets = hex.EncodeToString(sum[:6])
	return s.routes()
}

func (s *Site) routes() (http.Handler, error) {
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(s.headers, http.NewCrossOriginProtection().Handler)
	r.Get("/static/*", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		http.StripPrefix("/static/", http.FileServerFS(static)).ServeHTTP(w, r)
	})
	r.Get("/", s.home)
	r.Get("/setup", s.setupForm)
	r.Post("/setup", s.setup)
	r.Get("/login", s.signInForm)
	r.Post("/login", s.signIn)
	r.Get("/inbox", s.person(s.inbox))
	r.Get("/runs", s.person(s.runs))
	r.Get("/runs/{id}", s.person(s.run))
	r.Get("/review/{id}", s.person(s.review))
	r.Get("/audit", s.person(s.audit))
	r.Post("/logout", s.form(s.signOut))
	r.Post("/review/{id}/{verb:approve|reject}", s.form(s.decideRun))
	r.Post("/actions/{id}/{verb:approve|reject|revoke}", s.form(s.decideAction))
	r.Post("/actions/{id}/edit", s.form(s.edit))
	r.Post("/actions/{id}/done", s.form(s.done))
	r.Post("/actions/{id}/reconcile", s.form(s.reconcile))
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, core.Errf(core.KindNotFound, "no_such_page", "There is no page at this address."))
	})
	return r, nil
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
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		next.ServeHTTP(w, r)
	})
}

// page is what every template gets.
type page struct {
	Title, Assets, Banner, User, Token string
	Role                               core.UserRole
	SignedIn                           bool
	Refresh                            int // seconds until the page loads itself again; 0 never
	Problem                            *problem
	Notice                             string
	Data                               any
}

type problem struct{ Title, Detail, Cure string }

type handler func(w http.ResponseWriter, r *http.Request, p core.Principal)

// person lets signed-in people in and sends others to sign in, and back afterwards.
func (s *Site) person(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Auth.FromCookie(r)
		if core.IsKind(err, core.KindUnauthenticated) {
			http.Redirect(w, r, "/login?next="+template.URLQueryEscaper(r.URL.RequestURI()), http.StatusSeeOther)
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
			s.fail(w, r, core.Errf(core.KindTooLarge, "form_too_large", "The form is too large or broken."))
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

// show renders a page; nothing is written before the whole page is there.
func (s *Site) show(w http.ResponseWriter, r *http.Request, p core.Principal, status int, name string, pg page) {
	pg.Assets, pg.Banner = s.assets, s.Banner
	if p.Kind == core.ActorKindPerson {
		pg.SignedIn, pg.User, pg.Role, pg.Token = true, p.Label, p.Role, s.Auth.FormToken(p)
	}
	var b bytes.Buffer
	t, err := s.pages[name].Clone()
	if err == nil {
		err = t.Funcs(funcs(s.Clock.Now())).ExecuteTemplate(&b, "layout", pg)
	}
	if err != nil {
		s.Log.Error("page not drawn", "page", name, "error", err)
		http.Error(w, "This page could not be drawn. The log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = b.WriteTo(w)
	}
}

// fail shows an error as a page.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := core.AsError(err)
	if e.Kind == core.KindInternal {
		s.Log.Error("page failed", "path", r.URL.Path, "error", err)
	}
	p, _ := s.Auth.FromCookie(r)
	data := map[string]string{"Heading": heading(e.Kind), "Text": e.Detail, "Link": "/inbox", "LinkText": "To the inbox"}
	s.show(w, r, p, e.Kind.Status(), "message", page{Title: heading(e.Kind), Data: data})
}

func heading(k core.ErrorKind) string {
	switch k {
	case core.KindNotFound:
		return "Not found"
	case core.KindForbidden:
		return "Not allowed"
	case core.KindConflict, core.KindPrecondition:
		return "Something changed meanwhile"
	case core.KindGone:
		return "Too late"
	case core.KindRateLimited:
		return "Too many attempts"
	case core.KindUnavailable:
		return "Not available right now"
	case core.KindInternal:
		return "Something failed on our side"
	}
	return "That did not work"
}

// local keeps redirects on this site.
func local(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.HasPrefix(next, "/\\") || strings.ContainsAny(next, "\r\n") {
		return "/inbox"
	}
	return next
}
