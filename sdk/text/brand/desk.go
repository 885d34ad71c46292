package brand

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// Order says what a drafting tool was given.
type Order struct {
	BrandDNAID  string
	BrandDNA    json.RawMessage
	RepoContext json.RawMessage
	// Stated is what the caller says beyond that, as evidence.
	Stated []ground.Evidence
	// Focus is the subject whose facts come first.
	Focus string
	// Name is the brand's name when neither brand nor repository tells it.
	Name string
}

// Desk is everything a drafting tool writes from: the brand, the repository and the facts that stand in the evidence.
type Desk struct {
	Record *Record // nil when the workspace knows no brand
	Repo   *source.Repo
	Items  []ground.Evidence
	Index  *ground.Index
	Facts  []draft.Fact
	Pool   *draft.Pool
	Brand  string
}

// Prepare loads the brand, stores what the caller stated as evidence and cuts all of it into facts.
func Prepare(ctx context.Context, c *sdk.Call, o Order) (*Desk, error) {
	d := &Desk{}
	var err error
	if d.Repo, err = draft.ParseRepo(o.RepoContext); err != nil {
		return nil, err
	}
	var known []ground.Evidence
	if d.Record, known, err = Load(ctx, c, o.BrandDNAID, o.BrandDNA); err != nil {
		return nil, err
	}
	stored, err := draft.SaveEvidence(ctx, c, append(d.Repo.Evidence(), o.Stated...))
	if err != nil {
		return nil, err
	}
	d.Items = draft.Union(known, stored)
	name := d.Repo.Project.Name
	if name == "" {
		name = o.Name
	}
	d.Brand = d.Record.Name(name)
	d.Index = ground.NewIndex(d.Brand, d.Items, c.Now.UTC().Format(time.RFC3339))
	d.Facts = draft.Facts(d.Items, d.Index)
	draft.Focus(d.Facts, o.Focus)
	d.Pool = draft.NewPool(d.Facts)
	return d, nil
}

// Ref is the id of the brand, "" when none is known.
func (d *Desk) Ref() string {
	if d.Record == nil {
		return ""
	}
	return d.Record.ID
}

// DNA is the brand, an empty one when none is known.
func (d *Desk) DNA() DNA {
	if d.Record == nil {
		return DNA{}
	}
	return d.Record.DNA
}

// Best returns the best supported statement of a role that fits limit, already worded for readers; false when there is none.
func (d *Desk) Best(role draft.Role, limit int, length func(string) int) (draft.Fact, string, bool) {
	var words string
	fact, ok := d.Pool.Best(role, func(f draft.Fact) bool {
		w := draft.Fit(draft.Realise(f), limit, length)
		if w == "" || !draft.Supported(d.Index, w) {
			return false
		}
		return true
	})
	if ok {
		words = draft.Fit(draft.Realise(fact), limit, length)
	}
	return fact, words, ok
}
