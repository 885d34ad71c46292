package marketing

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text/brand"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
	"github.com/sallyport-dev/sallyport/sdk/text/source"
)

// campaign is the state of one launch call.
type campaign struct {
	c     *sdk.Call
	in    launchInput
	repo  *source.Repo
	raw   json.RawMessage // repository context, as handed to skills
	desk  *brand.Desk
	env   *draft.Envelope
	site  *site
	link  string
	texts []channelText
	posts []socialPost
	mails []launchMail

	connections []sdk.Connection
	channels    []channelView
	actions     []actionView
	blocked     []blockedChannel
	skills      []skillRun
}

// blockedChannel is a channel that cannot be served as things stand.
type blockedChannel struct {
	Channel string `json:"channel"`
	Reason  string `json:"reason"`
	Unblock string `json:"unblock"`
}

// launch answers mkt_launch_product and platform_get_users_after_build.
func launch(ctx context.Context, c *sdk.Call) (any, error) {
	in := launchInput{LaunchGoal: "users"}
	if err := c.Bind(&in); err != nil {
		return nil, err
	}
	k, err := startCampaign(ctx, c, in)
	if err != nil {
		return nil, err
	}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	return k.pack(), nil
}

func startCampaign(ctx context.Context, c *sdk.Call, in launchInput) (*campaign, error) {
	k := &campaign{c: c, in: in, actions: []actionView{}, blocked: []blockedChannel{}, skills: []skillRun{}}
	var err error
	if k.raw, k.repo, err = in.context(); err != nil {
		return nil, err
	}
	if k.repo.Empty() && in.URL == "" {
		return nil, draft.NothingToSay("a launch")
	}
	k.env = draft.NewEnvelope(c, version, draft.Deterministic, map[string]any{"whatChanged": k.repo.WhatChanged, "url": in.URL, "launchGoal": in.LaunchGoal, "channels": in.Channels})
	if err := c.Host.UpdateRun(ctx, sdk.RunUpdate{Intent: "launch", Confidence: 1, Phase: "gathering"}); err != nil {
		return nil, err
	}
	return k, nil
}

// run gathers, drafts and stages, in this order.
func (k *campaign) run(ctx context.Context) error {
	k.c.Progress(1, 5, "reading the product")
	if err := k.gather(ctx); err != nil {
		return err
	}
	if err := k.c.Host.UpdateRun(ctx, sdk.RunUpdate{Phase: "drafting", Skills: []string{toolBrand, toolSocial, toolEmail}}); err != nil {
		return err
	}
	k.c.Progress(2, 5, "choosing channels")
	k.choose()
	k.c.Progress(3, 5, "drafting")
	if err := k.draftTexts(ctx); err != nil {
		return err
	}
	k.draftPosts(ctx)
	k.draftMails(ctx)
	k.c.Progress(4, 5, "staging for review")
	if err := k.stage(ctx); err != nil {
		return err
	}
	k.askForMissing()
	k.c.Progress(5, 5, "ready for review")
	return k.c.Host.UpdateRun(ctx, sdk.RunUpdate{
		Skills: k.skillNames(),
		Next:   &sdk.NextCall{Tool: toolContinue, Arguments: map[string]any{"runId": k.c.RunID}, Reason: "A person decides first."},
	})
}

// gather reads the brand, the home page and the repository into one desk.
func (k *campaign) gather(ctx context.Context) error {
	id := k.in.BrandDNAID
	if id == "" {
		var out struct {
			BrandDNAID string   `json:"brandDnaId"`
			Warnings   []string `json:"warnings"`
		}
		input := map[string]any{"repoContext": k.raw}
		if k.in.URL != "" {
			input["url"] = k.in.URL
		}
		if k.in.TargetCustomer != "" {
			input["ownerHints"] = map[string]any{"audience": draft.Clip(k.in.TargetCustomer, 400)}
		}
		err := k.skill(ctx, toolBrand, "every draft rests on what the brand says of itself", input, &out)
		if err != nil && k.repo.Empty() {
			return err
		}
		id = out.BrandDNAID
		k.env.Warnings = append(k.env.Warnings, out.Warnings...)
	}
	order := brand.Order{BrandDNAID: id, RepoContext: k.raw, Focus: k.repo.WhatChanged}
	var err error
	if k.desk, err = brand.Prepare(ctx, k.c, order); err != nil {
		return err
	}
	if len(k.desk.Facts) == 0 {
		return draft.NothingToSay("a launch")
	}
	if k.in.URL != "" {
		k.site = readSite(ctx, k.c, k.in.URL)
	}
	if k.link, _ = brand.Destination(k.desk.Record, k.desk.Repo, ""); k.link == "" {
		k.link = k.in.URL
	}
	k.env.Evidence = draft.AllToSDK(k.desk.Items)
	k.env.BrandDNARef = id
	if k.connections, err = k.c.Host.Connections(ctx); err != nil {
		k.env.Warn("What is connected could not be read: %v", err)
		k.connections = nil
	}
	return nil
}

