package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/connector"
	"github.com/sallyport-dev/sallyport/schemas"
	"github.com/sallyport-dev/sallyport/sdk/effect"
	"github.com/sallyport-dev/sallyport/sdk/proto/plugin/v1/pluginpb"
)

// Fetch reads through an endpoint of the manifest. What was read is stored as evidence,
// and kept until the call ends, so that quotes can be checked against it.
func (h *hostServer) Fetch(ctx context.Context, r *pluginpb.FetchRequest) (*pluginpb.FetchResponse, error) {
	out := &pluginpb.FetchResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		endpoints := h.needs().Endpoints
		at := slices.IndexFunc(endpoints, func(e schemas.Endpoint) bool { return e.ID == r.GetEndpoint() })
		if at < 0 {
			return h.refuse("has no endpoint %s.", clip(escape(r.GetEndpoint()), 100))
		}
		if endpoints[at].Class != schemas.ClassRead {
			return h.refuse("may not fetch through %s: only endpoints of class read can be fetched.", endpoints[at].ID)
		}
		reply, err := h.services.Connectors.Read(ctx, connector.ReadRequest{
			WorkspaceID: t.scope.WorkspaceID(), Provider: h.provider(), Endpoint: endpoints[at], PathParams: r.GetPathParams(),
			Query: pairs(r.GetQuery()), Headers: pairs(r.GetHeaders()), Body: r.GetBody(), URL: r.GetUrl(),
		})
		if err != nil {
			return err
		}
		out.Status, out.Body, out.FinalUrl, out.Truncated = int32(reply.Status), reply.Body, reply.FinalURL, reply.Truncated
		for _, p := range reply.Headers {
			out.Headers = append(out.Headers, &pluginpb.Pair{Name: p.Name, Value: strings.ToValidUTF8(p.Value, "?")})
		}
		out.EvidenceId, err = h.keepFetch(ctx, t, endpoints[at], r, out)
		return err
	})
	return out, nil
}

// keepFetch stores a read as evidence of the run; outside a run there is nowhere to.
func (h *hostServer) keepFetch(ctx context.Context, t *ticket, e schemas.Endpoint, r *pluginpb.FetchRequest, reply *pluginpb.FetchResponse) (string, error) {
	if t.scope.RunID == "" {
		return "", nil
	}
	kind, locator, url := core.EvidenceKindConnector, e.ID, reply.GetFinalUrl()
	if e.Host == schemas.HostWeb {
		kind, locator = core.EvidenceKindURL, r.GetUrl()
	} else if len(r.GetPathParams()) > 0 {
		params, err := json.Marshal(r.GetPathParams()) // sorted by name
		if err != nil {
			return "", err
		}
		locator += " " + string(params)
	}
	fact := fmt.Sprintf("HTTP %d, SHA-256 %x", reply.GetStatus(), sha256.Sum256(reply.GetBody()))
	saved, err := h.services.Runs.SaveEvidence(ctx, t.scope.WorkspaceID(), t.scope.RunID, []core.Evidence{{
		Source: h.plugin.entry.Name, Kind: kind, Locator: clip(locator, 2000), Fact: &fact, URL: &url, Trust: core.EvidenceTrustObserved, CapturedAt: h.services.Clock.Now(),
	}})
	if err != nil {
		return "", err
	}
	t.keep(saved[0].ID, reply.GetBody(), r.GetUrl(), url)
	return saved[0].ID, nil
}

func pairs(list []*pluginpb.Pair) []effect.Pair {
	out := make([]effect.Pair, 0, len(list))
	for _, p := range list {
		out = append(out, effect.Pair{Name: p.GetName(), Value: p.GetValue()})
	}
	return out
}

