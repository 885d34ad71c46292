package egress

import (
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// reach makes an Egress that may reach the given test servers.
func reach(t *testing.T, servers ...*httptest.Server) *Egress {
	t.Helper()
	c := Config{}
	for _, s := range servers {
		c.AllowPrivate = append(c.AllowPrivate, s.Listener.Addr().String())
		if s.TLS != nil {
			c.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		}
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func code(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestFetchSignsStripsAndRedacts(t *testing.T) {
	const token = "tok-éè-secret/123+x"
	var got http.Header
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%s %s", r.Header.Get("Authorization"), base64.StdEncoding.EncodeToString([]byte(token)))
	}))
	defer s.Close()
	reply, err := reach(t, s).Fetch(t.Context(), Request{Class: Read, URL: s.URL + "/x?y=1", Signers: []string{SignBearer}, Credential: NewCredential(nil, map[string]string{"token": token}),
		Headers: []effect.Pair{{Name: "Cookie", Value: "c"}, {Name: "X-HTTP-Method-Override", Value: "DELETE"}, {Name: "Proxy-Authorization", Value: "p"}, {Name: "X-Fine", Value: "1"}, {Name: "Authorization", Value: "Bearer mine"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer "+token || got.Get("X-Fine") != "1" {
		t.Errorf("headers sent: %v", got)
	}
	for _, h := range []string{"Cookie", "X-HTTP-Method-Override", "Proxy-Authorization"} {
		if got.Get(h) != "" {
			t.Errorf("%s was sent", h)
		}
	}
	all := fmt.Sprint(reply.Headers) + string(reply.Body)
	for _, leak := range []string{token, base64.StdEncoding.EncodeToString([]byte(token)), "a=b"} {
		if strings.Contains(all, leak) {
			t.Errorf("%q came back", leak)
		}
	}
	if !strings.Contains(all, "[secret]") {
		t.Error("nothing was blanked")
	}
}

func TestFetchLimits(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			zeros := make([]byte, 1<<20)
			for range 64 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			z.Close()
		case "/hang":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	}))
	defer s.Close()
	defer close(release)
	e := reach(t, s)
	reply, err := e.Fetch(t.Context(), Request{Class: Read, URL: s.URL + "/bomb", MaxBytes: 1000})
	if err != nil || !reply.Truncated || len(reply.Body) != 1000 {
		t.Errorf("bomb: %v, %+v", err, reply)
	}
	if _, err := e.Fetch(t.Context(), Request{Class: Read, URL: s.URL + "/hang", Timeout: 50 * time.Millisecond}); code(err) != "timeout" {
		t.Errorf("hang: %v", err)
	}
	if _, err := e.Fetch(t.Context(), Request{Class: Read, Method: "POST", ReadPost: true, URL: s.URL, Body: make([]byte, MaxRequestBytes+1)}); code(err) != "request_too_large" {
		t.Errorf("large request: %v", err)
	}
}

func TestFetchMethodsAndSchemes(t *testing.T) {
	calls := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer s.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer plain.Close()
	e := reach(t, s)
	for _, r := range []Request{
		{Class: Read, Method: "POST", URL: s.URL}, {Class: Read, Method: "PUT", URL: s.URL}, {Class: Read, Method: "DELETE", URL: s.URL},
		{Class: Web, Method: "POST", URL: s.URL, ReadPost: true}, {Class: Auth, Method: "PUT", URL: s.URL}, {URL: s.URL}, {Class: "write", Method: "GET", URL: s.URL},
		{Class: Read, URL: plain.URL}, {Class: Web, URL: plain.URL}, {Class: Read, URL: "ftp://example.com/"}, {Class: Read, URL: "file:///etc/passwd"},
		{Class: Read, URL: "https://user:pw@" + s.Listener.Addr().String()}, {Class: Read, URL: "//x"}, {Class: Read, URL: ""},
	} {
		if _, err := e.Fetch(t.Context(), r); err == nil {
			t.Errorf("%s %s %s was done", r.Class, r.Method, r.URL)
		}
	}
	if calls != 0 {
		t.Errorf("%d calls went out", calls)
	}
	if _, err := e.Fetch(t.Context(), Request{Class: Read, Method: "POST", ReadPost: true, URL: s.URL}); err != nil || calls != 1 {
		t.Errorf("a declared POST read: %v, %d calls", err, calls)
	}
}

func TestRedirects(t *testing.T) {
	foreign := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign++ }))
	defer other.Close()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/there":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/down":
			http.Redirect(w, r, "http://"+r.Host+"/end", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	defer s.Close()
	e := reach(t, s, other)
	cred := NewCredential(nil, map[string]string{"token": "secret-token"})
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Class: Read, URL: s.URL + "/here"}, ""},
		{Request{Class: Web, URL: s.URL + "/here"}, ""},
		{Request{Class: Read, URL: s.URL + "/here", Signers: []string{SignBearer}, Credential: cred}, "redirect_refused"},
		{Request{Class: Auth, URL: s.URL + "/here"}, "redirect_refused"},
		{Request{Class: Read, URL: s.URL + "/there"}, "redirect_refused"},
		{Request{Class: Web, URL: s.URL + "/there"}, "redirect_refused"},
		{Request{Class: Web, URL: s.URL + "/down"}, "redirect_refused"},
		{Request{Class: Web, URL: s.URL + "/loop"}, "redirect_refused"},
	} {
		_, err := e.Fetch(t.Context(), c.r)
		if got := code(err); c.want != "" && got != c.want || c.want == "" && err != nil {
			t.Errorf("%s %s: got %v, want %q", c.r.Class, c.r.URL, err, c.want)
		}
	}
	if foreign != 0 {
		t.Error("a redirect to another host was followed")
	}
}

func TestUntrustedCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer s.Close()
	e, err := New(Config{AllowPrivate: []string{s.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Fetch(t.Context(), Request{Class: Read, URL: s.URL}); code(err) != "unreachable" {
		t.Errorf("got %v", err)
	}
}

func TestCredentialNeverPrints(t *testing.T) {
	c := NewCredential(map[string]string{"user": "ada"}, map[string]string{"token": "hunter2-canary"})
	j, _ := c.MarshalJSON()
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q %x %d", c, c, c, c, c, c, c), fmt.Sprintf("%+v", struct{ C Credential }{c}), string(j), c.LogValue().String()} {
		if strings.Contains(s, "hunter2") || strings.Contains(s, "ada") {
			t.Errorf("it printed %q", s)
		}
	}
}
