package run

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Limits of what a plugin stores in a run.
const (
	MaxAssetBytes = 1 << 20
	MaxQuote      = 2000 // characters
	MaxEvidence   = 2000 // items in one call
)

// Asset reads a draft of the caller's workspace.
func (s *Service) Asset(ctx context.Context, p core.Principal, id string) (*core.Asset, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	row, err := s.d.DB.Asset(ctx, store.WorkspaceID(p.WorkspaceID), id)
	if err != nil {
		return nil, err
	}
	return assetOf(row)
}

// Assets reads a page of drafts, newest first.
func (s *Service) Assets(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.Asset], error) {
	out := core.Page[core.Asset]{Items: []core.Asset{}}
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return out, err
	}
	page, err := s.d.DB.ListAssets(ctx, store.WorkspaceID(p.WorkspaceID), q)
	if err != nil {
		return out, err
	}
	out.NextCursor = page.NextCursor
	for i := range page.Items {
		a, err := assetOf(&page.Items[i])
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, *a)
	}
	return out, nil
}

// Evidence reads one piece of evidence of the caller's workspace.
func (s *Service) Evidence(ctx context.Context, p core.Principal, id string) (*core.Evidence, error) {
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return nil, err
	}
	row, err := s.d.DB.Evidence(ctx, store.WorkspaceID(p.WorkspaceID), id)
	if err != nil {
		return nil, err
	}
	e := &core.Evidence{}
	return e, row.Data.Decode(e)
}

// EvidenceOf reads a page of evidence, newest first; usually of one run.
func (s *Service) EvidenceOf(ctx context.Context, p core.Principal, q core.Query) (core.Page[core.Evidence], error) {
	out := core.Page[core.Evidence]{Items: []core.Evidence{}}
	if err := p.Require(core.ScopeRunsRead); err != nil {
		return out, err
	}
	page, err := s.d.DB.ListEvidence(ctx, store.WorkspaceID(p.WorkspaceID), q)
	if err != nil {
		return out, err
	}
	out.NextCursor = page.NextCursor
	for _, row := range page.Items {
		var e core.Evidence
		if err := row.Data.Decode(&e); err != nil {
			return out, err
		}
		out.Items = append(out.Items, e)
	}
	return out, nil
}

