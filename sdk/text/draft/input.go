package draft

import (
	"encoding/json"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// Modes of drafting. The checks are the same in each.
const (
	Auto          = "auto"
	Deterministic = "deterministic"
	Caller        = "caller"
)

// ModeOf decides how a call drafts: with the caller's texts when there are some, else from the evidence alone.
func ModeOf(mode string, hasDrafts bool) (string, error) {
	switch {
	case mode == Caller && !hasDrafts:
		f := sdk.Fail("invalid_input", "Mode caller checks the caller's own texts, and drafts holds none.")
		f.Fields = []sdk.FieldError{{Pointer: "/drafts", Message: "is required in mode caller"}}
		return "", f
	case mode == Deterministic || !hasDrafts:
		return Deterministic, nil
	}
	return Caller, nil
}

// ParseRepo reads a repository context; an absent one is an empty one.
func ParseRepo(raw json.RawMessage) (*source.Repo, error) {
	repo := &source.Repo{}
	if len(raw) == 0 || string(raw) == "null" {
		return repo, nil
	}
	if err := json.Unmarshal(raw, repo); err != nil {
		f := sdk.Fail("invalid_input", "repoContext does not have the collector's shape: %v", err)
		f.Fields = []sdk.FieldError{{Pointer: "/repoContext", Message: "must be the JSON that repo-context.mjs prints, or a part of it"}}
		f.WhatWouldHelp = []string{"Run the collector script and hand over its output unchanged."}
		return nil, f
	}
	return repo, nil
}

// NothingToSay is the failure of a call without evidence, with the three questions that would help.
func NothingToSay(what string) *sdk.Failure {
	f := sdk.Fail("insufficient_evidence", "There is not enough evidence to draft %s, and nothing is made up.", what)
	f.WhatWouldHelp = []string{
		"What changed, in one sentence? (whatChanged in repoContext, or topic)",
		"What is the product and whom is it for? (mkt_extract_brand_dna with the address of its page)",
		"Which result or detail can you show? (a README, release notes or numbers in repoContext)",
	}
	return f
}
