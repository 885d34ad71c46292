package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// access is the Host that one call of one plugin sees.
type access struct {
	host    *Host
	plugin  sdk.Plugin
	depth   int
	fetched map[string][]byte // evidence id of a fetch → body
}

var _ sdk.Host = (*access)(nil)

func (a *access) needs() schemas.Needs { return a.plugin.Manifest.Needs }

func notAllowed(format string, args ...any) error {
	f := sdk.Fail("not_allowed", format, args...)
	f.WhatWouldHelp = []string{"Name it under needs in the manifest."}
	return f
}

// asFailure makes any error what a plugin would see.
func asFailure(err error) error {
	if f, ok := errors.AsType[*sdk.Failure](err); ok {
		return f
	}
	return sdk.Fail("failed", "%v", err)
}

func (a *access) CallTool(ctx context.Context, tool string, input, out any) error {
	if !pluginpb.Allows(a.needs().Tools, tool) {
		return notAllowed("%s does not need the tool %s.", a.plugin.Manifest.Name, tool)
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return sdk.Fail("invalid_input", "The input of %s is not JSON: %v", tool, err)
	}
	_, doc, found := a.host.find(tool)
	if !found {
		return a.canned(tool, raw, out)
	}
	if doc.Effect == schemas.EffectWrite {
		return sdk.Fail("write_tool", "%s is a write tool: propose it, it cannot be called.", tool)
	}
	if a.depth >= maxDepth {
		return sdk.Fail("too_deep", "Calls nest deeper than %d.", maxDepth)
	}
	result := a.host.invoke(ctx, tool, raw, nil, a.depth+1, nil)
	switch {
	case result.Failure != nil:
		return result.Failure
	case result.Ask != nil:
		return sdk.Fail("input_required", "The tool %s asks its caller.", tool)
	}
	return into(result.Result, out)
}

func (a *access) canned(tool string, input json.RawMessage, out any) error {
	answer, ok := a.host.state.tools[tool]
	if !ok {
		return sdk.Fail("unknown_tool", "No tool is called %q.", tool)
	}
	var decoded any
	if err := json.Unmarshal(input, &decoded); err != nil {
		return asFailure(err)
	}
	result := answer(decoded)
	if err, failed := result.(error); failed {
		return asFailure(err)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return asFailure(err)
	}
	return into(raw, out)
}

func into(raw json.RawMessage, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return sdk.Fail("unexpected_answer", "The answer does not fit %T: %v", out, err)
	}
	return nil
}

func (a *access) Complete(_ context.Context, req sdk.CompleteRequest) (*sdk.Completion, error) {
	if a.needs().Model == nil || !*a.needs().Model {
		return nil, notAllowed("%s does not need a model.", a.plugin.Manifest.Name)
	}
	if a.host.state.model == nil {
		return nil, sdk.Fail("model_unavailable", "The workspace has no model.")
	}
	text, err := a.host.state.model(req)
	if err != nil {
		return nil, asFailure(err)
	}
	return &sdk.Completion{Text: text, Model: "sdktest", InputTokens: len(req.Prompt) / 4, OutputTokens: len(text) / 4}, nil
}

func (a *access) Fetch(_ context.Context, req sdk.FetchRequest) (*sdk.FetchReply, error) {
	endpoint, err := a.endpoint(req.Endpoint)
	if err != nil {
		return nil, err
	}
	var reply sdk.FetchReply
	locator := req.URL
	if endpoint.Host == schemas.HostWeb {
		if u, err := url.Parse(req.URL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, sdk.Fail("invalid_url", "%q is not an http or https address.", req.URL)
		}
		var known bool
		if reply, known = a.host.state.pages[req.URL]; !known {
			reply = sdk.FetchReply{Status: 404, Headers: []sdk.Pair{}, Body: []byte{}}
		}
		if reply.FinalURL == "" {
			reply.FinalURL = req.URL
		}
	} else {
		answer, known := a.host.state.fetches[req.Endpoint]
		if !known {
			return nil, sdk.Fail("connector_not_connected", "No answer is set for the endpoint %s; use WithFetch.", req.Endpoint)
		}
		if reply, err = answer(req); err != nil {
			return nil, asFailure(err)
		}
		locator = fmt.Sprintf("%s %v", req.Endpoint, req.PathParams)
	}
	stored := a.host.state.saveEvidence(a.host.runID, []sdk.Evidence{{
		Source: a.plugin.Manifest.Name, Kind: "url", Locator: locator, URL: reply.FinalURL, Trust: "observed",
		Fact: fmt.Sprintf("HTTP %d, SHA-256 %s", reply.Status, hashOf(string(reply.Body))), CapturedAt: a.host.now,
	}})
	reply.EvidenceID = stored[0].ID
	a.fetched[reply.EvidenceID] = reply.Body
	return &reply, nil
}

func (a *access) endpoint(id string) (schemas.Endpoint, error) {
	for _, e := range a.needs().Endpoints {
		if e.ID != id {
			continue
		}
		if e.Class != schemas.ClassRead {
			return e, notAllowed("The endpoint %s is of class %s; only reads can be fetched.", id, e.Class)
		}
		return e, nil
	}
	return schemas.Endpoint{}, notAllowed("%s has no endpoint %s.", a.plugin.Manifest.Name, id)
}

