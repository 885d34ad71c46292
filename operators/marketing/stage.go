package marketing

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/text"
	"github.com/sallyport-dev/sallyport/sdk/text/draft"
)

// maxRecipients is how many people one run may write to.
const maxRecipients = 200

// actionView is a staged action as a tool shows it before approval: what it is, not what it sends or to whom.
type actionView struct {
	ID            string   `json:"id"`
	Tool          string   `json:"tool"`
	Kind          string   `json:"kind"`
	Channel       string   `json:"channel"`
	Title         string   `json:"title"`
	Status        string   `json:"status"`
	Executor      string   `json:"executor"`
	SideEffect    string   `json:"sideEffect"`
	Reversibility string   `json:"reversibility"`
	AssetID       string   `json:"assetId,omitempty"`
	EvidenceIDs   []string `json:"evidenceIds"`
	Digest        string   `json:"digest"`
	Revision      int      `json:"revision"`
	ContentSHA256 []string `json:"contentSha256"`
	ReviewURL     string   `json:"reviewUrl"`
	ExpiresAt     string   `json:"expiresAt"`
}

// stage proposes one action per channel that can be served. A draft that does not pass its checks is not staged.
func (k *campaign) stage(ctx context.Context) error {
	if k.in.DryRun {
		return nil
	}
	for _, step := range []func(context.Context) error{k.stageWebhooks, k.stageMail, k.stageTexts, k.stagePosts} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// propose stages one action. A refusal is a blocked channel, not the end of the run; only a host that does not answer is.
func (k *campaign) propose(ctx context.Context, p sdk.Proposal, title, sideEffect string, asset draft.AssetView) error {
	if asset.ID != "" {
		p.AssetRefs = []sdk.AssetRef{asset.Ref()}
	}
	done, err := k.c.Host.Propose(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		k.blocked = append(k.blocked, blockedChannel{p.Channel, "the action could not be staged: " + draft.Clip(messageOf(err), 300), "Fix what it names and run again."})
		return nil
	}
	view := actionView{
		ID: done.ID, Tool: done.Tool, Kind: done.Kind, Channel: p.Channel, Title: title, Status: shownStatus(done.Status), Executor: executorOf(done), SideEffect: sideEffect,
		Reversibility: done.Reversibility, AssetID: asset.ID, EvidenceIDs: append([]string{}, p.EvidenceIDs...), Digest: done.Digest, Revision: done.Revision,
		ContentSHA256: append([]string{}, done.ContentSHA256...), ReviewURL: done.ReviewURL,
	}
	if !done.ExpiresAt.IsZero() {
		view.ExpiresAt = done.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z")
	}
	k.actions = append(k.actions, view)
	return nil
}

func executorOf(p *sdk.Proposed) string {
	if p.Executor == "connector" && p.Connector != "" {
		return "connector:" + p.Connector
	}
	return p.Executor
}

// stageWebhooks announces the change to every connected address, one action each.
func (k *campaign) stageWebhooks(ctx context.Context) error {
	if !k.serves(chWebhook) {
		return nil
	}
	ct, ok := k.text(chChangelog)
	if !ok || !ct.checked.Publishable {
		return nil
	}
	for _, c := range k.connections {
		if c.Provider != "webhook" || c.Status != "connected" {
			continue
		}
		data := map[string]any{"product": k.desk.Brand, "title": k.headline(), "text": ct.slot("body"), "channel": chChangelog}
		if k.link != "" {
			data["url"] = k.link
		}
		if v := k.repo.Project.Version; v != "" {
			data["version"] = text.OneLine(v, 40)
		}
		err := k.propose(ctx, sdk.Proposal{
			Tool: toolWebhook, Channel: chWebhook, EvidenceIDs: ct.checked.EvidenceIDs(),
			Input: map[string]any{"connection": c.Name, "type": "changelog.published", "data": data},
		}, "Announce the change to the webhook "+c.Name, "send", ct.asset)
		if err != nil {
			return err
		}
	}
	return nil
}

// headline is the news in one line.
func (k *campaign) headline() string {
	t := &teller{Desk: k.desk, used: map[string]bool{}}
	if news := t.news(); news != "" {
		return draft.FirstSentence(draft.Named([]string{news}, k.desk.Brand)[0])
	}
	return k.desk.Brand
}

func (k *campaign) text(channel string) (channelText, bool) {
	for _, ct := range k.texts {
		if ct.channel == channel {
			return ct, true
		}
	}
	return channelText{}, false
}

// audience finds the recipients: those named in the input, else the audience of the mail connection that the input names
// or the only one there is.
func (k *campaign) audience() (addresses []string, basis string) {
	if len(k.in.Email.Recipients) > 0 {
		return k.in.Email.Recipients, k.in.Email.LawfulBasis
	}
	for _, c := range k.connections {
		if c.Provider != "smtp" || c.Status != "connected" {
			continue
		}
		for _, a := range c.Audiences {
			if k.in.Email.Audience == a.Name || k.in.Email.Audience == "" && len(c.Audiences) == 1 {
				return a.Addresses, a.LawfulBasis
			}
		}
	}
	return nil, ""
}

func (k *campaign) basis() string { _, basis := k.audience(); return basis }

// sender is what the mail connection says of the sender.
func (k *campaign) sender() map[string]any {
	for _, c := range k.connections {
		if c.Provider != "smtp" || c.Status != "connected" {
			continue
		}
		address, err := mail.ParseAddress(c.Fields["from"])
		if err != nil {
			continue
		}
		out := map[string]any{"name": k.senderName(address), "email": address.Address}
		if k.in.Email.PostalAddress != "" {
			out["postalAddress"] = k.in.Email.PostalAddress
		}
		return out
	}
	return nil
}

func (k *campaign) senderName(address *mail.Address) string {
	for _, name := range []string{k.in.Email.SenderName, address.Name, k.desk.Brand} {
		if name != "" {
			return name
		}
	}
	return address.Address
}

// stageMail proposes the first launch mail, one action per recipient.
func (k *campaign) stageMail(ctx context.Context) error {
	if !k.serves(chEmail) || len(k.mails) == 0 || !k.mails[0].Publishable || len(k.mails[0].SubjectLadder) == 0 || !k.connected()["smtp"] {
		return nil
	}
	addresses, basis := k.audience()
	first := k.mails[0]
	switch {
	case len(addresses) == 0:
		if !slices.ContainsFunc(k.blocked, func(b blockedChannel) bool { return b.Channel == chEmail }) {
			k.blocked = append(k.blocked, blockedChannel{chEmail, "several audiences are connected and none was named", "Name one in email.audience."})
		}
		return nil
	case basis == "":
		k.blocked = append(k.blocked, blockedChannel{chEmail, "no lawful basis for writing to these people is stated", "State email.lawfulBasis, or set it on the audience of the connection."})
		return nil
	case len(addresses) > maxRecipients:
		k.blocked = append(k.blocked, blockedChannel{chEmail, fmt.Sprintf("%d recipients; a run writes to at most %d", len(addresses), maxRecipients), "Split the audience."})
		return nil
	}
	body := first.BodyText + "\n\n-- \n" + k.wayOut(first.Footer)
	asset := k.asset(first.AssetID)
	for i, to := range addresses {
		input := map[string]any{"to": to, "subject": first.SubjectLadder[0].Text, "text": body}
		if u := k.in.Email.UnsubscribeURL; u != "" {
			input["unsubscribeUrl"] = u
		}
		title := "Send the launch e-mail to one recipient"
		if len(addresses) > 1 {
			title = fmt.Sprintf("Send the launch e-mail to recipient %d of %d", i+1, len(addresses))
		}
		if err := k.propose(ctx, sdk.Proposal{Tool: toolMail, Channel: chEmail, EvidenceIDs: first.EvidenceIDs, Input: input}, title, "send", asset); err != nil {
			return err
		}
	}
	if k.in.Email.PostalAddress == "" {
		k.env.Gap("postalAddress", "Which postal address stands in your mails?", "Several countries ask for one in commercial mail; the draft shows none.")
	}
	return nil
}

// wayOut makes sure that a mail names a way to stop: the address given, else an answer to the sender.
func (k *campaign) wayOut(footer string) string {
	if k.in.Email.UnsubscribeURL != "" {
		return footer
	}
	return strings.TrimSpace(footer + "\nTo get no more of these mails, reply with the word unsubscribe.")
}

func (k *campaign) asset(id string) draft.AssetView {
	for _, a := range k.env.Assets {
		if a.ID == id {
			return a
		}
	}
	return draft.AssetView{}
}

// openPages are where a person posts. They are plain pages: no text is filled in by an address.
var openPages = map[string]string{
	chHN: "https://news.ycombinator.com/submit", chPH: "https://www.producthunt.com/posts/new", chDevTo: "https://dev.to/new",
	chReddit: "https://www.reddit.com/submit", chX: "https://x.com/", chLinkedIn: "https://www.linkedin.com/feed/", chInstagram: "https://www.instagram.com/",
}

// stageTexts proposes the texts that a person posts by hand.
func (k *campaign) stageTexts(ctx context.Context) error {
	for _, ct := range k.texts {
		if !k.serves(ct.channel) || ct.channel == chChangelog && k.has(chWebhook) {
			continue
		}
		if !ct.checked.Publishable {
			k.blocked = append(k.blocked, blockedChannel{ct.channel, "the draft does not pass its checks", "Answer the open questions, or give your own text in drafts."})
			continue
		}
		main, fields := "", []handField{}
		for _, s := range ct.slots {
			if s.Path == "body" || s.Path == "firstComment" {
				main = s.Text
			} else {
				fields = append(fields, handField{s.Path, s.Text})
			}
		}
		if ct.channel == chHN && k.link != "" {
			fields = append(fields, handField{"url", k.link})
		}
		if ct.channel == chReddit {
			fields = append(fields, handField{"disclosure", "I made this."})
		}
		title := "Post on " + channelTitle(ct.channel) + " by hand"
		if ct.channel == chChangelog {
			title = "Add the changelog entry by hand"
		}
		if err := k.proposeByHand(ctx, ct.channel, title, main, fields, ct.asset, ct.checked.EvidenceIDs()); err != nil {
			return err
		}
	}
	return nil
}

func (k *campaign) has(channel string) bool {
	return slices.ContainsFunc(k.actions, func(a actionView) bool { return a.Channel == channel })
}

func (k *campaign) proposeByHand(ctx context.Context, channel, title, body string, fields []handField, asset draft.AssetView, ids []string) error {
	in := handWork{Channel: channel, Title: title, Text: body, Fields: fields, Checklist: checklist(channel), OpenURL: openPages[channel]}
	return k.propose(ctx, sdk.Proposal{Tool: toolByHand, Channel: channel, Input: in, EvidenceIDs: ids}, title, "publish", asset)
}

// stagePosts proposes the best post of each platform; the others stay drafts.
func (k *campaign) stagePosts(ctx context.Context) error {
	done := map[string]bool{}
	for _, p := range k.posts {
		if done[p.Platform] || !p.Scores.Publishable {
			continue
		}
		done[p.Platform] = true
		fields := []handField{}
		if p.MediaBrief != nil {
			fields = append(fields, handField{"picture", p.MediaBrief.WhatToShow + " (" + p.MediaBrief.Source + ")"}, handField{"alt text", p.MediaBrief.AltText})
		}
		if err := k.proposeByHand(ctx, p.Platform, "Post on "+channelTitle(p.Platform)+" by hand", p.Body, fields, k.asset(p.AssetID), p.EvidenceIDs); err != nil {
			return err
		}
	}
	return nil
}

// shownStatus is the state a caller finds the action in: what is staged waits for a
// decision as soon as the pack is delivered, and the pack is what carries this word.
func shownStatus(staged string) string {
	if staged == "proposed" {
		return "pending"
	}
	return staged
}
