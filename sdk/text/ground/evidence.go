// Package ground decides whether copy rests on evidence: what an evidence item is, which sentences claim something,
// which item supports each claim, and how generic a text is against the evidence it was drafted from.
package ground

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk/text"
)

// Kinds of evidence.
const (
	PageText      = "page_text"
	PageMeta      = "page_meta"
	PageJSONLD    = "page_jsonld"
	CSSToken      = "css_token"
	RepoReadme    = "repo_readme"
	RepoCommit    = "repo_commit"
	RepoFile      = "repo_file"
	RepoRoute     = "repo_route"
	RepoManifest  = "repo_manifest"
	Metric        = "metric"
	MetricDelta   = "metric_delta"
	ConnectorRow  = "connector_row"
	UserStatement = "user_statement"
	BrandField    = "brand_field"
	Rule          = "rule"
)

// Trust says who stands behind an item.
const (
	Observed    = "observed"     // read by the platform itself
	OwnerStated = "owner_stated" // typed by the caller
	ThirdParty  = "third_party"  // said by somebody else about the product
	Inferred    = "inferred"     // our own deduction; never enough on its own for a claim
)

// Evidence is one thing known, with the place where it can be looked up. Texts are untrusted: NewEvidence cleans them.
type Evidence struct {
	ID         string   `json:"id"`
	RunID      string   `json:"runId,omitempty"`
	Source     string   `json:"source"`
	Kind       string   `json:"kind"`
	Locator    string   `json:"locator"`
	Fact       string   `json:"fact,omitempty"`
	Value      *float64 `json:"value,omitempty"`
	Unit       string   `json:"unit,omitempty"`
	Period     string   `json:"period,omitempty"`
	URL        string   `json:"url,omitempty"`
	Quote      string   `json:"quote,omitempty"`
	Trust      string   `json:"trust"`
	CapturedAt string   `json:"capturedAt,omitempty"`
	Digest     string   `json:"digest"`
	FreshUntil string   `json:"freshUntil,omitempty"`
	FetchID    string   `json:"-"` // evidence id of the fetch whose body holds the quote; observed items need it
}

// NewEvidence cleans the texts of e and fills in its run, id and digest. The id covers the run, so that an item belongs
// to one run; the digest does not, so that two runs can be compared. Neither covers the time of capture.
func NewEvidence(runID string, e Evidence) Evidence {
	e.RunID = runID
	e.Quote = text.Clean(e.Quote)
	e.Fact = text.Clean(e.Fact)
	e.Source = text.OneLine(e.Source, 500)
	e.Locator = text.OneLine(e.Locator, 500)
	e.Unit = text.OneLine(e.Unit, 40)
	content := e.Fact + "\x00" + e.Quote + "\x00" + e.Unit + "\x00" + e.Period + "\x00" + e.URL
	if e.Value != nil {
		content += "\x00" + strconv.FormatFloat(*e.Value, 'g', -1, 64)
	}
	e.ID = "ev_" + hash(runID, e.Kind, e.Source, e.Locator, content)[:20]
	e.Digest = hash(e.Kind, e.Source, e.Locator, content)
	return e
}

// hash is SHA-256 over length-prefixed fields, so that no two field lists share an encoding.
func hash(fields ...string) string {
	h := sha256.New()
	for _, field := range fields {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write([]byte(field))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Text is what an item says, for matching: its fact (the heading or question it stands under, or our own wording) and
// its quote, with its value.
func (e Evidence) Text() string {
	body := e.Quote
	switch {
	case body == "":
		body = e.Fact
	case e.Fact != "" && !strings.Contains(e.Quote, e.Fact):
		body = e.Fact + "\n" + e.Quote
	}
	if e.Value != nil {
		value := strconv.FormatFloat(*e.Value, 'f', -1, 64)
		if !strings.Contains(body, value) {
			body = strings.TrimSpace(body + " " + value + " " + e.Unit)
		}
	}
	return body
}

// Table collects evidence in order, each item once.
type Table struct {
	runID string
	at    string
	items []Evidence
	seen  map[string]bool
}

// NewTable starts an empty table for a run. at is the time (RFC 3339) written into items that name none; it may be empty.
func NewTable(runID, at string) *Table {
	return &Table{runID: runID, at: at, seen: map[string]bool{}}
}

// Add puts an item into the table and returns its id. An item that says nothing is left out and gives "".
func (t *Table) Add(e Evidence) string {
	if e.CapturedAt == "" {
		e.CapturedAt = t.at
	}
	e = NewEvidence(t.runID, e)
	if e.Quote == "" && e.Fact == "" && e.Value == nil {
		return ""
	}
	if !t.seen[e.ID] {
		t.seen[e.ID] = true
		t.items = append(t.items, e)
	}
	return e.ID
}

// Items returns the collected evidence in order of arrival. The caller must not change it.
func (t *Table) Items() []Evidence { return t.items }

// Len is the number of items.
func (t *Table) Len() int { return len(t.items) }
