package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/core"
)

// Limits of what is shown. What was not shown whole cannot be approved on the page.
const (
	showLimit = 256 << 10 // bytes of one text
	pageLimit = 4 << 20   // bytes of all of them together
)

// budget is the room that is left on a page.
type budget struct{ left int }

// take cuts a text to the room there is, at a whole character.
func (b *budget) take(text string, whole *bool) string {
	room := min(showLimit, b.left)
	if len(text) > room {
		*whole = false
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
	}
	b.left -= len(text)
	return text
}

// actionView is an action as the review page shows it.
type actionView struct {
	core.Action
	Recipients, Warnings   []string
	Money, NotBefore, Note string
	Steps                  []stepView
	ManualTask             *manualView
	Reads                  []readView
	Explanation            string
	Genericity             *core.GenericityRisk
	Supported, Doubtful    []core.Claim // claims of the drafts it rests on
	Evidence               []core.Evidence
	Fields                 []fieldView
	Whole                  bool // everything that leaves is on the page
	CanDecide, CanRevoke   bool
	CanFinish, CanSettle   bool
	CanRetry               bool
	ApproveLabel           string
}

// pairView is a name and a value.
type pairView struct{ Name, Value string }

// stepView is one request, exactly.
type stepView struct {
	Method, URL, TLS, Body, Readable, SHA256, Added, Success, Note string
	Headers                                                        []pairView
	Blanks                                                         []blankView
	Bytes                                                          int
	SecretURL                                                      bool
	From                                                           string // of the envelope, which is what the server goes by
	To                                                             []string
	Mail                                                           *mailView
}

// mailView is a mail as a reader would see it; the exact bytes stand beside it.
type mailView struct {
	Headers             []pairView // those that name people, as the message has them
	Subject, Text, HTML string
	Others              []string
}

type manualView struct {
	Title, Text, OpenURL string
	Fields               []pairView
	Checklist            []string
}

// blankView is a part of a later request that an earlier reply fills in.
type blankView struct {
	Name, From, Pattern string
	MaxLength           int
}

// readView is what is read before sending, and what must be found.
type readView struct{ Method, URL, Pointer, Expected string }

// preview is what core drew from the sealed bytes.
type preview struct {
	Recipients, Warnings             []string
	UnverifiedExplanation, NotBefore string
	Money                            struct{ Text string }
	Manual                           *manualView
	Preconditions                    []readView
	Steps                            []stepPreview
}

type stepPreview struct {
	Transport, Method, URL, Server, TLS, From, Subject, Text, HTML string
	Body, BodyEncoding, Message, MessageEncoding                   string
	BodyBytes, MessageBytes                                        int
	To, OtherParts, AddedBySender                                  []string
	Headers                                                        []pairView
	Blanks                                                         []blankView
	ContentSha256, Success                                         string
	SecretURL                                                      bool
}

// viewOf draws an action from the preview that core made of the sealed bytes.
func viewOf(a core.Action, room *budget) (actionView, error) {
	v := actionView{Action: a, Whole: true, ApproveLabel: label(a)}
	v.CanDecide = a.Status == core.ActionStatusPending
	v.CanRevoke = a.Status == core.ActionStatusApproved || a.Status == core.ActionStatusClaimed
	v.CanFinish = a.Status == core.ActionStatusApproved && a.Executor == core.ActionExecutorManual
	v.CanSettle = a.Status == core.ActionStatusUnknown
	v.CanRetry = a.Status == core.ActionStatusFailed || a.Status == core.ActionStatusExpired
	raw, err := json.Marshal(a.Preview)
	if err != nil {
		return v, err
	}
	var pv preview
	if err := json.Unmarshal(raw, &pv); err != nil {
		return v, fmt.Errorf("preview of %s: %w", a.ID, err)
	}
	v.Recipients, v.Warnings, v.Money, v.NotBefore, v.Reads = pv.Recipients, pv.Warnings, pv.Money.Text, pv.NotBefore, pv.Preconditions
	if len(v.Recipients) == 1 && v.Recipients[0] == a.Target.Label {
		v.Recipients = nil // it stands there already
	}
	for _, st := range pv.Steps {
		v.Steps = append(v.Steps, stepOf(st, room, &v.Whole))
	}
	if m := pv.Manual; m != nil {
		m.Text = room.take(m.Text, &v.Whole)
		for i := range m.Fields {
			m.Fields[i].Value = room.take(m.Fields[i].Value, &v.Whole)
		}
		v.ManualTask = m
	}
	aside := true // what does not leave may be cut
	v.Explanation = room.take(pv.UnverifiedExplanation, &aside)
	if v.ManualTask == nil && len(v.Steps) == 0 {
		v.Whole = false
	}
	if v.CanDecide && v.Whole {
		v.Fields = textsOf(a)
	}
	return v, nil
}

