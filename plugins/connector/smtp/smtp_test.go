package smtp

import (
	"bytes"
	"context"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sdk"
	"github.com/sallyport-dev/sallyport/sdk/sdktest"
)

var connected = sdktest.WithConnections(sdk.Connection{Provider: "smtp", Status: "connected", Account: "ada@example.org",
	Fields: map[string]string{"from": "Ädä Lovelace <ada@example.org>", "host": "mail.example.org", "port": "587"}})

func TestMessageReadsBackAsWritten(t *testing.T) {
	const text = "Grüße,\n.dot line\n\nFrom here on a very long line " + "that goes on and on and on and on and on and on and on and on and on and on.\n"
	const html = "<p>Grüße</p>\n"
	subject := "Ein Betreff mit Umlauten: äöü, und lang genug, dass er über mehrere Zeilen gefaltet werden muss"
	r := sdktest.New(t, Plugin(), connected).Call("smtp_send", map[string]any{"to": "Grace <grace@example.com>", "subject": subject, "text": text, "html": html,
		"headers": map[string]string{"X-Campaign": "läunch", "X-A": "1"}, "unsubscribeUrl": "https://example.org/u?id=1"})
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	step := r.Sealed.Steps[0].Mail
	if step.From != "ada@example.org" || len(step.To) != 1 || step.To[0] != "grace@example.com" {
		t.Errorf("envelope %+v", step)
	}
	raw := step.Message
	if bare := bytes.ReplaceAll(raw, []byte("\r\n"), nil); bytes.ContainsAny(bare, "\r\n") {
		t.Error("bare line ends")
	}
	for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if len(line) > 78 || bytes.ContainsFunc(line, func(r rune) bool { return r > 0x7e }) {
			t.Errorf("line %q", line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	dec := new(mime.WordDecoder)
	got, err := dec.DecodeHeader(m.Header.Get("Subject"))
	if err != nil || got != subject {
		t.Errorf("subject %q, %v", got, err)
	}
	if m.Header.Get("Date") != "" || !strings.HasSuffix(m.Header.Get("Message-ID"), "@example.org>") || m.Header.Get("List-Unsubscribe") != "<https://example.org/u?id=1>" {
		t.Errorf("header %v", m.Header)
	}
	from, err := m.Header.AddressList("From")
	if err != nil || from[0].Name != "Ädä Lovelace" {
		t.Errorf("from %v, %v", from, err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatal(kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []string{text, html} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil || strings.ReplaceAll(strings.TrimSpace(string(b)), "\r\n", "\n") != strings.TrimSpace(want) {
			t.Errorf("part %q, %v; want %q", b, err, want)
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Errorf("more parts: %v", err)
	}
}

func TestSameCallSameBytes(t *testing.T) {
	call := func(id, subject string) []byte {
		c := &sdk.Call{ActionID: id, Input: []byte(`{"to":"a@example.com","subject":"` + subject + `","text":"x","html":"<b>x</b>","headers":{"X-B":"2","X-A":"1","X-C":"3"}}`),
			Connection: &sdk.Connection{Status: "connected", Fields: map[string]string{"from": "b@example.org"}}}
		s, err := compile(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return s.Steps[0].Mail.Message
	}
	first := call("act_1", "s")
	for range 50 {
		if !bytes.Equal(first, call("act_1", "s")) {
			t.Fatal("the same call gave other bytes")
		}
	}
	if bytes.Equal(first, call("act_2", "s")) || bytes.Equal(first, call("act_1", "t")) {
		t.Error("another call gave the same bytes")
	}
}

func TestBadInputNamesTheField(t *testing.T) {
	h := sdktest.New(t, Plugin(), connected)
	good := func(change string, v any) map[string]any {
		return map[string]any{"to": "a@example.com", "subject": "s", "text": "t", change: v}
	}
	for pointer, in := range map[string]map[string]any{
		"/to":                   good("to", "a@example.com, b@example.com"),
		"/from":                 good("from", "no address"),
		"/replyTo":              good("replyTo", "x <x@exämple.com>"),
		"/subject":              good("subject", "Hi\r\nBcc: evil@example.com"),
		"/headers/Bcc":          good("headers", map[string]string{"Bcc": "evil@example.com"}),
		"/headers/bcc ":         good("headers", map[string]string{"bcc ": "evil@example.com"}),
		"/headers/X-A":          good("headers", map[string]string{"X-A": "1\r\nBcc: evil@example.com"}),
		"/headers/Content-Type": good("headers", map[string]string{"Content-Type": "text/html"}),
		"/headers/Date":         good("headers", map[string]string{"Date": "now"}),
	} {
		r := h.Call("smtp_send", in)
		if r.Failure == nil || len(r.Failure.Fields) == 0 || r.Failure.Fields[0].Pointer != pointer {
			t.Errorf("%s: %+v", pointer, r.Failure)
		}
	}
}

func TestWithoutConnectionAPersonSends(t *testing.T) {
	r := sdktest.New(t, Plugin()).Call("smtp_send", map[string]any{"to": "a@example.com", "subject": "s", "text": "the text"})
	if r.Failure != nil || len(r.Sealed.Steps) != 0 || r.Sealed.Manual == nil || r.Sealed.Manual.Text != "the text" {
		t.Fatalf("%+v %+v", r.Failure, r.Sealed)
	}
}