// skillRun says which skill ran and how it ended.
type skillRun struct {
	Skill string `json:"skill"`
	Why   string `json:"why"`
	Error string `json:"error,omitempty"`
}

// skill calls a skill. Its failure is recorded; whether it matters is for the caller to say.
func (k *campaign) skill(ctx context.Context, tool, why string, input, out any) error {
	run := skillRun{Skill: tool, Why: why}
	err := k.c.Host.CallTool(ctx, tool, input, out)
	if err != nil {
		run.Error = err.Error()
		k.env.Warn("%s did not answer: %s", tool, draft.Clip(messageOf(err), 300))
	}
	k.skills = append(k.skills, run)
	return err
}

func messageOf(err error) string {
	if f, ok := errors.AsType[*sdk.Failure](err); ok {
		return f.Message
	}
	return err.Error()
}

func (k *campaign) skillNames() []string {
	out := []string{}
	for _, s := range k.skills {
		if !slices.Contains(out, s.Skill) {
			out = append(out, s.Skill)
		}
	}
	return out
}

// connected tells what is there to send with.
func (k *campaign) connected() map[string]bool {
	out := map[string]bool{"audience": len(k.in.Email.Recipients) > 0}
	for _, c := range k.connections {
		if c.Status != "connected" {
			continue
		}
		out[c.Provider] = true
		if c.Provider == "smtp" && len(c.Audiences) > 0 {
			out["audience"] = true
		}
	}
	return out
}

// choose ranks the channels. A channel is served when it fits or was asked for by name.
func (k *campaign) choose() {
	s := readSignals(k.desk, k.in.URL)
	connected := k.connected()
	for _, id := range channelOrder {
		v := fit(id, s, k.desk.Pool.Has(draft.Change), connected)
		asked := slices.Contains(k.in.Channels, id)
		if len(k.in.Channels) > 0 && !asked {
			continue
		}
		if !asked && v.Fit < minFit && id != chEmail && id != chWebhook {
			continue
		}
		k.channels = append(k.channels, v)
		switch {
		case id == chEmail && !connected["smtp"]:
			k.blocked = append(k.blocked, blockedChannel{id, "no mail server is connected", "Connect smtp, or send the approved draft by hand."})
		case id == chEmail && !connected["audience"]:
			k.blocked = append(k.blocked, blockedChannel{id, "no recipients are named", "Name an audience on the smtp connection, or give email.recipients."})
		case id == chWebhook && !connected["webhook"]:
			k.blocked = append(k.blocked, blockedChannel{id, "no webhook is connected", "Connect a webhook under a name."})
		}
	}
}

func (k *campaign) serves(id string) bool {
	return slices.ContainsFunc(k.channels, func(v channelView) bool { return v.ID == id })
}

func (k *campaign) channel(id string) *channelView {
	for i := range k.channels {
		if k.channels[i].ID == id {
			return &k.channels[i]
		}
	}
	return nil
}

// draftTexts writes and stores the texts that no skill covers.
func (k *campaign) draftTexts(ctx context.Context) error {
	t := &teller{Desk: k.desk, link: k.link, used: map[string]bool{}}
	writers := []struct {
		channel string
		write   func() (channelText, bool)
	}{{chChangelog, t.changelog}, {chHN, t.hackerNews}, {chPH, t.productHunt}, {chDevTo, t.devTo}, {chReddit, t.reddit}}
	for _, w := range writers {
		if !k.serves(w.channel) && !(w.channel == chChangelog && k.serves(chWebhook)) {
			continue
		}
		ct, ok := w.write()
		if !ok {
			k.env.Gap(w.channel, "What should be said on "+channelTitle(w.channel)+"?", "The evidence does not carry a text for it.")
			continue
		}
		t.check(&ct, k.texts)
		content := map[string]any{"channel": ct.channel}
		view, err := k.env.Store(ctx, k.c, ct.sdkAsset(), ct.checked, content)
		if err != nil {
			return err
		}
		ct.asset = view
		if v := k.channel(ct.channel); v != nil {
			v.Assets = append(v.Assets, view.ID)
		}
		k.texts = append(k.texts, ct)
	}
	return nil
}