func (a *access) memory(access schemas.ManifestNeedsMemoryElem) error {
	for _, m := range a.needs().Memory {
		if m == access {
			return nil
		}
	}
	return notAllowed("%s does not need to %s memory.", a.plugin.Manifest.Name, access)
}

func (a *access) Recall(_ context.Context, key string, out any) (bool, error) {
	if err := a.memory(schemas.ManifestNeedsMemoryElemRead); err != nil {
		return false, err
	}
	raw := a.host.Memory(key)
	if raw == nil {
		return false, nil
	}
	return true, into(raw, out)
}

// maxMemory is the largest value in memory, in bytes of JSON.
const maxMemory = 256 << 10

func (a *access) Remember(_ context.Context, key string, value any) error {
	if err := a.memory(schemas.ManifestNeedsMemoryElemWrite); err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return sdk.Fail("invalid_input", "What is to be remembered is not JSON: %v", err)
	}
	if len(raw) > maxMemory {
		return sdk.Fail("too_large", "What is to be remembered has %d bytes; %d are allowed.", len(raw), maxMemory)
	}
	a.host.state.mu.Lock()
	defer a.host.state.mu.Unlock()
	a.host.state.memory[key] = raw
	return nil
}

func (a *access) SaveEvidence(_ context.Context, items []sdk.Evidence) ([]sdk.Evidence, error) {
	items = append([]sdk.Evidence(nil), items...)
	for i := range items {
		e := &items[i]
		if e.CapturedAt.IsZero() {
			e.CapturedAt = a.host.now
		}
		if e.Trust == "observed" && !pluginpb.Vouches(a.fetched[e.FetchID], vouched(*e)) {
			e.Trust = "inferred"
		}
		e.ID, e.RunID, e.Digest = "", "", ""
		if err := checkResource("evidence", evidenceResource(*e)); err != nil {
			return nil, sdk.Fail("invalid_evidence", "Item %d does not fit: %v", i, err)
		}
	}
	return a.host.state.saveEvidence(a.host.runID, items), nil
}

// vouched is the text of an item that must stand in the fetched body.
func vouched(e sdk.Evidence) string {
	if e.Quote != "" {
		return e.Quote
	}
	return pluginpb.TextOf(e.Value)
}

func (a *access) SaveAsset(_ context.Context, asset sdk.Asset) (*sdk.AssetRef, error) {
	if a.host.runID == "" {
		return nil, sdk.Fail("no_run", "There is no run to store the draft in.")
	}
	content, err := json.Marshal(asset.Content)
	if err != nil {
		return nil, sdk.Fail("invalid_asset", "The content is not JSON: %v", err)
	}
	if err := checkResource("asset", assetResource(asset, content)); err != nil {
		return nil, sdk.Fail("invalid_asset", "The draft does not fit: %v", err)
	}
	a.host.state.mu.Lock()
	defer a.host.state.mu.Unlock()
	ref := sdk.AssetRef{ID: fmt.Sprintf("ast_01K%023d", len(a.host.state.assets)+1), Revision: 1, Digest: hashOf(string(content))}
	a.host.state.assets = append(a.host.state.assets, Asset{Asset: asset, Ref: ref})
	return &ref, nil
}

func (a *access) Propose(ctx context.Context, p sdk.Proposal) (*sdk.Proposed, error) {
	if !pluginpb.Allows(a.needs().Propose, p.Tool) {
		return nil, notAllowed("%s does not propose the tool %s.", a.plugin.Manifest.Name, p.Tool)
	}
	if a.host.runID == "" {
		return nil, sdk.Fail("no_run", "There is no run to stage the action in.")
	}
	return a.host.propose(ctx, p)
}

func (a *access) Connections(context.Context) ([]sdk.Connection, error) {
	a.host.state.mu.Lock()
	defer a.host.state.mu.Unlock()
	return append([]sdk.Connection{}, a.host.state.connections...), nil
}

func (a *access) UpdateRun(_ context.Context, u sdk.RunUpdate) error {
	if u.Phase != "" && u.Phase != "gathering" && u.Phase != "drafting" {
		return sdk.Fail("invalid_phase", "A plugin sets the phase gathering or drafting, not %q.", u.Phase)
	}
	a.host.state.mu.Lock()
	defer a.host.state.mu.Unlock()
	a.host.state.updates = append(a.host.state.updates, u)
	return nil
}

func (a *access) ReadDataset(_ context.Context, id string, row func(json.RawMessage) error) error {
	if a.needs().Datasets == nil || !*a.needs().Datasets {
		return notAllowed("%s does not need datasets.", a.plugin.Manifest.Name)
	}
	rows, ok := a.host.state.datasets[id]
	if !ok {
		return sdk.Fail("not_found", "There is no dataset %q.", id)
	}
	for _, r := range rows {
		if err := row(r); err != nil {
			return err
		}
	}
	return nil
}

// actionTTL is how long a staged action waits.
const actionTTL = 72 * time.Hour
