package effect

import (
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	s := sealedPost()
	s.Lookup = &Lookup{Endpoint: "list", Params: map[string]string{"site": "acme", "q": "act_1"}, Pointer: "/items", Marker: "act_1"}
	r, err := Resolve(s, postEndpoints(), Connection{})
	if err != nil {
		t.Fatal(err)
	}
	first, then := r.Steps[0].HTTP, r.Steps[1].HTTP
	if first.Method != "POST" || first.URL != "https://api.example.org/v1/sites/acme/posts?draft=true" || then.Method != "PUT" || then.URL != "https://api.example.org/v1/posts/{{capture:post}}/live" {
		t.Errorf("%s %s, %s %s", first.Method, first.URL, then.Method, then.URL)
	}
	if r.Lookup.URL != "https://api.example.org/v1/sites/acme/posts?q=act_1" || r.Lookup.Marker != "act_1" {
		t.Errorf("look-up %+v", r.Lookup)
	}
	filled, err := r.Steps[1].Fill(map[string]string{"post": "17"})
	if err != nil || filled.HTTP.URL != "https://api.example.org/v1/posts/17/live" || string(filled.HTTP.Body) != `{"post":"17"}` {
		t.Errorf("filled %+v, %v", filled.HTTP, err)
	}
	if string(then.Body) != `{"post":"{{capture:post}}"}` {
		t.Error("filling changed what was sealed")
	}
	if _, err := r.Steps[1].Fill(nil); err == nil {
		t.Error("a request with a hole")
	}
}

// What a provider answers cannot break out of the place it is filled into.
func TestFillEscapes(t *testing.T) {
	s := ResolvedStep{HTTP: &ResolvedHTTP{URL: "https://a.example/p/{{capture:x}}?q={{capture:x}}", Headers: []Pair{{"Content-Type", "application/json"}, {"X-Ref", "{{capture:y}}"}}, Body: []byte(`{"a":"{{capture:x}}"}`)}}
	got, err := s.Fill(map[string]string{"x": `../"&#?`, "y": "plain"})
	if err != nil {
		t.Fatal(err)
	}
	if got.HTTP.URL != "https://a.example/p/..%2F%22&%23%3F?q=..%2F%22%26%23%3F" || string(got.HTTP.Body) != `{"a":"../\"\u0026#?"}` {
		t.Errorf("%s %s", got.HTTP.URL, got.HTTP.Body)
	}
	if _, err := s.Fill(map[string]string{"x": "1", "y": "a\r\nX-Evil: 1"}); err == nil {
		t.Error("a header was broken into two")
	}
	c := Capture{Name: "x", Pattern: "[0-9]+|a", MaxLength: 3}
	for value, ok := range map[string]bool{"12": true, "a": true, "1234": false, "1b": false, "": false, "ab": false} {
		if (c.Accept(value) == nil) != ok {
			t.Errorf("capture %q: %v", value, c.Accept(value))
		}
	}
}