// SaveEvidence stores what a plugin found or was told. Only what stands in what
// this call fetched, under the address it was fetched from, stays "observed": a plugin
// cannot vouch for itself.
func (h *hostServer) SaveEvidence(ctx context.Context, r *pluginpb.SaveEvidenceRequest) (*pluginpb.SaveEvidenceResponse, error) {
	out := &pluginpb.SaveEvidenceResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		if err := inRun(t); err != nil {
			return err
		}
		var in []struct {
			core.Evidence
			FetchID string `json:"fetchId"`
		}
		if err := json.Unmarshal(r.GetEvidence(), &in); err != nil {
			return core.Errf(core.KindInvalid, "invalid_evidence", "The evidence cannot be read: it must be a list of evidence objects.")
		}
		items := make([]core.Evidence, 0, len(in))
		for i, given := range in {
			e := given.Evidence
			if e.Trust == core.EvidenceTrustObserved && !t.vouches(given.FetchID, e) {
				e.Trust = core.EvidenceTrustInferred
			}
			if e.CapturedAt.IsZero() {
				e.CapturedAt = h.services.Clock.Now()
			}
			e.CapturedAt = e.CapturedAt.UTC().Truncate(time.Microsecond)
			sample := e
			sample.ID, sample.Digest = "ev_00000000000000000000", strings.Repeat("0", 64)
			sample.RunID, sample.WorkspaceID = t.scope.RunID, t.scope.WorkspaceID()
			if err := checkResource("evidence", sample, fmt.Sprintf("/%d", i)); err != nil {
				return err
			}
			items = append(items, e)
		}
		if len(items) == 0 {
			out.Evidence = []byte("[]")
			return nil
		}
		saved, err := h.services.Runs.SaveEvidence(ctx, t.scope.WorkspaceID(), t.scope.RunID, items)
		if err != nil {
			return err
		}
		out.Evidence, err = json.Marshal(saved)
		return err
	})
	return out, nil
}

// SaveAsset stores a draft.
func (h *hostServer) SaveAsset(ctx context.Context, r *pluginpb.SaveAssetRequest) (*pluginpb.SaveAssetResponse, error) {
	out := &pluginpb.SaveAssetResponse{}
	out.Failure = h.ask(ctx, r.GetTicket(), func(ctx context.Context, t *ticket) error {
		if err := inRun(t); err != nil {
			return err
		}
		var a core.Asset
		if err := json.Unmarshal(r.GetAsset(), &a); err != nil {
			return core.Errf(core.KindInvalid, "invalid_asset", "The draft cannot be read; its content must be a JSON object.")
		}
		a.ID, a.Status, a.Revision = "", core.AssetStatusDraftUnapproved, 1
		a.CreatedAt = h.services.Clock.Now()
		if a.Claims == nil {
			a.Claims = []core.Claim{}
		}
		if a.Checks == nil {
			a.Checks = []core.Check{}
		}
		for i := range a.Claims {
			if a.Claims[i].EvidenceIds == nil {
				a.Claims[i].EvidenceIds = []string{}
			}
		}
		sample := a
		sample.ID, sample.Digest = "ast_00000000000000000000000000", strings.Repeat("0", 64)
		sample.RunID, sample.WorkspaceID = t.scope.RunID, t.scope.WorkspaceID()
		if err := checkResource("asset", sample, ""); err != nil {
			return err
		}
		saved, err := h.services.Runs.SaveAsset(ctx, t.scope.WorkspaceID(), t.scope.RunID, a)
		if err != nil {
			return err
		}
		out.Asset, err = json.Marshal(core.AssetRef{ID: saved.ID, Revision: saved.Revision, Digest: saved.Digest})
		return err
	})
	return out, nil
}

// resources are the compiled schemas of what plugins store.
var resources = struct {
	sync.Mutex
	byName map[string]*schemas.Schema
}{byName: map[string]*schemas.Schema{}}

// checkResource holds a value against its resource schema before it is stored: readers
// promise that everything they show fits.
func checkResource(name string, value any, at string) error {
	resources.Lock()
	s, ok := resources.byName[name]
	if !ok {
		var err error
		if s, err = schemas.Resource(name); err != nil {
			resources.Unlock()
			return err
		}
		resources.byName[name] = s
	}
	resources.Unlock()
	raw, err := json.Marshal(value)
	if err != nil {
		return core.Errf(core.KindInvalid, "invalid_"+name, "It is not JSON.")
	}
	if err := s.Validate(raw); err != nil {
		out := core.Errf(core.KindInvalid, "invalid_"+name, "It does not fit resource/%s.json.", name)
		if v, ok := errors.AsType[*schemas.ValidationError](err); ok {
			for _, issue := range v.Issues {
				out.Fields = append(out.Fields, core.FieldError{Pointer: at + issue.Pointer, Message: issue.Message})
			}
		}
		return out
	}
	return nil
}
