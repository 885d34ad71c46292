package effect

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Preview draws what would leave, from the resolved bytes alone. It is plain data that
// marshals to JSON; every text is made Visible. What decides most stands at the top:
// account, recipients, money. The plugin's own words stand apart, as explanation.
//
// Keys: kind, account, accountId, provider, recipients, reach, money, notBefore,
// steps, manual, preconditions, lookup, warnings, unverifiedExplanation.
func Preview(s Sealed, r Resolved) map[string]any {
	p := map[string]any{
		"kind":       s.Kind,
		"account":    Visible(firstOf(r.Connection.Account, s.Target.Label)),
		"accountId":  Visible(firstOf(r.Connection.AccountID, s.Target.AccountID)),
		"provider":   r.Connection.Provider,
		"recipients": recipients(r),
		"reach":      s.Reach,
		"warnings":   warnings(s, r),
		"steps":      stepViews(s, r),
	}
	if s.Explanation != "" {
		p["unverifiedExplanation"] = Visible(s.Explanation)
	}
	if s.Money != nil {
		p["money"] = map[string]any{"micros": s.Money.Micros, "currency": s.Money.Currency, "text": s.Money.String()}
	}
	if s.NotBefore != nil {
		p["notBefore"] = s.NotBefore.UTC().Format("2006-01-02T15:04:05Z")
	}
	if m := s.Manual; m != nil {
		checklist := []string{}
		for _, c := range m.Checklist {
			checklist = append(checklist, Visible(c))
		}
		p["manual"] = map[string]any{"title": Visible(m.Title), "text": Visible(m.Text), "fields": pairViews(m.Fields), "checklist": checklist, "openUrl": Visible(m.OpenURL)}
	}
	reads := []map[string]any{}
	for _, c := range r.Preconditions {
		reads = append(reads, map[string]any{"method": c.Method, "url": Visible(c.URL), "pointer": c.Pointer, "expected": Visible(c.Expected)})
	}
	if len(reads) > 0 {
		p["preconditions"] = reads
	}
	if l := r.Lookup; l != nil {
		p["lookup"] = map[string]any{"method": l.Method, "url": Visible(l.URL), "pointer": l.Pointer, "marker": Visible(l.Marker)}
	}
	return p
}

// String is the amount as people write it, for example 12.50 EUR.
func (m Money) String() string {
	whole, rest := m.Micros/1_000_000, m.Micros%1_000_000
	digits := strings.TrimRight(fmt.Sprintf("%06d", rest), "0")
	for len(digits) < 2 {
		digits += "0"
	}
	return fmt.Sprintf("%d.%s %s", whole, digits, m.Currency)
}

