package core

import (
	"slices"
	"time"
)

// Scopes of principals.
const (
	ScopeRunsRead         = "runs:read"
	ScopeRunsWrite        = "runs:write"
	ScopeActionsApprove   = "actions:approve"
	ScopeActionsExecute   = "actions:execute"
	ScopeConnectorsManage = "connectors:manage"
	ScopePluginsManage    = "plugins:manage"
	ScopeKeysManage       = "keys:manage"
	ScopeAuditRead        = "audit:read"
	ScopeUsageRead        = "usage:read"
	ScopeAdmin            = "admin"
)

// Scopes lists every scope.
func Scopes() []string {
	return []string{ScopeRunsRead, ScopeRunsWrite, ScopeActionsApprove, ScopeActionsExecute, ScopeConnectorsManage,
		ScopePluginsManage, ScopeKeysManage, ScopeAuditRead, ScopeUsageRead, ScopeAdmin}
}

// ScopesOfRole lists what a role may do in its workspace.
func ScopesOfRole(role UserRole) []string {
	switch role {
	case UserRoleOwner:
		return Scopes()
	case UserRoleApprover:
		return []string{ScopeRunsRead, ScopeRunsWrite, ScopeActionsApprove, ScopeActionsExecute, ScopeAuditRead, ScopeUsageRead}
	case UserRoleMember:
		return []string{ScopeRunsRead, ScopeRunsWrite, ScopeUsageRead}
	case UserRoleViewer:
		return []string{ScopeRunsRead}
	}
	return nil
}

// ScopesOfKey lists what a key of a kind holds when none are named. An agent key
// can never hold actions:approve.
func ScopesOfKey(kind APIKeyKind) []string {
	return []string{ScopeRunsRead, ScopeRunsWrite, ScopeUsageRead}
}

// Principal is who calls: a person, a key or a job of the host, in one workspace.
type Principal struct {
	Kind        ActorKind
	ID          string // user, key or job id
	Label       string // e-mail or key name, for people
	WorkspaceID string
	Role        UserRole   // of a person
	KeyKind     APIKeyKind // of a key
	OnBehalfOf  string     // owner of a key
	Scopes      []string
	// AuthTime is when the person last proved who they are; zero for keys.
	AuthTime  time.Time
	SessionID string
	// RequestID, IP and Client describe the request, for the audit log.
	RequestID string
	IP        string
	Client    string
	// LiftedTo is the proof level an owner granted to decisions of a service key; empty otherwise.
	LiftedTo Proof
}

// Anonymous is a caller without credential.
func Anonymous() Principal { return Principal{Kind: ActorKindAnonymous} }

// Can reports whether the principal holds the scope. Agent keys never hold a scope that
// decides, ends the time for undoing, says where things are sent or makes credentials,
// whatever is stored for them.
func (p Principal) Can(scope string) bool {
	if p.IsAgent() {
		switch scope {
		case ScopeActionsApprove, ScopeActionsExecute, ScopeConnectorsManage, ScopeKeysManage, ScopePluginsManage, ScopeAdmin:
			return false
		}
	}
	return slices.Contains(p.Scopes, scope) || (p.Kind == ActorKindPerson && slices.Contains(p.Scopes, ScopeAdmin))
}

// IsAgent reports whether the principal is a key of kind agent.
func (p Principal) IsAgent() bool { return p.Kind == ActorKindKey && p.KeyKind != APIKeyKindService }

// Require returns a forbidden error unless the principal holds the scope.
func (p Principal) Require(scope string) error {
	if p.Kind == ActorKindAnonymous || p.Kind == "" {
		return Errf(KindUnauthenticated, "unauthenticated", "Sign in or send a key.")
	}
	if !p.Can(scope) {
		return Errf(KindForbidden, "missing_scope", "This needs the scope %s, which the credential does not hold.", scope)
	}
	return nil
}

// Actor is the principal as resources and the audit log name it.
func (p Principal) Actor() Actor {
	a := Actor{Kind: p.Kind, ID: p.ID, Label: p.Label}
	if p.OnBehalfOf != "" {
		a.OnBehalfOf = &p.OnBehalfOf
	}
	return a
}

// ProofAt is the proof level of the principal's session at a moment: P2 while its
// sign-in is not older than five minutes, else P1. A key has what an owner granted.
func (p Principal) ProofAt(now time.Time) Proof {
	if p.Kind != ActorKindPerson {
		return p.LiftedTo
	}
	if !p.AuthTime.IsZero() && now.Sub(p.AuthTime) <= RecentSignIn {
		return ProofP2
	}
	return ProofP1
}

// RecentSignIn is how long a sign-in counts as recent.
const RecentSignIn = 5 * time.Minute
