package sdk

import (
	"context"
	"encoding/json"
	"time"
)

// Host is what a plugin can ask core for during a call. Everything is bound to the
// call: it ends when the call ends. Toward the outside world Host only reads.
type Host interface {
	// CallTool runs a draft or read tool, or a host tool that only reads, and decodes
	// its result into out (which may be nil). A tool's own failure is a *Failure.
	CallTool(ctx context.Context, tool string, input, out any) error
	// Complete asks a language model. A *Failure with code model_unavailable says that
	// the workspace has none.
	Complete(ctx context.Context, req CompleteRequest) (*Completion, error)
	// Fetch reads through an endpoint of the manifest. Core signs it, checks it and
	// keeps the reply as evidence.
	Fetch(ctx context.Context, req FetchRequest) (*FetchReply, error)
	// Recall reads the workspace's memory; false when nothing is stored under key.
	Recall(ctx context.Context, key string, out any) (bool, error)
	// Remember stores value, at most 256 KiB of JSON, under key.
	Remember(ctx context.Context, key string, value any) error
	// SaveEvidence stores what the caller stated or what stands in an earlier fetch and
	// returns it with ids. Core lowers a trust it cannot vouch for.
	SaveEvidence(ctx context.Context, items []Evidence) ([]Evidence, error)
	// SaveAsset stores a draft for the run.
	SaveAsset(ctx context.Context, a Asset) (*AssetRef, error)
	// Propose stages a call of a write tool. Core compiles and seals it; nothing is
	// sent before a person approved it.
	Propose(ctx context.Context, p Proposal) (*Proposed, error)
	// Connections lists what the workspace has connected.
	Connections(ctx context.Context) ([]Connection, error)
	// UpdateRun tells what the run is about.
	UpdateRun(ctx context.Context, u RunUpdate) error
	// ReadDataset calls row for each row of an uploaded dataset, in order.
	ReadDataset(ctx context.Context, id string, row func(json.RawMessage) error) error
}

