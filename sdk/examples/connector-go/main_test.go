package main

import (
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func TestConforms(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestListReadsThroughTheEndpoint(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithFetch("notes.list", func(r sdk.FetchRequest) (sdk.FetchReply, error) {
		if len(r.Query) != 1 || r.Query[0] != (sdk.Pair{Name: "limit", Value: "5"}) {
			t.Errorf("query = %v", r.Query)
		}
		return sdk.FetchReply{Status: 200, Body: []byte(`[{"title":"one"}]`)}, nil
	}))
	r := h.Call("notes_list", map[string]any{"limit": 5})
	var out struct {
		Notes      []note
		EvidenceID string
	}
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if len(out.Notes) != 1 || out.Notes[0].Title != "one" || out.EvidenceID != r.Evidence()[0].ID {
		t.Fatalf("got %+v with evidence %+v", out, r.Evidence())
	}
}

func TestListExplainsAStrangeAnswer(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithFetch("notes.list", func(sdk.FetchRequest) (sdk.FetchReply, error) {
		return sdk.FetchReply{Status: 500, Body: []byte(`oops`)}, nil
	}))
	if r := h.Call("notes_list", nil); r.Failure == nil || r.Failure.Code != "unexpected_answer" {
		t.Fatalf("failure = %v", r.Failure)
	}
}

func TestAddCompilesAndSendsNothing(t *testing.T) {
	r := sdktest.New(t, Plugin()).Call("notes_add", map[string]any{"title": "hello"})
	if r.Failure != nil || r.Sealed == nil {
		t.Fatalf("failure = %v", r.Failure)
	}
	if got := string(r.Sealed.Steps[0].HTTP.Body); got != `{"title":"hello"}` {
		t.Fatalf("body = %s", got)
	}
}
