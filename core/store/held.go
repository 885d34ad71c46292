package store

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// cloner is a row that can be kept beside the one that its reader changes.
type cloner interface {
	versioned
	clone() any
}

// hold remembers a row as the database has it, locked for this transaction or written
// by it, so that a later change writes only the columns that differ.
func (tx *Tx) hold(row cloner) {
	noun, id, _ := row.ref()
	if tx.held == nil {
		tx.held = map[string]any{}
	}
	tx.held[noun+" "+id] = row.clone()
}

// heldRow is the row as it was held; nil if it was not.
func heldRow[T any](tx *Tx, row versioned) *T {
	noun, id, _ := row.ref()
	was, _ := tx.held[noun+" "+id].(*T)
	return was
}

// changed names the columns in which two states of a row differ, in their order.
func changed[T any](tx *Tx, was, is *T, keep []string) []string {
	table := tx.db.write.Table(reflect.TypeFor[T]())
	a, b := reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem()
	out := []string{}
	for _, f := range table.Fields {
		if !slices.Contains(keep, f.Name) && !reflect.DeepEqual(f.Value(a).Interface(), f.Value(b).Interface()) {
			out = append(out, f.Name)
		}
	}
	return out
}

func (a *Action) clone() any {
	c := *a
	for _, doc := range []*JSON{&c.Input, &c.Sealed, &c.Endpoints, &c.Connection, &c.Preview, &c.Steps} {
		*doc = slices.Clone(*doc)
	}
	for _, list := range []*[]string{&c.EvidenceIDs, &c.DependsOn, &c.ContentSHA256, &c.SentSHA256} {
		*list = slices.Clone(*list)
	}
	c.AssetRefs = slices.Clone(c.AssetRefs)
	c.CreatedBy, c.EditedBy = cloneActor(c.CreatedBy), cloneActor(c.EditedBy)
	if c.ExecError != nil {
		e := *c.ExecError
		c.ExecError = &e
	}
	return &c
}

func (r *Run) clone() any {
	c := *r
	c.Skills, c.OriginArgs, c.CreatedBy = slices.Clone(c.Skills), slices.Clone(c.OriginArgs), cloneActor(c.CreatedBy)
	if c.Next != nil {
		next := *c.Next
		next.Arguments = maps.Clone(next.Arguments)
		c.Next = &next
	}
	return &c
}

func cloneActor(a core.Actor) core.Actor {
	if a.OnBehalfOf != nil {
		on := strings.Clone(*a.OnBehalfOf)
		a.OnBehalfOf = &on
	}
	return a
}

// wrote remembers what the state of a run depends on in an action that this transaction
// wrote, so that reading its run need not wait for the write to be sent.
func (tx *Tx) wrote(a *Action) {
	if tx.briefs == nil {
		tx.briefs = map[string]ownBrief{}
	}
	tx.briefs[a.ID] = ownBrief{a.WorkspaceID, ActionBrief{ID: a.ID, RunID: a.RunID, Status: a.Status, Revision: a.Revision, Digest: a.Digest, Proof: a.Proof,
		Reversibility: a.Reversibility, Reach: a.Reach, CostMicros: a.CostMicros, Currency: a.Currency, ExpiresAt: a.ExpiresAt, FinishedAt: a.FinishedAt}}
}

type ownBrief struct {
	ws    WorkspaceID
	brief ActionBrief
}

// overlay puts what this transaction wrote in the place of what the database told.
func (tx *Tx) overlay(briefs []ActionBrief, ws WorkspaceID, runIDs []string) []ActionBrief {
	found := map[string]bool{}
	for i := range briefs {
		found[briefs[i].ID] = true
		if own, ok := tx.briefs[briefs[i].ID]; ok {
			briefs[i] = own.brief
		}
	}
	n := len(briefs)
	for id, own := range tx.briefs {
		if !found[id] && own.ws == ws && slices.Contains(runIDs, own.brief.RunID) {
			briefs = append(briefs, own.brief)
		}
	}
	if len(briefs) == n {
		return briefs
	}
	slices.SortFunc(briefs, func(a, b ActionBrief) int { return strings.Compare(a.ID, b.ID) })
	return briefs
}