func TestConnectionAddress(t *testing.T) {
	ep := func(path string) []Endpoint {
		return []Endpoint{{ID: "hook", Class: "write", Transport: "http", Host: "$connection", Method: "POST", Path: path}}
	}
	s := Sealed{Kind: "webhook.post", Target: Target{Label: "x"}, Steps: []Step{{Endpoint: "hook", HTTP: &HTTPStep{Body: []byte("{}")}}}}
	for _, c := range []struct{ base, path, want string }{
		{"https://hook.example/in?x=1", "$connection", "https://hook.example/in?x=1"},
		{"http://127.0.0.1:9000", "$connection", "http://127.0.0.1:9000/"},
		{"https://blog.example/sub/", "/wp-json/posts", "https://blog.example/sub/wp-json/posts"},
		{"https://user:pw@hook.example/", "$connection", ""},
		{"https://hook.example/#x", "$connection", ""},
		{"https://hook.example/a/../b", "$connection", ""},
		{"ftp://hook.example/", "$connection", ""},
		{"/in", "$connection", ""},
		{"", "$connection", ""},
	} {
		r, err := Resolve(s, ep(c.path), Connection{BaseURL: c.base})
		if got := ""; err == nil {
			if got = r.Steps[0].HTTP.URL; got != c.want {
				t.Errorf("%s %s: %s, want %s", c.base, c.path, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s %s: %v", c.base, c.path, err)
		}
	}
	secret := ep("$connection")
	secret[0].Signers = []string{"secret_url"}
	r, err := Resolve(s, secret, Connection{BaseURL: "https://hooks.example/"})
	if err != nil || r.Steps[0].HTTP.URL != "https://hooks.example/" || !r.Steps[0].HTTP.SecretURL {
		t.Errorf("secret address: %+v, %v", r, err)
	}
}

// Each change asks for something the manifest does not allow.
func TestResolveRefuses(t *testing.T) {
	for name, change := range map[string]func(s *Sealed, ep []Endpoint){
		"unknown endpoint":  func(s *Sealed, _ []Endpoint) { s.Steps[0].Endpoint = "other" },
		"read endpoint":     func(s *Sealed, _ []Endpoint) { s.Steps[0].Endpoint = "list" },
		"GET as write":      func(_ *Sealed, ep []Endpoint) { ep[0].Method = "GET" },
		"wildcard host":     func(_ *Sealed, ep []Endpoint) { ep[0].Host = "*.example.org" },
		"literal address":   func(_ *Sealed, ep []Endpoint) { ep[0].Host = "127.0.0.1" },
		"bare host":         func(_ *Sealed, ep []Endpoint) { ep[0].Host = "localhost" },
		"path escape":       func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.PathParams["site"] = ".." },
		"slash":             func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.PathParams["site"] = "a/b" },
		"missing parameter": func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.PathParams = nil },
		"further parameter": func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.PathParams["x"] = "y" },
		"not a number":      func(s *Sealed, _ []Endpoint) { s.Steps[1].HTTP.PathParams["id"] = "17a" },
		"query key":         func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.Query = []Pair{{"admin", "1"}} },
		"header":            func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.Headers = []Pair{{"X-Note", "1"}} },
		"authorization": func(s *Sealed, ep []Endpoint) {
			ep[0].Headers = []string{"Authorization"}
			s.Steps[0].HTTP.Headers = []Pair{{"authorization", "x"}}
		},
		"host header": func(s *Sealed, ep []Endpoint) {
			ep[0].Headers = []string{"Host"}
			s.Steps[0].HTTP.Headers = []Pair{{"Host", "x"}}
		},
		"method override": func(s *Sealed, ep []Endpoint) {
			ep[0].Headers = []string{"X-HTTP-Method-Override"}
			s.Steps[0].HTTP.Headers = []Pair{{"x-http-method-override", "x"}}
		},
		"smuggled header": func(s *Sealed, _ []Endpoint) { s.Steps[1].HTTP.Headers = []Pair{{"X-Note", "1\r\nHost: x"}} },
		"mail over http": func(s *Sealed, _ []Endpoint) {
			s.Steps[1] = Step{Endpoint: "publish", Mail: &MailStep{"a@b.c", []string{"d@e.f"}, []byte("A: b\r\n\r\n")}}
		},
		"capture from later": func(s *Sealed, _ []Endpoint) { s.Steps[0].HTTP.Body = []byte("{{capture:post}}") },
		"unknown capture":    func(s *Sealed, _ []Endpoint) { s.Steps[1].HTTP.Body = []byte("{{capture:other}}") },
		"look-up by write":   func(s *Sealed, _ []Endpoint) { s.Lookup = &Lookup{Endpoint: "create", Marker: "m"} },
		"look-up unmarked":   func(s *Sealed, _ []Endpoint) { s.Lookup = &Lookup{Endpoint: "list"} },
	} {
		s, ep := sealedPost(), postEndpoints()
		change(&s, ep)
		if r, err := Resolve(s, ep, Connection{BaseURL: "https://x.example/"}); err == nil {
			t.Errorf("%s: %+v", name, r.Steps[0].HTTP)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	message := []byte("Subject: x\r\n\r\nhi\r\n")
	mail := func(m MailStep) func(*Sealed) { return func(s *Sealed) { s.Steps = []Step{{Endpoint: "m", Mail: &m}} } }
	for name, change := range map[string]func(s *Sealed){
		"no kind":           func(s *Sealed) { s.Kind = "" },
		"no label":          func(s *Sealed) { s.Target.Label = "" },
		"nothing to do":     func(s *Sealed) { s.Steps = nil },
		"steps and manual":  func(s *Sealed) { s.Manual = &Manual{Title: "t", Text: "x"} },
		"nine steps":        func(s *Sealed) { s.Steps = make([]Step, 9) },
		"both transports":   func(s *Sealed) { s.Steps[0].Mail = &MailStep{} },
		"negative money":    func(s *Sealed) { s.Money = &Money{-1, "EUR"} },
		"odd currency":      func(s *Sealed) { s.Money = &Money{1, "EURO"} },
		"not UTF-8":         func(s *Sealed) { s.Steps[0].HTTP.Query = []Pair{{"a", "\xff"}} },
		"bad pattern":       func(s *Sealed) { s.Steps[0].Captures[0].Pattern = "(" },
		"capture unbounded": func(s *Sealed) { s.Steps[0].Captures[0].MaxLength = 0 },
		"capture twice":     func(s *Sealed) { s.Steps[0].Captures = append(s.Steps[0].Captures, s.Steps[0].Captures[0]) },
		"large body":        func(s *Sealed) { s.Steps[0].HTTP.Body = make([]byte, MaxContent+1) },
		"no recipient":      mail(MailStep{"a@b.c", nil, message}),
		"address smuggling": mail(MailStep{"a@b.c", []string{"x@y.z>\r\nRCPT TO:<e@v.il"}, message}),
		"date line":         mail(MailStep{"a@b.c", []string{"x@y.z"}, []byte("Date: now\r\nSubject: x\r\n\r\nhi")}),
		"hidden copies":     mail(MailStep{"a@b.c", []string{"x@y.z"}, []byte("bcc : e@v.il\r\n\r\nhi")}),
		"bare line feed":    mail(MailStep{"a@b.c", []string{"x@y.z"}, []byte("Subject: x\r\n\r\nhi\n.\nMAIL FROM:<e@v.il>")}),
		"no header end":     mail(MailStep{"a@b.c", []string{"x@y.z"}, []byte("Subject: x\r\n")}),
		"script address": func(s *Sealed) {
			s.Steps, s.Manual = nil, &Manual{Title: "t", Text: "x", OpenURL: "javascript:alert(1)"}
		},
	} {
		s := sealedPost()
		change(&s)
		if err := s.Check(); err == nil {
			t.Errorf("%s was let through", name)
		}
	}
	if s := sealedPost(); s.Check() != nil {
		t.Fatal(s.Check())
	}
	for _, raw := range []string{`{"kind":"x","evil":1}`, `{"kind":"x"} {}`, `[]`, ``, `{`} {
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%s decoded", raw)
		}
	}
}

func TestMailServer(t *testing.T) {
	s := Sealed{Kind: "email.send", Target: Target{Label: "x"}, Steps: []Step{{Endpoint: "m", Mail: &MailStep{"a@b.c", []string{"x@y.z"}, []byte("Subject: x\r\n\r\nhi\r\n")}}}}
	ep := []Endpoint{{ID: "m", Class: "write", Transport: "smtp", Host: "$connection"}}
	for base, want := range map[string]string{"mail.example:587": "mail.example:587", "smtp://mail.example:25": "mail.example:25", "mail.example": "", "": "", "https://mail.example:587/x": ""} {
		r, err := Resolve(s, ep, Connection{BaseURL: base, TLS: "implicit"})
		if (err == nil) != (want != "") || err == nil && (r.Steps[0].Mail.Server != want || r.Steps[0].Mail.TLS != "implicit") {
			t.Errorf("%q: %+v, %v", base, r, err)
		}
	}
	if _, err := Resolve(s, ep, Connection{BaseURL: "mail.example:587", TLS: "maybe"}); err == nil || !strings.Contains(err.Error(), "tls") {
		t.Errorf("unknown TLS mode: %v", err)
	}
}
