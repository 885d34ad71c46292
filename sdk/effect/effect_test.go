package effect

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sealedPost() Sealed {
	return Sealed{Kind: "post.publish", Explanation: "Nice.", Target: Target{AccountID: "42", Label: "Acme blog"}, Steps: []Step{
		{Endpoint: "create", HTTP: &HTTPStep{PathParams: map[string]string{"site": "acme"}, Query: []Pair{{"draft", "true"}},
			Headers: []Pair{{"Content-Type", "application/json"}}, Body: []byte(`{"title":"Hi"}`), IdempotencyHeader: "Idempotency-Key"},
			Success:  Success{Statuses: []int{201}, Pointer: "/ok", Value: "true"},
			Captures: []Capture{{Name: "post", Pointer: "/id", Pattern: "[0-9]+", MaxLength: 20}}, Result: Result{IDPointer: "/id", URLPointer: "/url"}},
		{Endpoint: "publish", HTTP: &HTTPStep{PathParams: map[string]string{"id": "{{capture:post}}"}, Headers: []Pair{{"Content-Type", "application/json"}}, Body: []byte(`{"post":"{{capture:post}}"}`)}},
	}}
}

func postEndpoints() []Endpoint {
	return []Endpoint{
		{ID: "create", Class: "write", Transport: "http", Host: "api.example.org", Method: "POST", Path: "/v1/sites/{site}/posts", PathParams: map[string]string{"site": "slug"}, Query: []string{"draft"}, Signers: []string{"bearer"}},
		{ID: "publish", Class: "write", Transport: "http", Host: "api.example.org", Method: "PUT", Path: "/v1/posts/{id}/live", PathParams: map[string]string{"id": "int"}, Headers: []string{"X-Note"}},
		{ID: "list", Class: "read", Transport: "http", Host: "api.example.org", Method: "GET", Path: "/v1/sites/{site}/posts", PathParams: map[string]string{"site": "slug"}, Query: []string{"q"}},
	}
}

func binding() Binding {
	return Binding{InstallationID: "ins", WorkspaceID: "ws", RunID: "run", ActionID: "act", Revision: 1, Tool: "t", Plugin: "p", Connector: "c", Channel: "blog",
		PluginDigest: "pd", ManifestDigest: "md", ToolDigest: "td", InputSHA256: "in", Endpoints: postEndpoints(), AssetRefs: []AssetRef{{"ast", 1, "d"}},
		EvidenceIDs: []string{"ev1"}, DependsOn: []string{"act0"}, Supersedes: "old", Reversibility: "reversible", Proof: "P2", Needed: 1, IdempotencyKey: "act",
		Connection: Connection{ID: "con", Provider: "blog", Name: "n", AccountID: "42", Account: "Acme", BaseURL: "https://acme.example/x", TLS: "", Binding: "b"},
		NotAfter:   time.UnixMicro(1_900_000_000_000_001).UTC()}
}

// The encoding is a promise: an approval given today must verify tomorrow.
func TestDigestIsStable(t *testing.T) {
	for want, d := range map[string][32]byte{
		"28d8469787a5be4102ea198ebbc89bb1de4a5436d1a475aeac52fbd672ffdc11": Digest(sealedPost(), binding()),
		"ce5595948a41d83c9d17f624a3d734b5bfa054ddede88e6154c073b7df4d5842": Digest(Sealed{}, Binding{NotAfter: time.UnixMicro(0)}),
	} {
		if got := hex.EncodeToString(d[:]); got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
	}
}

// Every field of the effect and of what it rests on is covered: changing any one
// changes the digest.
func TestDigestCoversEveryField(t *testing.T) {
	full := sealedPost()
	full.Connection, full.Reach, full.Money, full.NotBefore = "named", 3, &Money{5, "EUR"}, some(time.UnixMicro(77).UTC())
	full.Preconditions = []Precondition{{"list", map[string]string{"site": "acme"}, "/0", "x"}}
	full.Lookup = &Lookup{"list", map[string]string{"q": "act"}, "/items", "act"}
	full.Manual = &Manual{"T", "X", []Pair{{"a", "b"}}, []string{"c"}, "https://x.example"}
	full.Steps = append(full.Steps, Step{Endpoint: "mail", Mail: &MailStep{"a@b.c", []string{"d@e.f"}, []byte("m")}, Captures: []Capture{{Header: "Location"}}, Result: Result{IDHeader: "X-Id"}})
	b := binding()
	b.Connection.TLS, b.Endpoints[0].Headers, b.Endpoints[0].Definite, b.Endpoints[0].TimeoutSeconds, b.Endpoints[0].MaxResponseBytes = "none", []string{"X"}, []int{400}, 3, 4
	was := Digest(full, b)
	n := 0
	try := func(name string) {
		n++
		if Digest(full, b) == was {
			t.Errorf("%s is not covered", name)
		}
	}
	mutate(reflect.ValueOf(&full).Elem(), "sealed", try)
	mutate(reflect.ValueOf(&b).Elem(), "binding", try)
	if Digest(full, b) != was {
		t.Fatal("the walk did not put things back")
	}
	if n < 90 {
		t.Fatalf("only %d fields were tried", n)
	}
}