// Title says in one sentence what will happen, from the resolved bytes.
func Title(s Sealed, r Resolved) string {
	account := clip(firstOf(r.Connection.Account, s.Target.Label), 80)
	switch {
	case s.Manual != nil && strings.HasSuffix(strings.ToLower(s.Manual.Title), "by hand"):
		return clip(s.Manual.Title, 160)
	case s.Manual != nil:
		return "By hand: " + clip(s.Manual.Title, 160)
	case len(r.Steps) == 0:
		return "Nothing is sent"
	}
	first, more := r.Steps[0], ""
	if n := len(r.Steps) - 1; n == 1 {
		more = ", then 1 more request"
	} else if n > 1 {
		more = fmt.Sprintf(", then %d more requests", n)
	}
	if s.Money != nil && s.Money.Micros > 0 {
		more += ", for at most " + s.Money.String()
	}
	if m := first.Mail; m != nil {
		subject := "without a readable subject"
		if l, err := read(m.Message); err == nil {
			subject = "“" + clip(l.subject, 100) + "”"
		}
		to := clip(m.To[0], 100)
		if len(m.To) > 1 {
			to = fmt.Sprintf("%d recipients", len(m.To))
		}
		return fmt.Sprintf("E-mail %s to %s from %s%s", subject, to, clip(m.From, 100), more)
	}
	h := first.HTTP
	verb := map[string]string{"POST": "Send", "PUT": "Put", "PATCH": "Change", "DELETE": "Delete at"}[h.Method]
	what := fmt.Sprintf(" %d bytes to ", len(h.Body))
	if h.Method == "DELETE" && len(h.Body) == 0 {
		what = " "
	}
	where := clip(h.URL, 160)
	if u, err := url.Parse(h.URL); err == nil {
		where = clip(u.Host+u.Path, 160)
	}
	if strings.Contains(h.URL, account) { // the connection is known by its address: say it once
		return verb + what + where + more
	}
	return verb + what + where + " as " + account + more
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func recipients(r Resolved) []string {
	out := []string{}
	for _, step := range r.Steps {
		if step.Mail != nil {
			for _, to := range step.Mail.To {
				out = append(out, Visible(to))
			}
		}
		if step.HTTP != nil {
			if u, err := url.Parse(step.HTTP.URL); err == nil && !slices.Contains(out, u.Host) {
				out = append(out, Visible(u.Host))
			}
		}
	}
	return out
}

func pairViews(pairs []Pair) []map[string]any {
	out := []map[string]any{}
	for _, p := range pairs {
		out = append(out, map[string]any{"name": Visible(p.Name), "value": Visible(p.Value)})
	}
	return out
}

func stepViews(s Sealed, r Resolved) []map[string]any {
	sums := ContentSHA256(s)
	views := []map[string]any{}
	for i, step := range r.Steps {
		v := map[string]any{"n": i + 1, "endpoint": step.Endpoint, "contentSha256": sums[i], "addedBySender": added(step), "success": successText(step.Success)}
		if len(step.Captures) > 0 {
			blanks := []map[string]any{}
			for _, c := range step.Captures {
				blanks = append(blanks, map[string]any{"name": c.Name, "from": firstOf(c.Pointer, c.Header), "pattern": Visible(c.Pattern), "maxLength": c.MaxLength})
			}
			v["blanks"] = blanks
		}
		if step.HTTP != nil {
			httpView(v, step.HTTP)
		} else {
			mailView(v, step.Mail)
		}
		views = append(views, v)
	}
	return views
}

func httpView(v map[string]any, h *ResolvedHTTP) {
	v["transport"], v["method"], v["url"], v["headers"] = "http", h.Method, Visible(h.URL), pairViews(h.Headers)
	v["secretUrl"] = h.SecretURL
	exact(v, "body", h.Body)
}

func mailView(v map[string]any, m *ResolvedMail) {
	to := []string{}
	for _, a := range m.To {
		to = append(to, Visible(a))
	}
	v["transport"], v["server"], v["tls"], v["from"], v["to"] = "smtp", m.Server, firstOf(m.TLS, "starttls"), Visible(m.From), to
	exact(v, "message", m.Message)
	l, err := read(m.Message)
	if err != nil {
		return
	}
	v["subject"], v["headers"], v["text"], v["html"] = Visible(l.subject), pairViews(l.headers), Visible(l.text), Visible(l.html)
	v["otherParts"] = append([]string{}, l.others...)
}

// exact puts the very bytes under name: as text where every byte can be seen, with
// escapes and their base64 beside them where something in the text is hidden, as
// base64 alone where they are not text.
func exact(v map[string]any, name string, b []byte) {
	v[name+"Bytes"] = len(b)
	switch text := string(b); {
	case !utf8.Valid(b):
		v[name+"Encoding"], v[name] = "base64", base64.StdEncoding.EncodeToString(b)
	case HasHidden(text):
		v[name+"Encoding"], v[name], v[name+"Base64"] = "escaped", Visible(text), base64.StdEncoding.EncodeToString(b)
	default:
		v[name+"Encoding"], v[name] = "utf-8", text
	}
}

func added(step ResolvedStep) []string {
	out := []string{}
	if step.Mail != nil {
		out = append(out, "Date line")
	}
	if step.HTTP != nil && step.HTTP.IdempotencyHeader != "" {
		out = append(out, step.HTTP.IdempotencyHeader+" header with the action id")
	}
	for _, signer := range step.Signers {
		out = append(out, map[string]string{
			"bearer": "access token", "basic": "user name and password", "header": "secret header", "secret_url": "secret part of the address",
			"standard_webhooks": "webhook-id, webhook-timestamp and webhook-signature headers", "smtp_auth": "sign-in at the mail server",
		}[signer])
	}
	return out
}

func successText(s Success) string {
	text := "any 2xx status"
	if len(s.Statuses) > 0 {
		text = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Statuses)), ", "), "[]")
	}
	if s.Pointer != "" {
		text += " with " + Visible(s.Pointer) + " = " + Visible(s.Value)
	}
	return text
}

func warnings(s Sealed, r Resolved) []string {
	out := []string{}
	texts := []string{}
	for _, step := range r.Steps {
		if h := step.HTTP; h != nil {
			texts = append(texts, h.URL, string(h.Body))
			texts = append(texts, flat(h.Headers)...)
			if strings.HasPrefix(h.URL, "http://") {
				out = append(out, "The request to "+clip(h.URL, 100)+" is not encrypted.")
			}
		}
		if m := step.Mail; m != nil {
			texts = append(texts, m.From, strings.Join(m.To, " "))
			if m.TLS == "none" {
				out = append(out, "The mail to "+m.Server+" is not encrypted on the way.")
			}
			out = append(out, mailWarnings(m, &texts)...)
		}
	}
	if m := s.Manual; m != nil {
		texts = append(append(append(texts, m.Title, m.Text, m.OpenURL), flat(m.Fields)...), m.Checklist...)
	}
	all := strings.Join(texts, "\n")
	if HasHidden(all) {
		out = append(out, "The content has characters that cannot be seen or that change the reading direction; they are shown as escapes.")
	}
	if mixed := MixedScripts(all); len(mixed) > 0 {
		out = append(out, "Words mix letters of scripts that look alike: "+strings.Join(mixed, ", "))
	}
	return out
}

func mailWarnings(m *ResolvedMail, texts *[]string) []string {
	l, err := read(m.Message)
	if err != nil {
		return []string{"The message cannot be decoded; judge it by its exact bytes."}
	}
	*texts = append(*texts, l.subject, l.text, l.html)
	out := []string{}
	if len(l.others) > 0 {
		out = append(out, "The message has parts that are not shown decoded: "+clip(strings.Join(l.others, ", "), 200))
	}
	shown := ""
	for _, h := range l.headers {
		if strings.EqualFold(h.Name, "To") || strings.EqualFold(h.Name, "Cc") {
			shown += " " + strings.ToLower(h.Value)
		}
	}
	for _, to := range m.To {
		if !strings.Contains(shown, strings.ToLower(to)) {
			out = append(out, clip(to, 100)+" receives the message but stands in neither To nor Cc.")
		}
	}
	return out
}
