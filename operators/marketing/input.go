package marketing

import (
	"encoding/json"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// mailOrder says whom a launch mail goes to and what law asks to stand in it.
type mailOrder struct {
	Audience       string   `json:"audience"`
	Recipients     []string `json:"recipients"`
	LawfulBasis    string   `json:"lawfulBasis"`
	SenderName     string   `json:"senderName"`
	PostalAddress  string   `json:"postalAddress"`
	UnsubscribeURL string   `json:"unsubscribeUrl"`
}

// launchInput is the input of the two launch tools.
type launchInput struct {
	WhatChanged    string          `json:"whatChanged"`
	RecentCommits  json.RawMessage `json:"recentCommits"`
	ChangedFiles   json.RawMessage `json:"changedFiles"`
	Routes         json.RawMessage `json:"routes"`
	Readme         json.RawMessage `json:"readme"`
	TargetCustomer string          `json:"targetCustomer"`
	LaunchGoal     string          `json:"launchGoal"`
	URL            string          `json:"url"`
	RepoContext    json.RawMessage `json:"repoContext"`
	BrandDNAID     string          `json:"brandDnaId"`
	Channels       []string        `json:"channels"`
	LaunchAt       string          `json:"launchAt"`
	Email          mailOrder       `json:"email"`
	ProjectID      string          `json:"projectId"`
	DryRun         bool            `json:"dryRun"`
}

// context is the repository context of the call: what the collector printed wins over the single fields.
func (in launchInput) context() (json.RawMessage, *source.Repo, error) {
	merged := map[string]json.RawMessage{}
	put := func(name string, raw json.RawMessage) {
		if len(raw) > 0 && string(raw) != "null" && string(raw) != `""` {
			merged[name] = raw
		}
	}
	quoted := func(s string) json.RawMessage {
		raw, err := json.Marshal(s)
		if err != nil {
			return nil // a string always is JSON
		}
		return raw
	}
	put("whatChanged", quoted(in.WhatChanged))
	put("recentCommits", in.RecentCommits)
	put("changedFiles", in.ChangedFiles)
	put("routes", in.Routes)
	put("readme", in.Readme)
	put("targetCustomer", quoted(in.TargetCustomer))
	put("launchGoal", quoted(in.LaunchGoal))
	if len(in.RepoContext) > 0 {
		var collected map[string]json.RawMessage
		if err := json.Unmarshal(in.RepoContext, &collected); err != nil {
			f := sdk.Fail("invalid_input", "repoContext is no JSON object: %v", err)
			f.Fields = []sdk.FieldError{{Pointer: "/repoContext", Message: "must be the JSON that repo-context.mjs prints"}}
			return nil, nil, f
		}
		for name, raw := range collected {
			put(name, raw)
		}
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return nil, nil, err
	}
	repo, err := draft.ParseRepo(raw)
	return raw, repo, err
}