func stepOf(st stepPreview, room *budget, whole *bool) stepView {
	step := stepView{Method: st.Method, URL: st.URL, Headers: st.Headers, Bytes: st.BodyBytes + st.MessageBytes, SHA256: st.ContentSha256, SecretURL: st.SecretURL,
		Added: strings.Join(st.AddedBySender, ", "), Success: st.Success, Blanks: st.Blanks}
	body, encoding := st.Body, st.BodyEncoding
	if st.Transport == "smtp" {
		body, encoding = st.Message, st.MessageEncoding
		step.URL, step.TLS, step.Headers = st.Server, encryption(st.TLS), nil // the headers stand in the message
	}
	size := len(body)
	step.Body = room.take(body, whole)
	switch {
	case len(step.Body) < size:
		step.Note = fmt.Sprintf("Only the first %d of %d bytes are shown.", len(step.Body), size)
	case encoding == "base64":
		step.Note = "These bytes are not text; they are shown in base64."
	case encoding == "escaped":
		step.Note = "Some characters cannot be seen; they are shown as escapes."
	}
	aside := true // drawn from the same bytes, for ease of reading
	if st.Transport == "smtp" {
		step.From, step.To = st.From, st.To
		step.Mail = &mailView{Headers: people(st.Headers), Subject: st.Subject, Text: room.take(st.Text, &aside), HTML: room.take(st.HTML, &aside), Others: st.OtherParts}
	} else if len(step.Body) == size && encoding == "utf-8" {
		step.Readable = room.take(readable(body), &aside)
	}
	return step
}

func encryption(mode string) string {
	switch mode {
	case "none":
		return "not encrypted"
	case "implicit":
		return "encrypted from the start"
	case "starttls":
		return "encrypted by STARTTLS"
	}
	return mode
}

// people are the headers in which a reader sees who writes to whom.
func people(headers []pairView) []pairView {
	var out []pairView
	for _, h := range headers {
		switch strings.ToLower(h.Name) {
		case "from", "sender", "reply-to", "to", "cc":
			out = append(out, h)
		}
	}
	return out
}

// readable lays JSON out over lines; empty where that adds nothing.
func readable(body string) string {
	var b bytes.Buffer
	if !strings.HasPrefix(body, "{") && !strings.HasPrefix(body, "[") || json.Indent(&b, []byte(body), "", "  ") != nil || b.Len() > showLimit || b.String() == body {
		return ""
	}
	return b.String()
}

// label names the act on the button.
func label(a core.Action) string {
	switch {
	case a.Executor == core.ActionExecutorManual:
		return "Approve for doing by hand"
	case a.Kind == "email.send":
		return "Approve and send 1 e-mail"
	case a.Kind == "webhook.post":
		return "Approve and send 1 message"
	case a.Kind == "post.publish":
		return "Approve and publish 1 post"
	}
	return "Approve and send"
}

// inOrder puts what waits first, and there money, then what cannot be undone.
func inOrder(actions []core.Action) []core.Action {
	out := append([]core.Action(nil), actions...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := rank(out[i]), rank(out[j])
		return a < b || a == b && out[i].ID < out[j].ID // identifiers rise with time
	})
	return out
}

func rank(a core.Action) int {
	n := 0
	switch {
	case a.Status == core.ActionStatusUnknown: // only a person can settle it
	case a.Status.IsWaiting():
		n = 10
	default:
		n = 20
	}
	if a.Cost.Micros == 0 {
		n += 2
	}
	if a.Reversibility != core.ActionReversibilityIrreversible {
		n++
	}
	return n
}
