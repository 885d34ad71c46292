package marketing

import (
	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// launchAnswer is what the two launch tools return.
type launchAnswer struct {
	RunID             string           `json:"runId"`
	LaunchPack        launchPack       `json:"launchPack"`
	ReviewURL         string           `json:"reviewUrl"`
	PublishActions    []actionView     `json:"publishActions"`
	GroundingEvidence grounding        `json:"groundingEvidence"`
	GenericityRisk    ground.Risk      `json:"genericityRisk"`
	AgentProofLine    string           `json:"agentProofLine"`
	LaunchValue       launchValue      `json:"launchValue"`
	OwnerOutcome      ownerOutcome     `json:"ownerOutcome"`
	PostBuildChecks   []checkItem      `json:"postBuildChecklist"`
	BlockedChannels   []blockedChannel `json:"blockedChannels"`
	Stage             string           `json:"stage"`
	Questions         []draft.Gap      `json:"questions"`
	SkillsRun         []skillRun       `json:"skillsRun"`
	Warnings          []string         `json:"warnings"`
	UserMessage       string           `json:"userMessage"`
	NextToolCalls     []nextCall       `json:"nextToolCalls"`
	AgentGuide        draft.AgentGuide `json:"agentGuide"`
}

type launchPack struct {
	Version      int               `json:"version"`
	Product      product           `json:"product"`
	WhatChanged  changes           `json:"whatChanged"`
	Positioning  positioning       `json:"positioning"`
	Channels     []channelView     `json:"channels"`
	Assets       []draft.AssetView `json:"assets"`
	Schedule     []scheduled       `json:"schedule"`
	TrackingPlan tracking          `json:"trackingPlan"`
	FAQ          []answered        `json:"faq"`
	Risks        []string          `json:"risks"`
	Gaps         []draft.Gap       `json:"gaps"`
}

type product struct {
	Name     string `json:"name"`
	OneLiner string `json:"oneLiner"`
	URL      string `json:"url"`
	Category string `json:"category"`
}

type changes struct {
	Summary string   `json:"summary"`
	Items   []change `json:"items"`
}

type change struct {
	Text        string   `json:"text"`
	UserVisible bool     `json:"userVisible"`
	EvidenceIDs []string `json:"evidenceIds"`
}

type positioning struct {
	For         string   `json:"for"`
	Who         string   `json:"who"`
	Product     string   `json:"product"`
	ThatDoes    string   `json:"thatDoes"`
	Unlike      string   `json:"unlike,omitempty"`
	Because     string   `json:"because"`
	EvidenceIDs []string `json:"evidenceIds"`
}

type scheduled struct {
	At          string `json:"at"`
	Channel     string `json:"channel"`
	ActionID    string `json:"actionId"`
	HumanNeeded bool   `json:"humanNeeded"`
}

type tracking struct {
	UTM         []utm    `json:"utm"`
	Events      []string `json:"events"`
	BaselineRef string   `json:"baselineRef"`
}

type utm struct {
	Channel string `json:"channel"`
	URL     string `json:"url"`
}

type answered struct {
	Q           string   `json:"q"`
	A           string   `json:"a"`
	EvidenceIDs []string `json:"evidenceIds"`
}

type grounding struct {
	Items         []sdk.Evidence `json:"items"`
	Coverage      coverage       `json:"coverage"`
	BySlot        []slotClaims   `json:"bySlot"`
	Redactions    int            `json:"redactions"`
	CollectedFrom []string       `json:"collectedFrom"`
}

type coverage struct {
	Claims      int `json:"claims"`
	Supported   int `json:"supported"`
	Partial     int `json:"partial"`
	Unsupported int `json:"unsupported"`
}

type slotClaims struct {
	AssetID string         `json:"assetId"`
	Path    string         `json:"path"`
	Claims  []ground.Claim `json:"claims"`
}

type launchValue struct {
	ForUser            []value `json:"forUser"`
	Reach              reach   `json:"reach"`
	EffortSavedMinutes *int    `json:"effortSavedMinutes"` // null: nothing is known of how long it would have taken
}

type value struct {
	Outcome     string   `json:"outcome"`
	Mechanism   string   `json:"mechanism"`
	EvidenceIDs []string `json:"evidenceIds"`
}

type reach struct {
	Channels int  `json:"channels"`
	Estimate *int `json:"estimate"` // null: no basis for an estimate
}

type ownerOutcome struct {
	Goal        string   `json:"goal"`
	Metric      string   `json:"metric"`
	Baseline    *float64 `json:"baseline"` // null until a source or the owner states it
	Target      *float64 `json:"target"`
	By          string   `json:"by"`
	HowMeasured string   `json:"howMeasured"`
}

type nextCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Reason    string         `json:"reason"`
	When      string         `json:"when"` // now, after_human_approval, after_24h
	ReadOnly  bool           `json:"readOnly"`
}
