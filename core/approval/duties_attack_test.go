package approval

import (
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// serviceKey is a key to which its owner gave the right to decide.
func serviceKey(id, owner string) core.Principal {
	return core.Principal{Kind: core.ActorKindKey, ID: id, Label: id, WorkspaceID: ws, KeyKind: core.APIKeyKindService, OnBehalfOf: owner,
		Scopes: []string{core.ScopeRunsRead, core.ScopeRunsWrite, core.ScopeActionsApprove}, LiftedTo: core.ProofP2}
}

// A person and the keys that act for them are one pair of eyes, however many
// credentials say yes.
func TestOnePersonAndTheirKeysAreOneApprover(t *testing.T) {
	f := onSQLite(t)
	f.policy(`{"needed":2}`)
	bob := f.person("bob", core.UserRoleApprover)
	f.addApprover(bob, core.UserRoleApprover)
	a := f.pending("hello")[0]
	for _, p := range []core.Principal{bob, serviceKey("key_one", bob.ID), serviceKey("key_two", bob.ID)} {
		_, err := f.s.Approve(f.Context(), p, Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"})
		f.ok(err)
		f.is(a.ID, core.ActionStatusPending)
	}
	if n := f.queue.of(a.ID); n != 0 {
		t.Fatalf("sent on the word of one person: %d jobs", n)
	}
	cleo := f.person("cleo", core.UserRoleApprover)
	f.addApprover(cleo, core.UserRoleApprover)
	_, err := f.s.Approve(f.Context(), serviceKey("key_cleo", cleo.ID), Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"})
	f.ok(err)
	f.is(a.ID, core.ActionStatusApproved)
	_, err = f.s.Claim(f.Context(), a.ID, "host", time.Minute)
	f.ok(err)
}

// Approve, revoke and claim at the same moment: whoever wins, a revoked action is never
// marked as being sent, and it is claimed and marked at most once.
func TestApproveRevokeAndClaimAtOnce(t *testing.T) {
	onBoth(t, func(f *fixture) {
		for range 8 {
			a := f.pending("hello")[0]
			var marked, revoked int
			var mu sync.Mutex
			var all sync.WaitGroup
			start := make(chan struct{})
			for range 3 {
				all.Go(func() {
					<-start
					_, _ = f.s.Approve(f.Context(), f.owner, Decide{ActionID: a.ID, ExpectedDigest: a.Digest, Channel: "rest"})
				})
				all.Go(func() {
					<-start
					for range 20 {
						e, err := f.s.Claim(f.Context(), a.ID, "host", time.Minute)
						if err == nil && f.s.MarkSending(f.Context(), e, "host") == nil {
							mu.Lock()
							marked++
							mu.Unlock()
						}
					}
				})
				all.Go(func() {
					<-start
					for range 10 {
						if _, err := f.s.Revoke(f.Context(), f.owner, Decide{ActionID: a.ID, Channel: "rest"}); err == nil {
							mu.Lock()
							revoked++
							mu.Unlock()
						}
					}
				})
			}
			close(start)
			all.Wait()
			switch got := f.get(a.ID).Status; {
			case marked > 1, marked == 1 && revoked > 0, marked == 1 && got != core.ActionStatusSending:
				f.Fatalf("marked %d times, revoked %d times, is %s", marked, revoked, got)
			case revoked > 0 && got != core.ActionStatusRevoked:
				f.Fatalf("revoked, and yet %s", got)
			}
		}
	})
}
