package main

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func TestConforms(t *testing.T) { sdktest.Conform(t, Plugin()) }

func TestTheClaimPointsAtItsEvidence(t *testing.T) {
	r := sdktest.New(t, Plugin()).Call("demo_draft_headline", map[string]any{
		"product": "Ledgerly", "facts": []string{strings.Repeat("long ", 50), "Exports 10,000 rows in 4 seconds."},
	})
	var out struct {
		Headline    string
		AssetID     string
		EvidenceIDs []string
	}
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if out.Headline != "Ledgerly: Exports 10,000 rows in 4 seconds" {
		t.Errorf("headline = %q", out.Headline)
	}
	if len(r.Evidence()) != 2 || len(r.Assets()) != 1 || r.Assets()[0].Ref.ID != out.AssetID {
		t.Fatalf("stored %d evidence, %d assets", len(r.Evidence()), len(r.Assets()))
	}
	if want := r.Evidence()[1].ID; out.EvidenceIDs[0] != want || r.Assets()[0].Claims[0].EvidenceIDs[0] != want {
		t.Errorf("the claim points at %v, not at %s", out.EvidenceIDs, want)
	}
}

func TestNoFactThatFitsIsAnHonestFailure(t *testing.T) {
	r := sdktest.New(t, Plugin()).Call("demo_draft_headline", map[string]any{"product": "Ledgerly", "facts": []string{strings.Repeat("x", 200)}})
	if r.Failure == nil || r.Failure.Code != "insufficient_evidence" || len(r.Assets()) != 0 {
		t.Fatalf("failure = %v, assets = %v", r.Failure, r.Assets())
	}
}
