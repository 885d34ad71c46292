package effect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of a sealed effect.
const (
	MaxContent  = 1 << 20 // bytes of one body or message
	MaxEncoded  = 4 << 20 // bytes of the whole effect as JSON
	MaxCapture  = 512     // characters one capture may take
	MaxMailTo   = 50      // recipients of one envelope
	maxPairs    = 100
	maxNameSize = 200
)

// Decode reads a sealed effect from JSON and checks its form. It refuses unknown
// fields, so that nothing a plugin meant to be sent is dropped in silence.
func Decode(raw []byte) (*Sealed, error) {
	if len(raw) > MaxEncoded {
		return nil, fmt.Errorf("the sealed effect has %d bytes; at most %d are allowed", len(raw), MaxEncoded)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the sealed effect is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var s Sealed
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("the sealed effect cannot be read: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands after the sealed effect")
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &s, nil
}

// Check says what is wrong with the form of the effect, without looking at a manifest.
func (s *Sealed) Check() error {
	switch {
	case s.Kind == "":
		return errors.New("kind is missing")
	case s.Target.Label == "":
		return errors.New("target.label is missing: the approver must see where it lands")
	case len(s.Steps) > MaxSteps:
		return fmt.Errorf("%d steps; at most %d are allowed", len(s.Steps), MaxSteps)
	case len(s.Steps) == 0 && s.Manual == nil:
		return errors.New("an effect without steps needs manual: what a person does by hand")
	case len(s.Steps) > 0 && s.Manual != nil:
		return errors.New("an effect has either steps or manual, not both")
	case s.Manual != nil && (s.Manual.Title == "" || s.Manual.Text == ""):
		return errors.New("manual needs title and text")
	case s.Manual != nil && s.Manual.OpenURL != "" && !strings.HasPrefix(s.Manual.OpenURL, "https://"):
		return errors.New("manual.openUrl must begin with https://")
	case s.Money != nil && (s.Money.Micros < 0 || len(s.Money.Currency) != 3):
		return errors.New("money needs an amount that is not negative and an ISO 4217 currency")
	case s.Reach < 0:
		return errors.New("reach is negative")
	}
	if raw, err := json.Marshal(s); err != nil || len(raw) > MaxEncoded {
		return fmt.Errorf("the effect is larger than %d bytes or cannot be stored", MaxEncoded)
	}
	if err := s.checkTexts(); err != nil {
		return err
	}
	known := map[string]Capture{}
	for i, step := range s.Steps {
		if err := step.check(known); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		for _, c := range step.Captures {
			if _, twice := known[c.Name]; twice {
				return fmt.Errorf("step %d: capture %q stands twice", i+1, c.Name)
			}
			known[c.Name] = c
		}
	}
	return nil
}

// checkTexts refuses text that JSON would store as something else, because the digest
// must be the same after it was stored and read.
func (s *Sealed) checkTexts() error {
	texts := []string{s.Kind, s.Explanation, s.Target.AccountID, s.Target.Label, s.Connection}
	if m := s.Manual; m != nil {
		texts = append(texts, m.Title, m.Text, m.OpenURL)
		texts = append(append(texts, flat(m.Fields)...), m.Checklist...)
	}
	for _, p := range s.Preconditions {
		texts = append(append(texts, p.Endpoint, p.Pointer, p.Expected), flatMap(p.Params)...)
	}
	if l := s.Lookup; l != nil {
		texts = append(append(texts, l.Endpoint, l.Pointer, l.Marker), flatMap(l.Params)...)
	}
	for _, step := range s.Steps {
		texts = append(texts, step.Endpoint, step.Success.Pointer, step.Success.Value, step.Result.IDPointer, step.Result.URLPointer, step.Result.IDHeader)
		for _, c := range step.Captures {
			texts = append(texts, c.Name, c.Pointer, c.Header, c.Pattern)
		}
		if h := step.HTTP; h != nil {
			texts = append(append(append(append(texts, h.IdempotencyHeader), flat(h.Query)...), flat(h.Headers)...), flatMap(h.PathParams)...)
		}
		if m := step.Mail; m != nil {
			texts = append(append(texts, m.From), m.To...)
		}
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return fmt.Errorf("text %q is not valid UTF-8", t)
		}
	}
	return nil
}

