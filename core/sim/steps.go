package sim

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/core"
)

// walk collects the steps out of one state.
type walk struct {
	x     *Explorer
	from  state
	found []step
}

// on adds a step if the table allows the event; change does what comes with it.
func (w *walk) on(ev core.ActionEvent, who string, change func(*state)) {
	to, err := w.x.Next(w.from.status, ev)
	if err != nil {
		return
	}
	next := w.from
	next.status = to
	if change != nil {
		change(&next)
	}
	w.found = append(w.found, step{who + ": " + string(ev), next})
}

// also adds a step that moves no action.
func (w *walk) also(name string, change func(*state)) {
	next := w.from
	change(&next)
	if next != w.from {
		w.found = append(w.found, step{name, next})
	}
}

func (x Explorer) steps(s state) []step {
	w := &walk{x: &x, from: s}
	w.people()
	w.system()
	for i := range s.hosts {
		w.host(i)
	}
	return w.found
}

func (w *walk) people() {
	s, rules := w.from, w.x.Rules
	w.on(core.EventDrafted, "drafting", nil)
	w.also("reviewer: look", func(n *state) { n.seen = n.revision })
	approve := func(n *state) {
		n.approved = n.revision
		n.agreed |= 1 << n.seen
	}
	if s.seen == s.revision || rules.ApproveUnseen && s.seen > 0 {
		w.on(core.EventApprove, "reviewer", approve)
	}
	w.on(core.EventReject, "reviewer", nil)
	w.on(core.EventRevoke, "reviewer", release)
	if rules.RevokeSending && s.status == core.ActionStatusSending {
		w.found = append(w.found, step{"reviewer: revoke", revoked(s)})
	}
	w.on(core.EventCancel, "member", release)
	if s.revision < revisions && (!s.once || rules.EditAfterClaim) {
		w.on(core.EventEdit, "member", func(n *state) { n.revision++; n.approved = 0 })
		if rules.EditAfterClaim && s.status == core.ActionStatusUnknown {
			next := s
			next.revision++
			w.found = append(w.found, step{"member: edit", next})
		}
	}
	if s.ledger != ([revisions + 1]int8{}) { // a truthful person tells what the provider shows
		w.on(core.EventHappened, "reviewer", nil)
	} else if w.senderDead() || rules.ReplaceTooEarly { // while it lives, it may still happen
		w.on(core.EventNotHappened, "reviewer", nil)
	}
	if rules.RearmUnknown && s.status == core.ActionStatusUnknown {
		next := s
		next.status = core.ActionStatusApproved
		w.found = append(w.found, step{"reviewer: send again", next})
	}
	if w.senderDead() || rules.ReplaceTooEarly {
		w.on(core.EventSupersede, "member", nil)
	}
}

func release(n *state) { n.lease = false }

func revoked(s state) state {
	s.status, s.lease = core.ActionStatusRevoked, false
	return s
}

// senderDead reports whether no process lives that passed the sending mark.
func (w *walk) senderDead() bool {
	for _, h := range w.from.hosts {
		if h.stage == free || h.stage == wrote {
			return false
		}
	}
	return !w.from.lease
}

func (w *walk) system() {
	s := w.from
	if s.status != core.ActionStatusClaimed {
		w.on(core.EventExpire, "system", nil)
	}
	w.on(core.EventRestored, "system", release)
	if !s.once {
		w.on(core.EventVoid, "system", nil)
	}
	if s.lease {
		w.also("time: the lease ends", func(n *state) { n.lease = false })
		return
	}
	if w.x.Rules.RearmSending && s.status == core.ActionStatusSending {
		next := s
		next.status = core.ActionStatusApproved
		w.found = append(w.found, step{"sweep: lease_ended", next})
		return
	}
	w.on(core.EventLeaseEnded, "sweep", nil)
	if s.ledger != ([revisions + 1]int8{}) {
		w.on(core.EventFound, "look-up", nil)
	}
}

// host adds what one host can do, stalled for any time in between, and its death.
func (w *walk) host(i int) {
	s, rules := w.from, w.x.Rules
	h, who := s.hosts[i], fmt.Sprintf("host %d", i+1)
	put := func(n *state, h host) { n.hosts[i] = h }
	if h.stage == idle {
		w.claim(i, who)
		return
	}
	w.also(who+": dies", func(n *state) { put(n, host{}) })
	mine := h.claim == s.claims // nobody claimed it after this host
	switch h.stage {
	case holding:
		if mine && s.lease {
			w.on(core.EventMarkSending, who, func(n *state) { put(n, host{free, h.revision, h.claim}) })
		}
		if rules.MarkUnchecked {
			w.also(who+": begins to send", func(n *state) { put(n, host{free, h.revision, h.claim}) })
		}
		if mine {
			w.on(core.EventConnectFailed, who, func(n *state) { put(n, host{}); n.lease = false })
			if s.status == core.ActionStatusClaimed {
				w.on(core.EventRecheckFailed, who, func(n *state) { put(n, host{}); n.lease = false })
				w.on(core.EventExpire, who, func(n *state) { put(n, host{}); n.lease = false })
			}
		}
	case free:
		w.also(who+": writes", func(n *state) { n.ledger[h.revision]++; put(n, host{wrote, h.revision, h.claim}) })
		if mine { // an error before the first byte is certain
			w.on(core.EventRefused, who, func(n *state) { put(n, host{}); n.lease = false })
		}
	case wrote:
		if mine {
			done := func(n *state) { put(n, host{}); n.lease = false }
			w.on(core.EventReplyOK, who, done)
			w.on(core.EventUncertain, who, done)
		}
	}
}

func (w *walk) claim(i int, who string) {
	s := w.from
	if s.claims >= maxClaims {
		return
	}
	take := func(n *state) {
		n.claims++
		n.once, n.lease = true, true
		n.hosts[i] = host{holding, n.revision, n.claims}
	}
	if s.approved == s.revision || w.x.Rules.EditAfterClaim {
		w.on(core.EventClaim, who, take)
	}
	if w.x.Rules.ClaimUnguarded && (s.status == core.ActionStatusClaimed || s.status == core.ActionStatusSending) {
		next := s
		take(&next)
		next.status, next.claims = core.ActionStatusClaimed, s.claims // both believe to hold the same claim
		next.hosts[i].claim = s.claims
		w.found = append(w.found, step{who + ": claim", next})
	}
}
