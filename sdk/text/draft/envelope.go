package draft

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/ground"
)

// Gap is something that could not be written because nothing is known of it, with the question that would help.
type Gap struct {
	Role         string `json:"role"`
	Question     string `json:"question"`
	WhyItMatters string `json:"whyItMatters"`
}

// Scores sum up the drafts of one call.
type Scores struct {
	GroundedShare   float64 `json:"groundedShare"`
	GenericityRisk  float64 `json:"genericityRisk"`
	LimitViolations int     `json:"limitViolations"`
	Publishable     bool    `json:"publishable"`
}

// AssetView is a stored draft as a tool shows it.
type AssetView struct {
	ID          string      `json:"id"`
	Revision    int         `json:"revision"`
	Digest      string      `json:"digest"`
	Kind        string      `json:"kind"`
	Channel     string      `json:"channel"`
	Title       string      `json:"title"`
	Status      string      `json:"status"` // always draft_unapproved
	Publishable bool        `json:"publishable"`
	Slots       []Slot      `json:"slots"`
	Risk        ground.Risk `json:"genericityRisk"`
}

// Ref is the reference by which an action names the draft.
func (a AssetView) Ref() sdk.AssetRef {
	return sdk.AssetRef{ID: a.ID, Revision: a.Revision, Digest: a.Digest}
}

// Resume names the call that goes on later.
type Resume struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// AgentGuide tells the calling agent what to show, what it may do and what must wait for a person.
type AgentGuide struct {
	UserMessage            string   `json:"userMessage"`
	ReviewURL              string   `json:"reviewUrl"`
	MustWait               bool     `json:"mustWait"`
	AllowedNow             []string `json:"allowedNow"`
	ForbiddenUntilApproved []string `json:"forbiddenUntilApproved"`
	Resume                 Resume   `json:"resume"`
	ExpiresAt              string   `json:"expiresAt,omitempty"`
	Locale                 string   `json:"locale"`
}

// Envelope is what every drafting tool answers with, beside its own block.
type Envelope struct {
	RunID        string         `json:"runId"`
	Skill        string         `json:"skill"`
	SkillVersion string         `json:"skillVersion"`
	Mode         string         `json:"mode"`
	InputsEcho   map[string]any `json:"inputsEcho"`
	BrandDNARef  string         `json:"brandDnaRef,omitempty"`
	Evidence     []sdk.Evidence `json:"evidence"`
	Assets       []AssetView    `json:"assets"`
	Actions      []any          `json:"actions"`
	Gaps         []Gap          `json:"gaps"`
	Checks       []sdk.Check    `json:"checks"`
	Scores       Scores         `json:"scores"`
	Warnings     []string       `json:"warnings"`
	AgentGuide   AgentGuide     `json:"agentGuide"`

	claims     int
	supported  int
	generic    float64
	unfinished bool
}

// NewEnvelope starts the answer of a call.
func NewEnvelope(c *sdk.Call, version, mode string, echo map[string]any) *Envelope {
	return &Envelope{
		RunID: c.RunID, Skill: c.Tool, SkillVersion: version, Mode: mode, InputsEcho: echo,
		Evidence: []sdk.Evidence{}, Assets: []AssetView{}, Actions: []any{}, Gaps: []Gap{}, Checks: []sdk.Check{}, Warnings: []string{},
	}
}

// Gap notes what is missing.
func (e *Envelope) Gap(role, question, why string) {
	for _, gap := range e.Gaps {
		if gap.Role == role && gap.Question == question {
			return
		}
	}
	e.Gaps = append(e.Gaps, Gap{role, question, why})
}

// Warn notes something the reader should know.
func (e *Envelope) Warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, fmt.Sprintf(format, args...))
}

// Count adds the scores of a checked draft to those of the call.
func (e *Envelope) Count(checked Checked) {
	for _, claim := range checked.Claims {
		if claim.Verdict == ground.NotAClaim {
			continue
		}
		e.claims++
		if claim.Verdict == ground.Supported {
			e.supported++
		}
	}
	e.generic = max(e.generic, checked.Risk.Score)
	e.Scores.LimitViolations += checked.Violations
	e.unfinished = e.unfinished || !checked.Publishable
	for _, check := range checked.Checks {
		if !check.OK {
			e.Checks = append(e.Checks, check)
		}
	}
}

// Store saves a checked draft for the run and adds it to the answer.
func (e *Envelope) Store(ctx context.Context, c *sdk.Call, a sdk.Asset, checked Checked, content map[string]any) (AssetView, error) {
	content["slots"] = checked.Slots
	content["publishable"] = checked.Publishable
	a.Content = content
	a.Skill = c.Tool
	a.Claims = checked.SDKClaims()
	a.Checks = checked.Checks
	a.GenericityRisk = checked.Risk
	if a.Locale == "" {
		a.Locale = "en"
	}
	ref, err := c.Host.SaveAsset(ctx, a)
	if err != nil {
		return AssetView{}, err
	}
	view := AssetView{
		ID: ref.ID, Revision: ref.Revision, Digest: ref.Digest, Kind: a.Kind, Channel: a.Channel, Title: a.Title,
		Status: "draft_unapproved", Publishable: checked.Publishable, Slots: checked.Slots, Risk: checked.Risk,
	}
	e.Assets = append(e.Assets, view)
	e.Count(checked)
	return view, nil
}

// Finish fills in scores and guide. noun names what was drafted, for the sentence the person reads.
func (e *Envelope) Finish(c *sdk.Call, noun string) {
	e.Scores.GroundedShare = 1
	if e.claims > 0 {
		e.Scores.GroundedShare = float64(e.supported) / float64(e.claims)
	}
	e.Scores.GenericityRisk = e.generic
	e.Scores.Publishable = len(e.Assets) > 0 && !e.unfinished
	message := fmt.Sprintf("I drafted %s from %d pieces of evidence. %d of %d statements trace to it. Nothing has been published.", noun, len(e.Evidence), e.supported, e.claims)
	if len(e.Gaps) > 0 {
		message += fmt.Sprintf(" %d open questions would make it better.", len(e.Gaps))
	}
	if c.ReviewURL != "" {
		message += " Review it here: " + c.ReviewURL
	}
	e.AgentGuide = Guide(c, message)
}

// Claims returns how many claims the drafts make and how many of them are supported.
func (e *Envelope) Claims() (all, supported int) { return e.claims, e.supported }

// Guide is the agent guide of a call whose result waits for a person.
func Guide(c *sdk.Call, message string) AgentGuide {
	return AgentGuide{
		UserMessage: message, ReviewURL: c.ReviewURL, MustWait: true,
		AllowedNow:             []string{"show userMessage and reviewUrl to the user", "answer the open questions with the user", "read drafts and evidence"},
		ForbiddenUntilApproved: []string{"post", "send", "submit", "publish", "spend", "approve in place of the user"},
		Resume:                 Resume{Tool: "mkt_continue_launch_loop", Arguments: map[string]any{"runId": c.RunID}},
		Locale:                 "en",
	}
}
