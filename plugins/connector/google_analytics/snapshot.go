package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
)

const day = "2006-01-02"

type input struct {
	PropertyID string `json:"propertyId"`
	Days       int    `json:"days"`
}

type window struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type output struct {
	Account string           `json:"account"`
	Window  window           `json:"window"`
	Metrics map[string]any   `json:"metrics"`
	Rows    []map[string]any `json:"rows"`
}

// metrics are asked for in every report, in this order.
var metrics = []string{"sessions", "engagedSessions", "keyEvents", "totalRevenue"}

// breakdowns are the reports besides the totals: with the totals five, which is what one
// batch takes.
var breakdowns = []struct {
	dimension string
	limit     int
}{{"date", 90}, {"sessionDefaultChannelGroup", 25}, {"landingPage", 50}, {"country", 25}}

// report is one answer of the reporting API. Every value comes as text.
type report struct {
	DimensionHeaders []struct {
		Name string `json:"name"`
	} `json:"dimensionHeaders"`
	MetricHeaders []struct {
		Name string `json:"name"`
	} `json:"metricHeaders"`
	Rows []struct {
		DimensionValues []value `json:"dimensionValues"`
		MetricValues    []value `json:"metricValues"`
	} `json:"rows"`
	RowCount int `json:"rowCount"`
	Metadata struct {
		CurrencyCode          string `json:"currencyCode"`
		TimeZone              string `json:"timeZone"`
		DataLossFromOtherRow  bool   `json:"dataLossFromOtherRow"`
		SubjectToThresholding bool   `json:"subjectToThresholding"`
		SamplingMetadatas     []any  `json:"samplingMetadatas"`
	} `json:"metadata"`
	PropertyQuota map[string]any `json:"propertyQuota"`
}

type value struct {
	Value string `json:"value"`
}

// snapshot reads both windows in one batch of five reports.
func snapshot(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{Days: 28}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	property, err := choose(ctx, c, in.PropertyID)
	if err != nil {
		return nil, err
	}
	end := c.Now.UTC().AddDate(0, 0, -2) // yesterday is still being counted
	start := end.AddDate(0, 0, 1-in.Days)
	current := window{From: start.Format(day), To: end.Format(day)}
	previous := window{From: start.AddDate(0, 0, -in.Days).Format(day), To: start.AddDate(0, 0, -1).Format(day)}
	reports, err := batch(ctx, c.Host, property, current, previous)
	if err != nil {
		return nil, err
	}
	out := output{Account: "properties/" + property, Window: current, Metrics: map[string]any{}, Rows: []map[string]any{}}
	if err := totals(&out, reports[0], current, previous); err != nil {
		return nil, err
	}
	for i, b := range breakdowns {
		r := reports[i+1]
		for n := range r.Rows {
			m, err := numbers(r, n)
			if err != nil {
				return nil, err
			}
			m["kind"] = b.dimension
			for d, v := range r.Rows[n].DimensionValues {
				m[r.DimensionHeaders[d].Name] = v.Value
			}
			out.Rows = append(out.Rows, m)
		}
		flags(&out, b.dimension, r)
	}
	return out, nil
}

func batch(ctx context.Context, host sdk.Host, property string, current, previous window) ([]report, error) {
	type named map[string]string
	names := []named{}
	for _, m := range metrics {
		names = append(names, named{"name": m})
	}
	ranges := func(w window) []named { return []named{{"startDate": w.From, "endDate": w.To}} }
	requests := []map[string]any{{"dateRanges": append(ranges(current), ranges(previous)...), "metrics": names, "returnPropertyQuota": true}}
	for _, b := range breakdowns {
		requests = append(requests, map[string]any{"dateRanges": ranges(current), "dimensions": []named{{"name": b.dimension}}, "metrics": names,
			"limit": strconv.Itoa(b.limit), "returnPropertyQuota": true})
	}
	var answer struct {
		Reports []report `json:"reports"`
	}
	err := get(ctx, host, "ga.batch", map[string]string{"id": property}, nil, map[string]any{"requests": requests}, &answer)
	if err != nil {
		return nil, err
	}
	if len(answer.Reports) != len(requests) {
		return nil, sdk.Fail("provider_reply", "Analytics answered %d of %d reports. Try again later.", len(answer.Reports), len(requests))
	}
	for _, r := range answer.Reports {
		for _, row := range r.Rows {
			if len(row.MetricValues) != len(r.MetricHeaders) || len(row.DimensionValues) != len(r.DimensionHeaders) {
				return nil, sdk.Fail("provider_reply", "Analytics answered rows that do not fit their headers. Try again later.")
			}
		}
	}
	return answer.Reports, nil
}

