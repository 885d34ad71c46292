package smtp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sdk"
)

// message is one e-mail before it is written down.
type message struct {
	id       string // action id; the marker in Message-ID
	from, to *mail.Address
	replyTo  *mail.Address
	subject  string
	text     string
	html     string
	headers  map[string]string
	unsubURL string
}

// reserved are header names a caller may not set: they route the message, describe its
// body, or are added by core.
var reserved = []string{"date", "message-id", "from", "sender", "to", "cc", "bcc", "reply-to", "subject", "mime-version", "received",
	"return-path", "dkim-signature", "authentication-results", "list-unsubscribe", "list-unsubscribe-post"}

// bytes writes the message with CRLF line ends and without Date. The same message
// always gives the same bytes: nothing in it depends on time or chance.
func (m *message) bytes() []byte {
	var b bytes.Buffer
	header(&b, "From", m.from.String())
	header(&b, "To", m.to.String())
	if m.replyTo != nil {
		header(&b, "Reply-To", m.replyTo.String())
	}
	header(&b, "Subject", mime.QEncoding.Encode("utf-8", m.subject))
	header(&b, "Message-ID", fmt.Sprintf("<%s@%s>", m.id, domainOf(m.from.Address)))
	if m.unsubURL != "" {
		header(&b, "List-Unsubscribe", "<"+m.unsubURL+">")
		header(&b, "List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	names := make([]string, 0, len(m.headers))
	for name := range m.headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		header(&b, name, mime.QEncoding.Encode("utf-8", m.headers[name]))
	}
	header(&b, "MIME-Version", "1.0")
	if m.html == "" {
		part(&b, "text/plain", m.text)
		return b.Bytes()
	}
	sum := sha256.Sum256([]byte("boundary " + m.id))
	// "=_" cannot stand in a quoted-printable body, so the boundary never occurs in a part.
	boundary := "=_" + hex.EncodeToString(sum[:15])
	header(&b, "Content-Type", `multipart/alternative; boundary="`+boundary+`"`)
	b.WriteString("\r\n")
	for _, p := range []struct{ kind, body string }{{"text/plain", m.text}, {"text/html", m.html}} {
		b.WriteString("--" + boundary + "\r\n")
		part(&b, p.kind, p.body)
		b.WriteString("\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.Bytes()
}

func part(b *bytes.Buffer, kind, body string) {
	header(b, "Content-Type", kind+"; charset=utf-8")
	header(b, "Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	w := quotedprintable.NewWriter(b) // writes CRLF for every line end; a Buffer never fails
	_, _ = w.Write([]byte(strings.ReplaceAll(body, "\n", "\r\n")))
	_ = w.Close()
}

// header writes one header, folded at spaces so that lines stay within 78 columns
// where the value has spaces. An encoded word may go to the second line, because it
// fills a line of its own.
func header(b *bytes.Buffer, name, value string) {
	column, _ := b.WriteString(name + ":")
	for _, word := range strings.Split(value, " ") {
		first := column == len(name)+1
		if column+1+len(word) > 76 && word != "" && (!first || strings.HasPrefix(word, "=?")) {
			b.WriteString("\r\n")
			column = 0
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\r\n")
}

// address parses one address. Core's mail transport is plain ASCII, so an address with
// other letters is refused instead of being changed.
func address(pointer, text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return nil, field(pointer, "is not one e-mail address")
	}
	for _, r := range a.Address {
		if r > 0x7e || r <= ' ' || r == '<' || r == '>' {
			return nil, field(pointer, "must be an ASCII address; write an international domain as xn--…")
		}
	}
	if strings.ContainsAny(a.Name, "\r\n") {
		return nil, field(pointer, "must be one line")
	}
	return a, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func field(pointer, message string) error {
	return &sdk.Failure{Code: "invalid_input", Message: strings.TrimPrefix(pointer, "/") + " " + message + ".",
		Fields: []sdk.FieldError{{Pointer: pointer, Message: message}}}
}

// checkHeaders refuses names that are not header names, reserved names and values with
// line breaks, which would start a header of their own.
func checkHeaders(headers map[string]string) error {
	for name, value := range headers {
		pointer := "/headers/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
		lower := strings.ToLower(name)
		if name == "" || len(name) > 76 || strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > 0x7e || r == ':' }) >= 0 {
			return field(pointer, "is not a header name")
		}
		if slices.Contains(reserved, lower) || strings.HasPrefix(lower, "content-") || strings.HasPrefix(lower, "resent-") {
			return field(pointer, "is set by the service and cannot be given")
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return field(pointer, "must be one line")
		}
	}
	return nil
}
