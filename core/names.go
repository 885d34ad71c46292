package core

// Short names for generated enumerations.
type (
	// Proof is the strength of a decision: P1 session, P2 recent sign-in, P3 passkey.
	Proof = DecisionProof
	// Verdict is what a decision said.
	Verdict = DecisionDecision
)

// Proof levels and verdicts under their short names.
const (
	ProofP1 = DecisionProofP1
	ProofP2 = DecisionProofP2
	ProofP3 = DecisionProofP3

	VerdictApprove    = DecisionDecisionApprove
	VerdictReject     = DecisionDecisionReject
	VerdictRevoke     = DecisionDecisionRevoke
	VerdictDoneByHand = DecisionDecisionDoneByHand
	VerdictReconcile  = DecisionDecisionReconcile
)
