package approved

import (
	"testing"

	"github.com/sallyport-dev/sallyport/sdk/effect"
)

func TestNobodyChangesWhatWasApproved(t *testing.T) {
	body, to := []byte("hello"), []string{"ada@example.org"}
	e := New(Content{ActionID: "act_1", ContentSHA256: []string{"aa"}, Resolved: effect.Resolved{Steps: []effect.ResolvedStep{
		{HTTP: &effect.ResolvedHTTP{URL: "https://a.example/", Body: body, Headers: []effect.Pair{{Name: "A", Value: "1"}}}},
		{Mail: &effect.ResolvedMail{To: to, Message: []byte("m")}, Definite: []int{404}},
	}, Lookup: &effect.ResolvedRead{Marker: "m"}}})

	body[0], to[0] = 'X', "eve@example.org" // what New was given
	steps := e.Steps()
	steps[0].HTTP.Body[1], steps[0].HTTP.URL, steps[0].HTTP.Headers[0].Value = 'X', "https://evil.example/", "2"
	steps[1].Mail.To[0], steps[1].Definite[0] = "eve@example.org", 200
	e.ContentSHA256()[0], e.Lookup().Marker = "bb", "x"

	got := e.Steps()
	if string(got[0].HTTP.Body) != "hello" || got[0].HTTP.URL != "https://a.example/" || got[0].HTTP.Headers[0].Value != "1" {
		t.Errorf("the HTTP step changed: %+v", got[0].HTTP)
	}
	if got[1].Mail.To[0] != "ada@example.org" || got[1].Definite[0] != 404 || e.ContentSHA256()[0] != "aa" || e.Lookup().Marker != "m" {
		t.Errorf("the mail step or its surroundings changed: %+v", got[1])
	}
}

func TestZeroEffectIsNotValid(t *testing.T) {
	if (Effect{}).Valid() || !New(Content{ActionID: "act_1"}).Valid() {
		t.Error("only what New made is valid")
	}
}
