package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport/core"
)

// page is what every template gets.
type page struct {
	Title, Section, Assets, Banner, User, Token string
	Role                                        core.UserRole
	SignedIn, HasConnectors                     bool
	Refresh                                     int // seconds until the page loads itself again, if its reader asked for it; 0 never
	Problem                                     *problem
	Notice                                      string
	Data                                        any
}

// problem is why something did not work, and what helps.
type problem struct{ Title, Detail, Cure string }

// show renders a page; nothing is written before the whole page is there.
func (s *Site) show(w http.ResponseWriter, r *http.Request, p core.Principal, status int, name string, pg page) {
	pg.Assets, pg.Banner, pg.HasConnectors = s.assets, s.Banner, s.Connectors != nil
	if p.Kind == core.ActorKindPerson {
		pg.SignedIn, pg.User, pg.Role, pg.Token = true, p.Label, p.Role, s.Auth.FormToken(p)
		pg.Notice = s.takeNotice(w, r, p)
	}
	var b bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&b, "layout", pg); err != nil {
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
	s.showMessage(w, r, e.Kind.Status(), heading(e.Kind), e.Detail)
}

func (s *Site) showMessage(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	p, _ := s.Auth.FromCookie(r)
	s.show(w, r, p, status, "message", page{Title: title, Data: map[string]string{"Heading": title, "Text": text, "Link": "/inbox", "LinkText": "To the inbox"}})
}

func problemOf(err error) *problem {
	e := core.AsError(err)
	pr := &problem{Title: heading(e.Kind) + ".", Detail: e.Detail}
	for _, f := range e.Fields {
		pr.Detail += " " + strings.TrimPrefix(f.Pointer, "/") + ": " + f.Message + "."
	}
	if e.Next != nil {
		pr.Cure = e.Next.Reason
	}
	if e.Kind == core.KindPrecondition || e.Kind == core.KindConflict {
		pr.Cure = "Nothing was changed by what you just did. Below is what is in force now; look again before you decide."
	}
	return pr
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

// local keeps redirects on this site: a path of ours, or the inbox. Browsers read a
// backslash as a slash and drop tabs and line ends, so those lead nowhere either.
func local(next string) string {
	u, err := url.Parse(next)
	odd := strings.ContainsFunc(next, func(r rune) bool {
		return r == '\\' || r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.IsSpace(r)
	})
	if err != nil || odd || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.HasPrefix(u.Path, "//") {
		return "/inbox"
	}
	return next
}

func signInAt(back string, again bool) string {
	q := url.Values{"next": {back}}
	if again {
		q.Set("again", "1")
	}
	return "/login?" + q.Encode()
}

// noticeCookie carries one sentence across the redirect that follows a post. It is bound
// to the session, so that no other page can put words into ours.
const noticeCookie = "sallyport_notice"

func (s *Site) notice(w http.ResponseWriter, p core.Principal, text string) {
	value := base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + s.noticeMAC(p, text)
	http.SetCookie(w, &http.Cookie{Name: noticeCookie, Value: value, Path: "/", MaxAge: 60, HttpOnly: true, Secure: strings.HasPrefix(s.BaseURL, "https://"), SameSite: http.SameSiteStrictMode})
}

func (s *Site) takeNotice(w http.ResponseWriter, r *http.Request, p core.Principal) string {
	c, err := r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: noticeCookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: strings.HasPrefix(s.BaseURL, "https://"), SameSite: http.SameSiteStrictMode})
	text, mac, _ := strings.Cut(c.Value, ".")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !hmac.Equal([]byte(mac), []byte(s.noticeMAC(p, string(b)))) {
		return ""
	}
	return string(b)
}

func (s *Site) noticeMAC(p core.Principal, text string) string {
	h := hmac.New(sha256.New, []byte(s.Auth.FormToken(p)))
	h.Write([]byte("notice\x00" + text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