// totals reads the report of both windows, whose rows the API marks with date_range_N.
func totals(out *output, r report, current, previous window) error {
	for name, w := range map[string]window{"current": current, "previous": previous} {
		m := map[string]any{}
		for _, metric := range metrics {
			m[metric] = 0.0
		}
		want := "date_range_0"
		if name == "previous" {
			want = "date_range_1"
		}
		for n, row := range r.Rows {
			if len(row.DimensionValues) == 1 && row.DimensionValues[0].Value == want {
				found, err := numbers(r, n)
				if err != nil {
					return err
				}
				m = found
			}
		}
		m["from"], m["to"] = w.From, w.To
		out.Metrics[name] = m
	}
	out.Metrics["currency"], out.Metrics["timeZone"] = r.Metadata.CurrencyCode, r.Metadata.TimeZone
	if r.PropertyQuota != nil {
		out.Metrics["quota"] = r.PropertyQuota
	}
	flags(out, "totals", r)
	return nil
}

func numbers(r report, row int) (map[string]any, error) {
	m := map[string]any{}
	for i, h := range r.MetricHeaders {
		n, err := strconv.ParseFloat(r.Rows[row].MetricValues[i].Value, 64)
		if err != nil {
			return nil, sdk.Fail("provider_reply", "Analytics answered %q where a number belongs.", clip(r.Rows[row].MetricValues[i].Value))
		}
		m[h.Name] = n
	}
	return m, nil
}

// flags keeps what makes a report less than the whole truth.
func flags(out *output, name string, r report) {
	incomplete, _ := out.Metrics["incomplete"].([]string)
	if incomplete == nil {
		incomplete = []string{}
	}
	add := func(on bool, what string) {
		if on {
			incomplete = append(incomplete, name+": "+what)
		}
	}
	add(r.Metadata.SubjectToThresholding, "rows of few people are hidden")
	add(r.Metadata.DataLossFromOtherRow, "rare values are summed as (other)")
	add(len(r.Metadata.SamplingMetadatas) > 0, "sampled")
	add(r.RowCount > len(r.Rows) && len(r.Rows) > 0, fmt.Sprintf("%d of %d rows", len(r.Rows), r.RowCount))
	out.Metrics["incomplete"] = incomplete
}

// choose is the property asked for, else that of the connection, else the only one.
func choose(ctx context.Context, c *sdk.Call, asked string) (string, error) {
	if asked == "" && c.Connection != nil {
		asked = c.Connection.Fields["propertyId"]
	}
	if asked != "" {
		return asked, nil
	}
	var list struct {
		AccountSummaries []struct {
			PropertySummaries []struct {
				Property    string `json:"property"`
				DisplayName string `json:"displayName"`
			} `json:"propertySummaries"`
		} `json:"accountSummaries"`
	}
	if err := get(ctx, c.Host, "ga.accounts", nil, []sdk.Pair{{Name: "pageSize", Value: "200"}}, nil, &list); err != nil {
		return "", err
	}
	f := sdk.Fail("choose_property", "Name the property to read.")
	var ids []string
	for _, a := range list.AccountSummaries {
		for _, p := range a.PropertySummaries {
			id := strings.TrimPrefix(p.Property, "properties/")
			ids = append(ids, id)
			f.WhatWouldHelp = append(f.WhatWouldHelp, "propertyId "+id+" ("+p.DisplayName+")")
		}
	}
	switch len(ids) {
	case 0:
		return "", sdk.Fail("no_property", "The connected account reads no Analytics property. Connect another account.")
	case 1:
		return ids[0], nil
	}
	f.WhatWouldHelp = f.WhatWouldHelp[:min(len(f.WhatWouldHelp), 20)]
	return "", f
}

func get(ctx context.Context, host sdk.Host, endpoint string, params map[string]string, query []sdk.Pair, body, out any) error {
	req := sdk.FetchRequest{Endpoint: endpoint, PathParams: params, Query: query}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		req.Body, req.Headers = b, []sdk.Pair{{Name: "Content-Type", Value: "application/json"}}
	}
	reply, err := host.Fetch(ctx, req)
	if err != nil {
		return err
	}
	if reply.Status != 200 {
		return failure(reply.Status, reply.Body)
	}
	if err := json.Unmarshal(reply.Body, out); err != nil {
		return sdk.Fail("provider_reply", "Analytics answered something that is not JSON. Try again later.")
	}
	return nil
}

// failure names the cure for the errors that Google documents.
func failure(status int, body []byte) error {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &e) // an error page without JSON still has its status
	switch {
	case status == 401:
		return sdk.Fail("needs_reauth", "Google no longer accepts the connection. Connect Analytics again.")
	case status == 429:
		return &sdk.Failure{Code: "provider_quota", Message: "The quota of the property is used up. Try again in an hour.", Retryable: true}
	case status == 403 && strings.Contains(e.Error.Message, "has not been used"):
		return sdk.Fail("api_disabled", "The Analytics API is not enabled in the Cloud project. Enable it, wait a minute and try again.")
	case status == 403:
		return sdk.Fail("provider_forbidden", "Google refused: %s Check that the account may read this property.", clip(e.Error.Message))
	case status == 400:
		return sdk.Fail("provider_refused", "Analytics refused the report: %s", clip(e.Error.Message))
	}
	return &sdk.Failure{Code: "provider_error", Message: fmt.Sprintf("Analytics answered %d. Try again later.", status), Retryable: status >= 500}
}

func clip(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
