package searchconsole

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

const sites = `{"siteEntry":[{"siteUrl":"sc-domain:example.com","permissionLevel":"SITE_OWNER"},{"siteUrl":"https://other.example/","permissionLevel":"SITE_UNVERIFIED_USER"}]}`

func say(status int, body string) func(sdk.FetchRequest) (sdk.FetchReply, error) {
	return func(sdk.FetchRequest) (sdk.FetchReply, error) {
		return sdk.FetchReply{Status: status, Body: []byte(body)}, nil
	}
}

// answer speaks as the search report does: one row without dimensions, else two.
func answer(req sdk.FetchRequest) (sdk.FetchReply, error) {
	var q struct {
		StartDate, EndDate string
		Dimensions         []string
	}
	if err := json.Unmarshal(req.Body, &q); err != nil || req.PathParams["siteUrl"] != "sc-domain:example.com" {
		return sdk.FetchReply{Status: 400, Body: []byte(`{}`)}, nil
	}
	if len(q.Dimensions) == 0 {
		clicks := 10
		if q.StartDate == "2026-01-03" {
			clicks = 25
		}
		return sdk.FetchReply{Status: 200, Body: fmt.Appendf(nil, `{"rows":[{"clicks":%d,"impressions":1000,"ctr":0.0123456,"position":7.25}]}`, clicks)}, nil
	}
	return sdk.FetchReply{Status: 200, Body: fmt.Appendf(nil, `{"rows":[{"keys":["first %s"],"clicks":5,"impressions":150,"ctr":0.03,"position":8.04},{"keys":["second"],"clicks":1,"impressions":99,"ctr":0.01,"position":8}]}`, q.Dimensions[0])}, nil
}

func TestSnapshot(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithNow(time.Date(2026, 2, 3, 4, 0, 0, 0, time.UTC)), // still February 2 in California
		sdktest.WithFetch("gsc.sites", say(200, sites)), sdktest.WithFetch("gsc.query", answer),
		sdktest.WithFetch("gsc.sitemaps", say(200, `{"sitemap":[{"path":"https://example.com/s.xml","errors":"2","warnings":"1"},{"path":"https://example.com/t.xml"}]}`)))
	r := h.Call("google_search_console_snapshot", map[string]any{})
	var out output
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if out.Account != "sc-domain:example.com" || out.Window != (window{From: "2026-01-03", To: "2026-01-30"}) {
		t.Errorf("%s %+v", out.Account, out.Window)
	}
	current, previous := out.Metrics["current"].(map[string]any), out.Metrics["previous"].(map[string]any)
	if current["clicks"] != 25.0 || previous["clicks"] != 10.0 || previous["from"] != "2025-12-06" || previous["to"] != "2026-01-02" || current["ctr"] != 0.0123 {
		t.Errorf("current %v, previous %v", current, previous)
	}
	if out.Metrics["sitemapsWithErrors"] != 1.0 || len(out.Rows) != 6 {
		t.Errorf("%v, %d rows", out.Metrics, len(out.Rows))
	}
	wins := 0
	for _, row := range out.Rows {
		if row["nearWin"] == true {
			wins++
		}
	}
	if wins != 1 {
		t.Errorf("%d near wins in %v", wins, out.Rows)
	}
	if len(r.Evidence()) != 6 {
		t.Errorf("%d reads became evidence, want 6", len(r.Evidence()))
	}
}

func TestErrorsNameTheCure(t *testing.T) {
	for want, sitesReply := range map[string]func(sdk.FetchRequest) (sdk.FetchReply, error){
		"needs_reauth":       say(401, `{}`),
		"provider_quota":     say(403, `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`),
		"provider_forbidden": say(403, `{"error":{"message":"API not enabled"}}`),
		"provider_error":     say(502, `<html>`),
		"provider_reply":     say(200, `<html>`),
		"no_site":            say(200, `{}`),
		"choose_site":        say(200, `{"siteEntry":[{"siteUrl":"a","permissionLevel":"SITE_OWNER"},{"siteUrl":"b","permissionLevel":"SITE_OWNER"}]}`),
	} {
		r := sdktest.New(t, Plugin(), sdktest.WithFetch("gsc.sites", sitesReply)).Call("google_search_console_snapshot", map[string]any{})
		if r.Failure == nil || r.Failure.Code != want {
			t.Errorf("got %+v, want %s", r.Failure, want)
		}
	}
	r := sdktest.New(t, Plugin(), sdktest.WithFetch("gsc.sites", say(200, sites))).Call("google_search_console_snapshot", map[string]any{"siteUrl": "https://other.example/"})
	if r.Failure == nil || r.Failure.Code != "choose_site" {
		t.Errorf("an unverified site: %+v", r.Failure)
	}
}