// SaveAsset stores a draft. With the id of an asset of the same run it stores the next
// revision of that draft. It sets identifier, revision, digest, status and time.
func (s *Service) SaveAsset(ctx context.Context, workspaceID, runID string, a core.Asset) (*core.Asset, error) {
	content, err := json.Marshal(a.Content)
	if err != nil || len(content) > MaxAssetBytes || !utf8.Valid(content) {
		return nil, core.Errf(core.KindTooLarge, "asset_too_large", "The content of the draft must be JSON of at most %d bytes.", MaxAssetBytes)
	}
	if err := checkAsset(a); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	a.Digest, a.Status, a.RunID, a.WorkspaceID = hex.EncodeToString(sum[:]), core.AssetStatusDraftUnapproved, runID, workspaceID
	a.Claims, a.Checks = notNil(a.Claims), notNil(a.Checks)
	for i := range a.Claims {
		a.Claims[i].EvidenceIds = notNil(a.Claims[i].EvidenceIds)
	}
	ws := store.WorkspaceID(workspaceID)
	err = s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if _, err := s.open(ctx, tx, ws, runID); err != nil {
			return err
		}
		a.CreatedAt, a.Revision, a.ParentRevision = now, 1, 0
		var old *store.Asset
		if a.ID != "" {
			if old, err = tx.Asset(ctx, ws, a.ID); err != nil {
				return err
			}
			if old.RunID != runID {
				return core.Errf(core.KindNotFound, "not_found", "There is no asset %s in this run.", a.ID)
			}
			a.Revision, a.ParentRevision = old.Revision+1, old.Revision
		} else {
			a.ID = core.NewID(core.PrefixAsset, now)
		}
		row := assetRow(&a, now, old)
		if old == nil {
			err = tx.InsertAsset(ctx, row)
		} else {
			err = tx.UpdateAsset(ctx, row)
		}
		if err != nil {
			return err
		}
		_, err = s.Recompute(ctx, tx, workspaceID, runID, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &a, nil
}

func checkAsset(a core.Asset) error {
	switch {
	case a.Kind == "" || a.Content == nil:
		return core.Errf(core.KindInvalid, "invalid_asset", "A draft needs kind and content.")
	case !slices.Contains([]core.AssetOrigin{core.AssetOriginCaller, core.AssetOriginDeterministic, core.AssetOriginModel}, a.Origin):
		return core.Errf(core.KindInvalid, "invalid_asset", "The draft's origin %q is none of caller, deterministic, model.", a.Origin)
	}
	return nil
}

// open reads a run that still takes drafts and evidence.
func (s *Service) open(ctx context.Context, r interface {
	Run(context.Context, store.WorkspaceID, string) (*store.Run, error)
}, ws store.WorkspaceID, runID string) (*store.Run, error) {
	row, err := r.Run(ctx, ws, runID)
	if err != nil {
		return nil, err
	}
	switch row.Phase {
	case core.PhaseClosed, core.PhaseFailed, core.PhaseCancelled:
		return nil, core.Errf(core.KindConflict, "run_ended", "The run is %s and takes nothing more. Open a new run.", row.Phase)
	}
	return row, nil
}

// SaveEvidence stores what was read or stated and returns it with identifier, digest
// and time. The same evidence of a run is stored once.
func (s *Service) SaveEvidence(ctx context.Context, workspaceID, runID string, items []core.Evidence) ([]core.Evidence, error) {
	if len(items) > MaxEvidence {
		return nil, core.Errf(core.KindTooLarge, "too_much_evidence", "%d pieces of evidence in one call; at most %d are taken.", len(items), MaxEvidence)
	}
	out := slices.Clone(items)
	ws := store.WorkspaceID(workspaceID)
	err := s.d.DB.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if _, err := s.open(ctx, tx, ws, runID); err != nil {
			return err
		}
		rows, seen := []store.Evidence{}, map[string]bool{}
		for i := range out {
			e := &out[i]
			e.WorkspaceID, e.RunID = workspaceID, runID
			if e.CapturedAt.IsZero() {
				e.CapturedAt = now
			}
			if err := identify(e); err != nil {
				return err
			}
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			rows = append(rows, store.Evidence{WorkspaceID: ws, ID: e.ID, RunID: runID, Kind: e.Kind, Source: e.Source, Digest: e.Digest,
				Data: store.JSONOf(e), CapturedAt: store.At(e.CapturedAt)})
		}
		if err := tx.InsertEvidence(ctx, rows); err != nil {
			return err
		}
		_, err = s.Recompute(ctx, tx, workspaceID, runID, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// identify cleans the quote and computes digest and identifier, which are hashes over
// what the evidence says: without the run to compare runs, with it to name it.
func identify(e *core.Evidence) error {
	if e.Source == "" || e.Kind == "" || e.Locator == "" || e.Trust == "" {
		return core.Errf(core.KindInvalid, "invalid_evidence", "Evidence needs source, kind, locator and trust.")
	}
	if e.Quote != nil {
		q := strings.ToValidUTF8(*e.Quote, "\uFFFD")
		if r := []rune(q); len(r) > MaxQuote {
			q = string(r[:MaxQuote])
		}
		e.Quote = &q
	}
	value, err := json.Marshal(e.Value)
	if err != nil {
		return core.Errf(core.KindInvalid, "invalid_evidence", "The value of evidence at %s is not JSON.", e.Locator)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	content := []string{string(e.Kind), e.Source, e.Locator, text(e.Fact), string(value), text(e.Unit), text(e.Period), text(e.URL), text(e.Quote)}
	e.Digest = hashed(content...)
	e.ID = "ev_" + hashed(append([]string{e.RunID}, content...)...)[:20]
	return nil
}

func hashed(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
