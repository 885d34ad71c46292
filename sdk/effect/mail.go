package effect

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
)

// letter is a message as a reader's mail program would decode it.
type letter struct {
	subject string
	headers []Pair
	text    string // the plain part
	html    string // source of the HTML part
	others  []string
}

// read decodes a message for display. What cannot be decoded is reported, never
// guessed: the exact bytes stand beside it in the preview.
func read(message []byte) (*letter, error) {
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	l := &letter{}
	head, _, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	unfolded := strings.NewReplacer("\r\n ", " ", "\r\n\t", " ").Replace(string(head))
	for line := range strings.SplitSeq(unfolded, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		l.headers = append(l.headers, Pair{Name: name, Value: decodeWords(strings.TrimSpace(value))})
	}
	l.subject = decodeWords(m.Header.Get("Subject"))
	if err := l.part(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), "", m.Body, 0); err != nil {
		return nil, err
	}
	return l, nil
}

func decodeWords(s string) string {
	out, err := new(mime.WordDecoder).DecodeHeader(s)
	if err != nil {
		return s
	}
	return out
}

func (l *letter) part(contentType, encoding, name string, body io.Reader, depth int) error {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = "text/plain"
	}
	if strings.HasPrefix(kind, "multipart/") && depth < 5 {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			p, err := parts.NextRawPart()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := l.part(p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p.FileName(), p, depth+1); err != nil {
				return err
			}
		}
	}
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	charset := strings.ToLower(params["charset"])
	readable := slices.Contains([]string{"", "utf-8", "us-ascii"}, charset)
	switch {
	case kind == "text/plain" && readable && l.text == "" && name == "":
		l.text = string(text)
	case kind == "text/html" && readable && l.html == "" && name == "":
		l.html = string(text)
	default:
		l.others = append(l.others, strings.TrimSpace(kind+" "+charset+" "+name))
	}
	return nil
}