// socialPost is the part of a post of the skill that a launch needs.
type socialPost struct {
	AssetID    string `json:"assetId"`
	Platform   string `json:"platform"`
	Body       string `json:"body"`
	MediaBrief *struct {
		WhatToShow string `json:"whatToShow"`
		AltText    string `json:"altText"`
		Source     string `json:"source"`
	} `json:"mediaBrief"`
	EvidenceIDs []string     `json:"evidenceIds"`
	Scores      draft.Scores `json:"scores"`
}

// skillAnswer is what every drafting skill returns.
type skillAnswer struct {
	Assets []draft.AssetView `json:"assets"`
	Gaps   []draft.Gap       `json:"gaps"`
	Posts  []socialPost      `json:"posts"`
	Emails []launchMail      `json:"emails"`
}

func (k *campaign) draftPosts(ctx context.Context) {
	var platforms []string
	for _, id := range []string{chX, chLinkedIn, chInstagram} {
		if k.serves(id) {
			platforms = append(platforms, id)
		}
	}
	if len(platforms) == 0 {
		return
	}
	goal := map[string]string{"users": "signup", "revenue": "traffic", "feedback": "feedback", "waitlist": "signup"}[k.in.LaunchGoal]
	input := map[string]any{"platforms": platforms, "perPlatform": 2, "goal": goal, "repoContext": k.raw}
	if k.env.BrandDNARef != "" {
		input["brandDnaId"] = k.env.BrandDNARef
	}
	if k.link != "" {
		input["link"] = k.link
	}
	var out skillAnswer
	if k.skill(ctx, toolSocial, "short posts for the platforms that fit", input, &out) != nil {
		return
	}
	k.posts = out.Posts
	k.adopt(out)
	for _, p := range out.Posts {
		if v := k.channel(p.Platform); v != nil {
			v.Assets = append(v.Assets, p.AssetID)
		}
	}
}

// launchMail is the part of a mail of the skill that a launch needs.
type launchMail struct {
	AssetID       string `json:"assetId"`
	N             int    `json:"n"`
	SubjectLadder []struct {
		Text string `json:"text"`
	} `json:"subjectLadder"`
	BodyText    string   `json:"bodyText"`
	Footer      string   `json:"footer"`
	EvidenceIDs []string `json:"evidenceIds"`
	Publishable bool     `json:"publishable"`
}

func (k *campaign) draftMails(ctx context.Context) {
	if !k.serves(chEmail) {
		return
	}
	input := map[string]any{"type": "launch", "repoContext": k.raw}
	if k.env.BrandDNARef != "" {
		input["brandDnaId"] = k.env.BrandDNARef
	}
	if k.link != "" {
		input["link"] = k.link
	}
	if basis := k.basis(); basis != "" {
		input["lawfulBasis"] = basis
	}
	if u := k.in.Email.UnsubscribeURL; u != "" {
		input["unsubscribeUrl"] = u
	}
	if from := k.sender(); from != nil {
		input["sender"] = from
	}
	var out skillAnswer
	if k.skill(ctx, toolEmail, "the own list hears of it first", input, &out) != nil {
		return
	}
	k.mails = out.Emails
	out.Gaps = nil // what blocks a send is said by the staging below, for this audience
	k.adopt(out)
	for _, m := range out.Emails {
		if v := k.channel(chEmail); v != nil {
			v.Assets = append(v.Assets, m.AssetID)
		}
	}
}

// adopt counts the drafts of a skill among those of the run.
func (k *campaign) adopt(out skillAnswer) {
	for _, a := range out.Assets {
		k.env.Assets = append(k.env.Assets, a)
		checked := draft.Checked{Risk: a.Risk, Publishable: a.Publishable}
		for _, s := range a.Slots {
			checked.Claims = append(checked.Claims, s.Claims...)
		}
		k.env.Count(checked)
	}
	for _, g := range out.Gaps {
		k.env.Gap(g.Role, g.Question, g.WhyItMatters)
	}
}

// askForMissing turns missing input into questions; at most three are asked.
func (k *campaign) askForMissing() {
	if k.repo.TargetCustomer == "" && !k.desk.Pool.Has(draft.Audience) {
		k.env.Gap("targetCustomer", "Whom is it for?", "Copy that names its reader is understood faster.")
	}
	if k.link == "" {
		k.env.Gap("url", "Where can people try it?", "Without an address no channel can send anyone there.")
	}
	if !k.desk.Pool.Has(draft.Proof) {
		k.env.Gap("proof", "Which result can you show, with its number?", "A measured result is the only proof a draft may use.")
	}
}
