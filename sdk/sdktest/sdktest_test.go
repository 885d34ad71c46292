package sdktest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
)

func reader(needs string, run func(ctx context.Context, c *sdk.Call) (any, error)) sdk.Plugin {
	return sdk.Define([]byte(`{"name":"reader","kind":"skill","version":"1.0.0","title":"Reader","description":"Reads.","protocol":1,"needs":`+needs+`,
		"tools":[{"name":"reader_run","title":"Run","description":"Runs.","effect":"draft",
			"inputSchema":{"type":"object","additionalProperties":false,"properties":{"url":{"type":"string"}}},"outputSchema":{"type":"object"}}]}`),
		sdk.Handlers{Run: map[string]func(context.Context, *sdk.Call) (any, error){"reader_run": run}})
}

const web = `{"endpoints":[{"id":"web","class":"read","method":"GET","host":"$web"}]}`

func TestOnlyWhatStandsInThePageIsObserved(t *testing.T) {
	page := `<html><body><h1>We  keep <b>jobs</b> &amp; retries</h1><script>hidden()</script></body></html>`
	p := reader(web, func(ctx context.Context, c *sdk.Call) (any, error) {
		reply, err := c.Host.Fetch(ctx, sdk.FetchRequest{Endpoint: "web", URL: "https://a.example/"})
		if err != nil {
			return nil, err
		}
		var items []sdk.Evidence
		for _, quote := range []string{"We keep jobs & retries", "We keep secrets"} {
			items = append(items, sdk.Evidence{Source: "a.example", Kind: "page_text", Locator: "h1", Quote: quote, Trust: "observed", FetchID: reply.EvidenceID})
		}
		items = append(items, sdk.Evidence{Source: "a.example", Kind: "page_text", Locator: "h1", Quote: "We keep jobs & retries", Trust: "observed"})
		saved, err := c.Host.SaveEvidence(ctx, items)
		return map[string]any{"saved": saved}, err
	})
	r := New(t, p, WithPage("https://a.example/", page)).Call("reader_run", nil)
	var out struct{ Saved []sdk.Evidence }
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"observed", "inferred", "inferred"} {
		if out.Saved[i].Trust != want || !strings.HasPrefix(out.Saved[i].ID, "ev_") || len(out.Saved[i].ID) != 23 {
			t.Errorf("item %d: %+v; want %s", i, out.Saved[i], want)
		}
	}
	if out.Saved[0].ID != out.Saved[2].ID { // the same evidence, whatever its trust
		t.Errorf("ids %s and %s", out.Saved[0].ID, out.Saved[2].ID)
	}
	if len(r.Evidence()) != 3 { // the fetch and two different quotes
		t.Errorf("stored %d", len(r.Evidence()))
	}
}

func TestWhatTheManifestDoesNotNeedIsRefused(t *testing.T) {
	for name, try := range map[string]func(ctx context.Context, h sdk.Host) error{
		"tool": func(ctx context.Context, h sdk.Host) error { return h.CallTool(ctx, "other", nil, nil) },
		"model": func(ctx context.Context, h sdk.Host) error {
			_, err := h.Complete(ctx, sdk.CompleteRequest{})
			return err
		},
		"endpoint": func(ctx context.Context, h sdk.Host) error {
			_, err := h.Fetch(ctx, sdk.FetchRequest{Endpoint: "x"})
			return err
		},
		"recall":   func(ctx context.Context, h sdk.Host) error { _, err := h.Recall(ctx, "k", nil); return err },
		"remember": func(ctx context.Context, h sdk.Host) error { return h.Remember(ctx, "k", 1) },
		"propose": func(ctx context.Context, h sdk.Host) error {
			_, err := h.Propose(ctx, sdk.Proposal{Tool: "w"})
			return err
		},
		"dataset": func(ctx context.Context, h sdk.Host) error { return h.ReadDataset(ctx, "d", nil) },
	} {
		p := reader(`{}`, func(ctx context.Context, c *sdk.Call) (any, error) { return nil, try(ctx, c.Host) })
		if r := New(t, p, WithTool("other", func(any) any { return nil })).Call("reader_run", nil); r.Failure == nil || r.Failure.Code != "not_allowed" {
			t.Errorf("%s: %v", name, r.Failure)
		}
	}
}

func TestDraftsAndEvidenceMustFitTheirResource(t *testing.T) {
	p := reader(`{}`, func(ctx context.Context, c *sdk.Call) (any, error) {
		_, err := c.Host.SaveAsset(ctx, sdk.Asset{Kind: "note", Content: "text", Origin: "deterministic"})
		if err == nil {
			return nil, sdk.Fail("taken", "content that is no object was taken")
		}
		_, err = c.Host.SaveEvidence(ctx, []sdk.Evidence{{Source: "x", Kind: "gossip", Locator: "x", Trust: "inferred"}})
		return nil, err
	})
	if r := New(t, p).Call("reader_run", nil); r.Failure == nil || r.Failure.Code != "invalid_evidence" {
		t.Errorf("failure %v", r.Failure)
	}
}

func TestMemoryModelAndDatasets(t *testing.T) {
	p := reader(`{"memory":["read","write"],"model":true,"datasets":true}`, func(ctx context.Context, c *sdk.Call) (any, error) {
		var known struct{ A int }
		if ok, err := c.Host.Recall(ctx, "k", &known); !ok || err != nil || known.A != 1 {
			t.Errorf("recalled %v %v %+v", ok, err, known)
		}
		if ok, err := c.Host.Recall(ctx, "none", nil); ok || err != nil {
			t.Errorf("recalled nothing: %v %v", ok, err)
		}
		if err := c.Host.Remember(ctx, "big", strings.Repeat("x", 300<<10)); err == nil {
			t.Error("300 KiB were remembered")
		}
		answer, err := c.Host.Complete(ctx, sdk.CompleteRequest{Prompt: "p"})
		if err != nil || answer.Text != "text of p" {
			t.Errorf("completed %+v, %v", answer, err)
		}
		n := 0
		if err := c.Host.ReadDataset(ctx, "d", func(json.RawMessage) error { n++; return nil }); err != nil || n != 2 {
			t.Errorf("rows %d, %v", n, err)
		}
		return map[string]any{}, c.Host.Remember(ctx, "new", 2)
	})
	h := New(t, p, WithMemory("k", map[string]int{"a": 1}), WithDataset("d", 1, 2), WithModel(func(r sdk.CompleteRequest) (string, error) { return "text of " + r.Prompt, nil }))
	if r := h.Call("reader_run", nil); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if string(h.Memory("new")) != "2" {
		t.Errorf("memory %s", h.Memory("new"))
	}
}
