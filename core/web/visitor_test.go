package web

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// visitor is a browser without scripts: it keeps cookies, fills in forms and posts them
// with the headers a browser adds.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
	page   *visited
}

// visited is an answer and what it was drawn to.
type visited struct {
	status int
	header http.Header
	path   string
	body   string
	root   *html.Node
}

func (r *rig) visitor() *visitor {
	r.Helper()
	jar, err := cookiejar.New(nil)
	r.ok(err)
	return &visitor{t: r.T, base: r.URL, client: plainClient(jar)}
}

// signedIn is a visitor with a fresh session.
func (r *rig) signedIn(email string) *visitor {
	r.Helper()
	v := r.visitor()
	v.get("/login").submit("/login", "email", email, "password", password)
	v.follow("/inbox")
	return v
}

func (v *visitor) do(method, path string, body io.Reader, header ...string) *visited {
	v.t.Helper()
	req, err := http.NewRequest(method, v.base+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.page = &visited{status: res.StatusCode, header: res.Header, path: path, body: string(b)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		if v.page.root, err = html.Parse(strings.NewReader(v.page.body)); err != nil {
			v.t.Fatalf("%s %s: %v", method, path, err)
		}
		v.inert()
	}
	return v.page
}

// inert checks what must hold for every page whatever it shows: no scripts, no inline
// style, nothing from elsewhere, and the headers that say so.
func (v *visitor) inert() {
	v.t.Helper()
	csp := v.page.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(csp, want) {
			v.t.Errorf("%s: the policy %q lacks %s", v.page.path, csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") {
		v.t.Errorf("%s: the policy %q lets scripts in", v.page.path, csp)
	}
	allowed := map[string]bool{"link": true, "img": true}
	ids := map[string]bool{}
	each(v.page.root, func(n *html.Node) {
		switch n.Data {
		case "script", "style", "iframe", "object", "embed", "base", "svg", "math", "video", "audio":
			v.t.Errorf("%s: there is a <%s>", v.page.path, n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				v.t.Errorf("%s: <%s> has %s=%q", v.page.path, n.Data, a.Key, a.Val)
			case a.Key == "id":
				if ids[a.Val] {
					v.t.Errorf("%s: the id %s stands twice", v.page.path, a.Val)
				}
				ids[a.Val] = true
			case a.Key == "href" || a.Key == "src" || a.Key == "action":
				if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "?") || strings.HasPrefix(a.Val, "//") {
					v.t.Errorf("%s: <%s> leads to %q", v.page.path, n.Data, a.Val)
				}
				if a.Key == "src" && !allowed[n.Data] {
					v.t.Errorf("%s: <%s> loads %q", v.page.path, n.Data, a.Val)
				}
			}
		}
	})
	each(v.page.root, func(n *html.Node) { // every field has a name that is read out
		if typ := attr(n, "type"); n.Data == "input" && typ != "hidden" || n.Data == "textarea" {
			if find(v.page.root, func(l *html.Node) bool { return l.Data == "label" && attr(l, "for") == attr(n, "id") }) == nil {
				v.t.Errorf("%s: the field %s has no label", v.page.path, attr(n, "name"))
			}
		}
	})
}

func (v *visitor) get(path string) *visitor {
	v.t.Helper()
	v.do(http.MethodGet, path, nil)
	return v
}

// want checks the status of the page.
func (v *visitor) want(status int) *visitor {
	v.t.Helper()
	if v.page.status != status {
		v.t.Fatalf("%s: status %d, want %d: %s", v.page.path, v.page.status, status, clip(v.text()))
	}
	return v
}

// follow goes where the page redirects to, which must begin with want.
func (v *visitor) follow(want string) *visitor {
	v.t.Helper()
	v.want(http.StatusSeeOther)
	to := v.page.header.Get("Location")
	if !strings.HasPrefix(to, want) {
		v.t.Fatalf("%s leads to %q, want %q", v.page.path, to, want)
	}
	to, _, _ = strings.Cut(to, "#")
	return v.get(to)
}

// fields are those of the form that posts to action, as they stand on the page.
func (v *visitor) fields(action string) url.Values {
	v.t.Helper()
	form := v.find(action)
	if form == nil {
		v.t.Fatalf("%s: no form posts to %s", v.page.path, action)
	}
	values := url.Values{}
	each(form, func(n *html.Node) {
		switch {
		case n.Data == "input":
			values.Set(attr(n, "name"), attr(n, "value"))
		case n.Data == "textarea":
			values.Set(attr(n, "name"), strings.ReplaceAll(inside(n), "\n", "\r\n")) // as browsers send it
		}
	})
	return values
}

func (v *visitor) find(action string) *html.Node {
	if v.page.root == nil {
		return nil
	}
	return find(v.page.root, func(n *html.Node) bool { return n.Data == "form" && attr(n, "action") == action })
}

// submit posts a form of the page, with some fields filled in.
func (v *visitor) submit(action string, fill ...string) *visitor {
	v.t.Helper()
	values := v.fields(action)
	for i := 0; i+1 < len(fill); i += 2 {
		values.Set(fill[i], fill[i+1])
	}
	return v.post(action, values)
}

// post sends a form as a page of this site does.
func (v *visitor) post(action string, values url.Values, header ...string) *visitor {
	v.t.Helper()
	v.do(http.MethodPost, action, strings.NewReader(values.Encode()), append([]string{"Origin", v.base, "Sec-Fetch-Site", "same-origin"}, header...)...)
	return v
}

// text is what the page reads, without its markup.
func (v *visitor) text() string {
	if v.page.root == nil {
		return v.page.body
	}
	return inside(v.page.root)
}

func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 600)]
}

func each(n *html.Node, do func(*html.Node)) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode {
			do(d)
		}
	}
}

func find(n *html.Node, is func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && is(d) {
			return d
		}
	}
	return nil
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func inside(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func (v *visitor) address() *url.URL {
	u, err := url.Parse(v.base + "/")
	if err != nil {
		v.t.Fatal(err)
	}
	return u
}