func flat(pairs []Pair) []string {
	out := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		out = append(out, p.Name, p.Value)
	}
	return out
}

func flatMap(m map[string]string) []string {
	out := make([]string, 0, 2*len(m))
	for k, v := range m {
		out = append(out, k, v)
	}
	return out
}

func (s *Step) check(known map[string]Capture) error {
	if s.Endpoint == "" {
		return errors.New("endpoint is missing")
	}
	switch {
	case (s.HTTP == nil) == (s.Mail == nil):
		return errors.New("exactly one of http and mail must be set")
	case s.HTTP != nil:
		if err := s.HTTP.check(known); err != nil {
			return err
		}
	case s.Mail != nil:
		if err := s.Mail.check(); err != nil {
			return err
		}
	}
	for _, c := range s.Captures {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

func (h *HTTPStep) check(known map[string]Capture) error {
	if len(h.Body) > MaxContent {
		return fmt.Errorf("the body has %d bytes; at most %d are allowed", len(h.Body), MaxContent)
	}
	if len(h.Query) > maxPairs || len(h.Headers) > maxPairs || len(h.PathParams) > maxPairs {
		return fmt.Errorf("more than %d query pairs, headers or path parameters", maxPairs)
	}
	for _, text := range append(append(append(flat(h.Query), flat(h.Headers)...), flatMap(h.PathParams)...), string(h.Body)) {
		for _, m := range capturePlace.FindAllStringSubmatch(text, -1) {
			if _, ok := known[m[1]]; !ok {
				return fmt.Errorf("%s: no earlier step captures it", m[0])
			}
		}
	}
	return nil
}

var (
	captureName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)
	capturePlace = regexp.MustCompile(`\{\{capture:([A-Za-z0-9_]*)\}\}`)
)

func (c *Capture) check() error {
	if !captureName.MatchString(c.Name) {
		return fmt.Errorf("capture %q: a name is a letter and up to 31 letters, digits or underscores", c.Name)
	}
	if (c.Pointer == "") == (c.Header == "") {
		return fmt.Errorf("capture %q: exactly one of pointer and header must be set", c.Name)
	}
	if c.MaxLength < 1 || c.MaxLength > MaxCapture {
		return fmt.Errorf("capture %q: maxLength must be 1 to %d", c.Name, MaxCapture)
	}
	if len(c.Pattern) > maxNameSize || c.Pattern == "" {
		return fmt.Errorf("capture %q: pattern must have 1 to %d characters", c.Name, maxNameSize)
	}
	if _, err := regexp.Compile(c.Pattern); err != nil {
		return fmt.Errorf("capture %q: %w", c.Name, err)
	}
	return nil
}

func (m *MailStep) check() error {
	if len(m.To) == 0 || len(m.To) > MaxMailTo {
		return fmt.Errorf("an envelope has 1 to %d recipients, not %d", MaxMailTo, len(m.To))
	}
	for _, a := range append([]string{m.From}, m.To...) {
		at := strings.LastIndexByte(a, '@')
		if at < 1 || at == len(a)-1 || len(a) > 254 || strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r == '<' || r == '>' || r == 0x7f }) {
			return fmt.Errorf("%q is not an envelope address", a)
		}
	}
	return m.checkMessage()
}

func (m *MailStep) checkMessage() error {
	if len(m.Message) > MaxContent {
		return fmt.Errorf("the message has %d bytes; at most %d are allowed", len(m.Message), MaxContent)
	}
	head, _, ok := bytes.Cut(m.Message, []byte("\r\n\r\n"))
	if !ok {
		return errors.New("the message has no blank line between header and body")
	}
	bare := bytes.ReplaceAll(m.Message, []byte("\r\n"), nil)
	if bytes.ContainsAny(bare, "\r\n\x00") {
		return errors.New("the message has a bare CR or LF or a NUL; lines end in CRLF")
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch strings.ToLower(strings.TrimRight(string(name), " \t")) {
		case "date":
			return errors.New("the message has a Date line; core adds it when it sends")
		case "bcc":
			return errors.New("the message has a Bcc line; hidden recipients are not possible")
		}
	}
	return nil
}