// mutate changes each leaf below v in turn, calls try and puts it back.
func mutate(v reflect.Value, name string, try func(string)) {
	if at, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(at.Add(time.Microsecond)))
		try(name)
		v.Set(reflect.ValueOf(at))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			mutate(v.Field(i), name+"."+v.Type().Field(i).Name, try)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			mutate(v.Elem(), name, try)
			old := v.Interface()
			v.SetZero()
			try(name + " left out")
			v.Set(reflect.ValueOf(old))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			old := v.Bytes()
			v.SetBytes(append([]byte("x"), old...))
			try(name)
			v.SetBytes(old)
			return
		}
		for i := range v.Len() {
			mutate(v.Index(i), fmt.Sprintf("%s[%d]", name, i), try)
		}
		if v.Len() > 0 {
			old := reflect.ValueOf(v.Interface())
			v.Set(v.Slice(0, v.Len()-1))
			try(name + " shortened")
			v.Set(old)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			old := v.MapIndex(k)
			v.SetMapIndex(k, reflect.ValueOf(old.String()+"x"))
			try(name)
			v.SetMapIndex(k, old)
		}
	case reflect.String:
		old := v.String()
		v.SetString(old + "x")
		try(name)
		v.SetString(old)
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
		try(name)
		v.SetInt(v.Int() - 1)
	default:
		panic(name + " is a " + v.Kind().String())
	}
}

func some[T any](v T) *T { return &v }

// What moves from one field to the next is another effect.
func TestBordersCount(t *testing.T) {
	a, b := Sealed{Kind: "ab", Explanation: "c"}, Sealed{Kind: "a", Explanation: "bc"}
	if Digest(a, Binding{}) == Digest(b, Binding{}) {
		t.Error("kind and explanation run together")
	}
	one := Sealed{Steps: []Step{{HTTP: &HTTPStep{Query: []Pair{{"a", "b"}}}}}}
	two := Sealed{Steps: []Step{{HTTP: &HTTPStep{Headers: []Pair{{"a", "b"}}}}}}
	if Digest(one, Binding{}) == Digest(two, Binding{}) {
		t.Error("query and headers run together")
	}
	empty := Sealed{Steps: []Step{{Mail: &MailStep{}}}}
	if Digest(empty, Binding{}) == Digest(Sealed{Steps: []Step{{HTTP: &HTTPStep{}}}}, Binding{}) {
		t.Error("an empty mail is an empty request")
	}
}

func TestContentSHA256(t *testing.T) {
	s := Sealed{Steps: []Step{{HTTP: &HTTPStep{Body: []byte("abc")}}, {Mail: &MailStep{Message: []byte("abc")}}, {HTTP: &HTTPStep{}}}}
	const abc, none = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := ContentSHA256(s); got[0] != abc || got[1] != abc || got[2] != none {
		t.Errorf("%v", got)
	}
	if got := ContentSHA256(Sealed{}); got == nil || len(got) != 0 {
		t.Errorf("manual: %v", got)
	}
}

// Whatever decodes keeps its digest when it is stored and read again, and resolving it
// never yields an address outside its endpoints.
func FuzzDecode(f *testing.F) {
	for _, s := range []Sealed{sealedPost(), {Kind: "manual.task", Target: Target{Label: "x"}, Manual: &Manual{Title: "t", Text: "x"}},
		{Kind: "email.send", Target: Target{Label: "x"}, Steps: []Step{{Endpoint: "create", Mail: &MailStep{"a@b.c", []string{"d@e.f"}, []byte("Subject: x\r\n\r\nhi\r\n")}}}}} {
		raw, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Decode(raw)
		if err != nil {
			return
		}
		b := binding()
		was := Digest(*s, b)
		stored, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("decoded but cannot be stored: %v", err)
		}
		again, err := Decode(stored)
		if err != nil {
			t.Fatalf("stored but cannot be read: %v", err)
		}
		if Digest(*again, b) != was {
			t.Fatal("the digest changed in storage")
		}
		r, err := Resolve(*s, postEndpoints(), b.Connection)
		if err != nil {
			return
		}
		for _, step := range r.Steps {
			if step.HTTP != nil && !strings.HasPrefix(step.HTTP.URL, "https://api.example.org/v1/") {
				t.Fatalf("resolved to %q", step.HTTP.URL)
			}
		}
		if _, err := json.Marshal(Preview(*s, *r)); err != nil {
			t.Fatal(err)
		}
		if HasHidden(Title(*s, *r)) || strings.Contains(Title(*s, *r), "\n") {
			t.Fatalf("title %q", Title(*s, *r))
		}
	})
}