// CompleteRequest asks a model for text or for JSON that fits a schema.
type CompleteRequest struct {
	System      string          `json:"system,omitempty"`
	Prompt      string          `json:"prompt"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	MaxTokens   int             `json:"maxTokens,omitempty"`
	Temperature float64         `json:"temperature,omitempty"`
}

// Completion is a model's answer.
type Completion struct {
	Text         string `json:"text"`
	Model        string `json:"model"`
	InputTokens  int    `json:"inputTokens"`
	OutputTokens int    `json:"outputTokens"`
}

// Pair is a name and a value.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// FetchRequest names an endpoint of the manifest and what fills its template. URL is
// only for endpoints whose host is $web.
type FetchRequest struct {
	Endpoint   string
	PathParams map[string]string
	Query      []Pair
	Headers    []Pair
	Body       []byte
	URL        string
}

// FetchReply is what core read.
type FetchReply struct {
	Status     int
	Headers    []Pair
	Body       []byte
	EvidenceID string
	FinalURL   string
	Truncated  bool
}

// Evidence is one thing that was read or stated. ID and Digest are set by core.
type Evidence struct {
	ID         string     `json:"id,omitempty"`
	RunID      string     `json:"runId,omitempty"`
	Source     string     `json:"source"`
	Kind       string     `json:"kind"`
	Locator    string     `json:"locator"`
	Fact       string     `json:"fact,omitempty"`
	Value      any        `json:"value,omitempty"`
	Unit       string     `json:"unit,omitempty"`
	Period     string     `json:"period,omitempty"`
	URL        string     `json:"url,omitempty"`
	Quote      string     `json:"quote,omitempty"`
	Trust      string     `json:"trust"` // observed, owner_stated, third_party, inferred
	CapturedAt time.Time  `json:"capturedAt,omitzero"`
	Digest     string     `json:"digest,omitempty"`
	FreshUntil *time.Time `json:"freshUntil,omitempty"`
	// FetchID is the evidence id of the fetch whose body holds Quote; observed needs it.
	FetchID string `json:"fetchId,omitempty"`
}

// Claim is a statement in a draft and what supports it.
type Claim struct {
	Text        string   `json:"text"`
	Type        string   `json:"type,omitempty"`
	Verdict     string   `json:"verdict"` // supported, partial, unsupported, contradicted, not_a_claim
	Support     float64  `json:"support"`
	EvidenceIDs []string `json:"evidenceIds"`
}

// Check is the outcome of one rule on a draft.
type Check struct {
	Rule     string `json:"rule"`
	OK       bool   `json:"ok"`
	Severity string `json:"severity"` // block, warn, info
	Detail   string `json:"detail"`
}

// Asset is a draft to be stored. GenericityRisk is the object of schema genericity_risk.
type Asset struct {
	Kind           string  `json:"kind"`
	Skill          string  `json:"skill"`
	Channel        string  `json:"channel"`
	Title          string  `json:"title"`
	Locale         string  `json:"locale"`
	Content        any     `json:"content"`
	Claims         []Claim `json:"claims"`
	Checks         []Check `json:"checks"`
	GenericityRisk any     `json:"genericityRisk,omitempty"`
	Origin         string  `json:"origin"` // deterministic, model, caller
}

// AssetRef points at one revision of a stored draft.
type AssetRef struct {
	ID       string `json:"id"`
	Revision int    `json:"revision"`
	Digest   string `json:"digest"`
}

// Proposal is a call of a write tool to be staged.
type Proposal struct {
	Tool string `json:"tool"`
	// Input of the write tool.
	Input any `json:"input"`
	// Channel as the run names it, for example email, webhook or product_hunt.
	Channel     string     `json:"channel"`
	AssetRefs   []AssetRef `json:"assetRefs,omitempty"`
	EvidenceIDs []string   `json:"evidenceIds,omitempty"`
	DependsOn   []string   `json:"dependsOn,omitempty"`
}

// Proposed is the staged action.
type Proposed struct {
	ID            string    `json:"id"`
	Status        string    `json:"status"`
	Kind          string    `json:"kind"`
	Tool          string    `json:"tool"`
	Connector     string    `json:"connector"`
	Channel       string    `json:"channel"`
	Title         string    `json:"title"`
	Executor      string    `json:"executor"` // connector or manual
	Digest        string    `json:"digest"`
	Revision      int       `json:"revision"`
	Reversibility string    `json:"reversibility"`
	ContentSHA256 []string  `json:"contentSha256"`
	ReviewURL     string    `json:"reviewUrl"`
	ExpiresAt     time.Time `json:"expiresAt"`
	// Action is the whole resource, as REST would show it.
	Action json.RawMessage `json:"action"`
}

// Connection is the public part of a connection: no secret is in it.
type Connection struct {
	Provider string `json:"provider"`
	// Name tells several connections of a provider apart; empty for the only one.
	Name    string `json:"name,omitempty"`
	Status  string `json:"status"`
	Account string `json:"account"`
	// Fields are the fields the owner typed that are not secret.
	Fields map[string]string `json:"fields,omitempty"`
	// Audiences are lists of recipients the owner set.
	Audiences []Audience `json:"audiences,omitempty"`
	// WriteTools are the write tools that use this connection.
	WriteTools []string `json:"writeTools,omitempty"`
}

// Audience is a list of recipients with the ground for writing to them.
type Audience struct {
	Name        string   `json:"name"`
	Addresses   []string `json:"addresses"`
	LawfulBasis string   `json:"lawfulBasis"`
}

// RunUpdate tells core what a run is about; empty fields leave things as they are.
type RunUpdate struct {
	Intent     string    `json:"intent,omitempty"`
	Confidence float64   `json:"confidence,omitempty"`
	Skills     []string  `json:"skills,omitempty"`
	Phase      string    `json:"phase,omitempty"` // gathering or drafting
	Goal       string    `json:"goal,omitempty"`
	Next       *NextCall `json:"next,omitempty"`
}

// NextCall names the tool to call next.
type NextCall struct {
	Tool      string `json:"tool"`
	Arguments any    `json:"arguments"`
	Reason    string `json:"reason"`
}

// Failure is an error a caller can act on. Tools return it; Host methods return it
// for failures of what was asked.
type Failure struct {
	Code          string       `json:"code"` // stable, snake_case
	Message       string       `json:"message"`
	Retryable     bool         `json:"retryable"`
	Fields        []FieldError `json:"fields,omitempty"`
	WhatWouldHelp []string     `json:"whatWouldHelp,omitempty"`
}

// FieldError points at a field of the input.
type FieldError struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }
