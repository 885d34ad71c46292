package searchconsole

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	_ "time/tzdata" // plugins run without the zone files of the machine

	"github.com/sallyport-dev/sallyport/sdk"
)

const day = "2006-01-02"

// settled is how many days back the numbers no longer change.
const settled = 3

// Near wins are pages that many people see just below the places that get clicks.
const (
	nearWinImpressions = 100
	nearWinFrom        = 4.0
	nearWinTo          = 15.0
)

type input struct {
	SiteURL string `json:"siteUrl"`
	Days    int    `json:"days"`
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

// line is one row of a search report.
type line struct {
	Keys        []string `json:"keys"`
	Clicks      float64  `json:"clicks"`
	Impressions float64  `json:"impressions"`
	CTR         float64  `json:"ctr"`
	Position    float64  `json:"position"`
}

// snapshot takes six reads: sites, both totals, queries, pages, sitemaps.
func snapshot(ctx context.Context, c *sdk.Call) (any, error) {
	in := input{Days: 28}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	r := reader{ctx: ctx, host: c.Host}
	site, err := r.site(in.SiteURL, c.Connection)
	if err != nil {
		return nil, err
	}
	current, previous, err := windows(c.Now, in.Days)
	if err != nil {
		return nil, err
	}
	out := output{Account: site, Window: current, Metrics: map[string]any{}, Rows: []map[string]any{}}
	for name, w := range map[string]window{"current": current, "previous": previous} {
		lines, err := r.query(site, w, "", 1)
		if err != nil {
			return nil, err
		}
		out.Metrics[name] = totals(w, lines)
	}
	for _, dimension := range []string{"query", "page"} {
		lines, err := r.query(site, current, dimension, 50)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			out.Rows = append(out.Rows, row(dimension, l))
		}
		out.Metrics[dimension+"RowsTruncated"] = len(lines) == 50
	}
	sitemaps, failing, err := r.sitemaps(site)
	if err != nil {
		return nil, err
	}
	out.Rows = append(out.Rows, sitemaps...)
	out.Metrics["sitemapsWithErrors"] = failing
	out.Metrics["dataState"] = "final"
	return out, nil
}

// windows are the last complete days, and as many before. Search Console counts days in
// Pacific time.
func windows(now time.Time, days int) (current, previous window, err error) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		return current, previous, err
	}
	local := now.In(pacific)
	end := time.Date(local.Year(), local.Month(), local.Day()-settled, 0, 0, 0, 0, time.UTC)
	start := end.AddDate(0, 0, 1-days)
	before := start.AddDate(0, 0, -1)
	current = window{From: start.Format(day), To: end.Format(day)}
	previous = window{From: before.AddDate(0, 0, 1-days).Format(day), To: before.Format(day)}
	return current, previous, nil
}

func totals(w window, lines []line) map[string]any {
	t := line{}
	if len(lines) > 0 {
		t = lines[0]
	}
	return map[string]any{"from": w.From, "to": w.To, "clicks": t.Clicks, "impressions": t.Impressions, "ctr": round(t.CTR, 4), "position": round(t.Position, 1)}
}

func row(dimension string, l line) map[string]any {
	key := ""
	if len(l.Keys) > 0 {
		key = l.Keys[0]
	}
	m := map[string]any{"kind": dimension, dimension: key, "clicks": l.Clicks, "impressions": l.Impressions, "ctr": round(l.CTR, 4), "position": round(l.Position, 1)}
	if dimension == "page" {
		m["nearWin"] = l.Impressions >= nearWinImpressions && l.Position >= nearWinFrom && l.Position <= nearWinTo
	}
	return m
}

func round(x float64, places int) float64 {
	p := math.Pow10(places)
	return math.Round(x*p) / p
}

// reader does the reads of one snapshot.
type reader struct {
	ctx  context.Context
	host sdk.Host
}

func (r reader) get(endpoint string, params map[string]string, body, out any) error {
	req := sdk.FetchRequest{Endpoint: endpoint, PathParams: params}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		req.Body, req.Headers = b, []sdk.Pair{{Name: "Content-Type", Value: "application/json"}}
	}
	reply, err := r.host.Fetch(r.ctx, req)
	if err != nil {
		return err
	}
	if reply.Status != 200 {
		return failure(reply.Status, reply.Body)
	}
	if err := json.Unmarshal(reply.Body, out); err != nil {
		return sdk.Fail("provider_reply", "Search Console answered something that is not JSON. Try again later.")
	}
	return nil
}

// failure names the cure for the errors that Google documents.
func failure(status int, body []byte) error {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &e) // an error page without JSON still has its status
	reason := ""
	if len(e.Error.Errors) > 0 {
		reason = e.Error.Errors[0].Reason
	}
	switch {
	case status == 401:
		return sdk.Fail("needs_reauth", "Google no longer accepts the connection. Connect Search Console again.")
	case reason == "quotaExceeded" || status == 429:
		return &sdk.Failure{Code: "provider_quota", Message: "The quota of Search Console is used up. Try again in 15 minutes.", Retryable: true}
	case status == 403:
		return sdk.Fail("provider_forbidden", "Google refused: %s Check that the API is enabled and that the account may read this site.", clip(e.Error.Message))
	case status == 404:
		return sdk.Fail("site_not_found", "The account has no such site. Choose one that it lists.")
	}
	return &sdk.Failure{Code: "provider_error", Message: fmt.Sprintf("Search Console answered %d. Try again later.", status), Retryable: status >= 500}
}

func clip(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}

// site is the one asked for, else that of the connection, else the only verified one.
func (r reader) site(asked string, c *sdk.Connection) (string, error) {
	var list struct {
		SiteEntry []struct {
			SiteURL         string `json:"siteUrl"`
			PermissionLevel string `json:"permissionLevel"`
		} `json:"siteEntry"`
	}
	if err := r.get("gsc.sites", nil, nil, &list); err != nil {
		return "", err
	}
	if asked == "" && c != nil {
		asked = c.Fields["siteUrl"]
	}
	var readable []string
	for _, s := range list.SiteEntry {
		if s.PermissionLevel == "SITE_UNVERIFIED_USER" || s.PermissionLevel == "siteUnverifiedUser" {
			continue
		}
		if s.SiteURL == asked {
			return asked, nil
		}
		readable = append(readable, s.SiteURL)
	}
	switch {
	case asked == "" && len(readable) == 1:
		return readable[0], nil
	case len(readable) == 0:
		return "", sdk.Fail("no_site", "The connected account has no verified site in Search Console. Verify one, or connect another account.")
	}
	f := sdk.Fail("choose_site", "Name the site to read.")
	if asked != "" {
		f = sdk.Fail("choose_site", "The account cannot read %s.", asked)
	}
	for _, s := range readable[:min(len(readable), 20)] {
		f.WhatWouldHelp = append(f.WhatWouldHelp, "siteUrl "+s)
	}
	return "", f
}

func (r reader) query(site string, w window, dimension string, limit int) ([]line, error) {
	body := map[string]any{"startDate": w.From, "endDate": w.To, "type": "web", "dataState": "final", "rowLimit": limit}
	if dimension != "" {
		body["dimensions"] = []string{dimension}
	}
	var report struct {
		Rows []line `json:"rows"`
	}
	err := r.get("gsc.query", map[string]string{"siteUrl": site}, body, &report)
	return report.Rows, err
}

// sitemaps lists those with errors or warnings; Google writes the counts as text.
func (r reader) sitemaps(site string) (rows []map[string]any, failing int, err error) {
	var list struct {
		Sitemap []struct {
			Path           string `json:"path"`
			Errors         string `json:"errors"`
			Warnings       string `json:"warnings"`
			LastDownloaded string `json:"lastDownloaded"`
			IsPending      bool   `json:"isPending"`
		} `json:"sitemap"`
	}
	if err := r.get("gsc.sitemaps", map[string]string{"siteUrl": site}, nil, &list); err != nil {
		return nil, 0, err
	}
	rows = []map[string]any{}
	for _, s := range list.Sitemap {
		errors, _ := strconv.Atoi(s.Errors) // absent means none
		warnings, _ := strconv.Atoi(s.Warnings)
		if errors > 0 {
			failing++
		}
		rows = append(rows, map[string]any{"kind": "sitemap", "path": s.Path, "errors": errors, "warnings": warnings, "pending": s.IsPending, "lastDownloaded": s.LastDownloaded})
	}
	return rows, failing, nil
}
