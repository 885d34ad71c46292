package analytics

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

func say(status int, body string) func(sdk.FetchRequest) (sdk.FetchReply, error) {
	return func(sdk.FetchRequest) (sdk.FetchReply, error) {
		return sdk.FetchReply{Status: status, Body: []byte(body)}, nil
	}
}

const headers = `"metricHeaders":[{"name":"sessions"},{"name":"engagedSessions"},{"name":"keyEvents"},{"name":"totalRevenue"}]`

// answer speaks as the batch call does.
func answer(req sdk.FetchRequest) (sdk.FetchReply, error) {
	var q struct {
		Requests []struct {
			DateRanges []struct{ StartDate, EndDate string }
			Dimensions []struct{ Name string }
		}
	}
	if err := json.Unmarshal(req.Body, &q); err != nil || req.PathParams["id"] != "42" || len(q.Requests) != 5 || q.Requests[0].DateRanges[0].StartDate != "2026-01-05" || q.Requests[0].DateRanges[1].EndDate != "2026-01-04" {
		return sdk.FetchReply{Status: 400, Body: []byte(`{"error":{"message":"bad"}}`)}, nil
	}
	reports := []string{`{"dimensionHeaders":[{"name":"dateRange"}],` + headers + `,"rows":[
		{"dimensionValues":[{"value":"date_range_1"}],"metricValues":[{"value":"50"},{"value":"20"},{"value":"1"},{"value":"0"}]},
		{"dimensionValues":[{"value":"date_range_0"}],"metricValues":[{"value":"80"},{"value":"40"},{"value":"3"},{"value":"12.5"}]}],
		"rowCount":2,"metadata":{"currencyCode":"EUR","timeZone":"Europe/Berlin"},"propertyQuota":{"tokensPerDay":{"consumed":5,"remaining":199995}}}`}
	for _, r := range q.Requests[1:] {
		reports = append(reports, fmt.Sprintf(`{"dimensionHeaders":[{"name":%q}],%s,"rows":[{"dimensionValues":[{"value":"v"}],"metricValues":[{"value":"8"},{"value":"4"},{"value":"0"},{"value":"0"}]}],
			"rowCount":7,"metadata":{"subjectToThresholding":%v}}`, r.Dimensions[0].Name, headers, r.Dimensions[0].Name == "country"))
	}
	return sdk.FetchReply{Status: 200, Body: []byte(`{"reports":[` + strings.Join(reports, ",") + `]}`)}, nil
}

func TestSnapshot(t *testing.T) {
	h := sdktest.New(t, Plugin(), sdktest.WithNow(time.Date(2026, 2, 3, 4, 0, 0, 0, time.UTC)), sdktest.WithFetch("ga.batch", answer),
		sdktest.WithFetch("ga.accounts", say(200, `{"accountSummaries":[{"propertySummaries":[{"property":"properties/42","displayName":"Shop"}]}]}`)))
	var out output
	if err := h.Call("google_analytics_snapshot", map[string]any{}).Decode(&out); err != nil {
		t.Fatal(err)
	}
	current, previous := out.Metrics["current"].(map[string]any), out.Metrics["previous"].(map[string]any)
	if current["sessions"] != 80.0 || current["totalRevenue"] != 12.5 || previous["sessions"] != 50.0 || out.Account != "properties/42" || out.Metrics["currency"] != "EUR" {
		t.Errorf("%v", out.Metrics)
	}
	if len(out.Rows) != 4 || out.Rows[1]["sessionDefaultChannelGroup"] != "v" || out.Rows[1]["sessions"] != 8.0 {
		t.Errorf("%v", out.Rows)
	}
	incomplete := fmt.Sprint(out.Metrics["incomplete"])
	if !strings.Contains(incomplete, "country: rows of few people are hidden") || !strings.Contains(incomplete, "landingPage: 1 of 7 rows") {
		t.Errorf("incomplete %s", incomplete)
	}
}

func TestErrorsNameTheCure(t *testing.T) {
	for want, reply := range map[string]func(sdk.FetchRequest) (sdk.FetchReply, error){
		"needs_reauth":       say(401, `{}`),
		"provider_quota":     say(429, `{"error":{"status":"RESOURCE_EXHAUSTED"}}`),
		"api_disabled":       say(403, `{"error":{"message":"Google Analytics Data API has not been used in project 1"}}`),
		"provider_forbidden": say(403, `{"error":{"message":"no"}}`),
		"provider_refused":   say(400, `{"error":{"message":"incompatible"}}`),
		"provider_error":     say(503, ``),
		"provider_reply":     say(200, `{"reports":[]}`),
	} {
		r := sdktest.New(t, Plugin(), sdktest.WithFetch("ga.batch", reply)).Call("google_analytics_snapshot", map[string]any{"propertyId": "42"})
		if r.Failure == nil || r.Failure.Code != want {
			t.Errorf("got %+v, want %s", r.Failure, want)
		}
	}
	two := say(200, `{"accountSummaries":[{"propertySummaries":[{"property":"properties/1"},{"property":"properties/2"}]}]}`)
	r := sdktest.New(t, Plugin(), sdktest.WithFetch("ga.accounts", two)).Call("google_analytics_snapshot", map[string]any{})
	if r.Failure == nil || r.Failure.Code != "choose_property" || len(r.Failure.WhatWouldHelp) != 2 {
		t.Errorf("%+v", r.Failure)
	}
}
