package rest

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/approval"
)

func (s *server) decisionRoutes() []route {
	return []route{
		{"POST /api/runs/{id}/approve", "approveRun", s.decideRun(s.Approval.Approve)},
		{"POST /api/runs/{id}/reject", "rejectRun", s.decideRun(s.Approval.Reject)},
		{"POST /api/actions/{id}/approve", "approveAction", s.decideAction(s.Approval.Approve)},
		{"POST /api/actions/{id}/reject", "rejectAction", s.decideAction(s.Approval.Reject)},
		{"POST /api/actions/{id}/revoke", "revokeAction", s.decideAction(s.Approval.Revoke)},
	}
}

type deciding func(context.Context, core.Principal, approval.Decide) (*approval.Outcome, error)

// decideBody is the optional body of a decision.
type decideBody struct {
	ActionIDs      []string `json:"actionIds"`
	ExpectedDigest *string  `json:"expectedDigest"`
	Reason         string   `json:"reason"`
}

// decided says what a decision did, beside the resource it changed.
type decided struct {
	ActionIDs []string  `json:"actionIds"`
	LeftOut   []leftOut `json:"leftOut"`
	Receipt   receipt   `json:"receipt"`
}

type leftOut struct {
	ActionID string `json:"actionId"`
	Reason   string `json:"reason"`
}

type receipt struct {
	TreeSize int64  `json:"treeSize"`
	Root     string `json:"root"`
}

func (s *server) decideRun(do deciding) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		out, err := s.decide(r, do, approval.Decide{RunID: chi.URLParam(r, "id")})
		if err != nil {
			return err
		}
		return replyTagged(w, r, out.Run.PackDigest, struct {
			*core.Run
			Decided decided `json:"decided"`
		}{out.Run, decidedOf(out)})
	}
}

func (s *server) decideAction(do deciding) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := chi.URLParam(r, "id")
		out, err := s.decide(r, do, approval.Decide{ActionID: id})
		if err != nil {
			return err
		}
		for i := range out.Actions {
			if out.Actions[i].ID == id {
				return replyTagged(w, r, out.Actions[i].Digest, struct {
					*core.Action
					Decided decided `json:"decided"`
				}{&out.Actions[i], decidedOf(out)})
			}
		}
		if len(out.LeftOut) > 0 {
			return core.Errf(core.KindForbidden, "left_out", "The action is not covered: %s", out.LeftOut[0].Reason)
		}
		return core.Errf(core.KindInternal, "internal", "The decision was recorded, but its action is missing in the outcome. Read the action.")
	}
}

func (s *server) decide(r *http.Request, do deciding, d approval.Decide) (*approval.Outcome, error) {
	var in decideBody
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	digest, err := digestOf(r, in.ExpectedDigest)
	if err != nil {
		return nil, err
	}
	d.ActionIDs, d.ExpectedDigest, d.Reason, d.Channel = in.ActionIDs, digest, in.Reason, string(core.DecisionChannelRest)
	return do(r.Context(), requestOf(r).principal, d)
}

func decidedOf(out *approval.Outcome) decided {
	d := decided{ActionIDs: []string{}, LeftOut: []leftOut{}, Receipt: receipt{TreeSize: out.Receipt.TreeSize, Root: out.Receipt.Root}}
	for _, a := range out.Actions {
		d.ActionIDs = append(d.ActionIDs, a.ID)
	}
	for _, l := range out.LeftOut {
		d.LeftOut = append(d.LeftOut, leftOut{ActionID: l.ActionID, Reason: l.Reason})
	}
	return d
}
