package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// smtpSession is one signed-in connection to a mail server.
type smtpSession struct {
	conn       net.Conn
	text       *textproto.Conn
	extensions map[string]string
	encrypted  bool
}

// dialSMTP connects, starts TLS and signs in. Its failures are certain: the effect has
// not begun.
func (e *Egress) dialSMTP(ctx context.Context, address, mode string, c Credential) (*smtpSession, *Outcome) {
	fail := func(o Outcome) (*smtpSession, *Outcome) { return nil, &o }
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fail(cannotSend("invalid_connection", "%q is not host:port. Connect the mail server again.", address))
	}
	listed := e.guard.lists(host, port)
	if mode == "" {
		mode = "starttls"
	}
	if mode == "none" && !listed {
		return fail(cannotSend("encryption_required", "%s would be reached without encryption. Use starttls or implicit, or list it in egress.allowPrivate.", address))
	}
	conn, err := e.dial(ctx, "tcp", address)
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		return fail(cannotSend("address_refused", "%v.", refusal))
	}
	if err != nil {
		return fail(connectFailed("unreachable", "%s could not be reached: %s.", address, plainError(err)))
	}
	s := &smtpSession{conn: conn}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if mode == "implicit" {
		secured, err := e.secure(ctx, conn, host, nil)
		if err != nil {
			return fail(connectFailed("tls_failed", "%s did not agree on TLS: %s.", address, plainError(err)))
		}
		s.conn, s.encrypted = secured, true
	}
	if o := s.open(ctx, e, host, mode, listed); o != nil {
		s.conn.Close()
		return nil, o
	}
	if o := s.signIn(host, c, listed); o != nil {
		s.conn.Close()
		return nil, o
	}
	return s, nil
}

// open reads the greeting, says hello and starts TLS.
func (s *smtpSession) open(ctx context.Context, e *Egress, host, mode string, listed bool) *Outcome {
	s.text = textproto.NewConn(s.conn)
	if _, _, err := s.text.ReadResponse(220); err != nil {
		o := connectFailed("greeting_refused", "The mail server %s refused the connection: %s.", host, smtpText(err))
		return &o
	}
	if err := s.hello(); err != nil {
		o := connectFailed("greeting_refused", "The mail server %s refused the greeting: %s.", host, smtpText(err))
		return &o
	}
	if mode != "starttls" {
		return nil
	}
	if _, offered := s.extensions["STARTTLS"]; !offered {
		if listed { // the owner named this server in a private network
			return nil
		}
		o := connectFailed("starttls_missing", "The mail server %s offers no STARTTLS. Use tls implicit (port 465) or another server.", host)
		return &o
	}
	if _, err := s.command(220, "STARTTLS"); err != nil {
		o := connectFailed("tls_failed", "The mail server %s refused STARTTLS: %s.", host, smtpText(err))
		return &o
	}
	if s.text.R.Buffered() > 0 { // bytes sent before the handshake could pass for ones after it
		o := connectFailed("tls_failed", "The mail server %s sent data before the TLS handshake.", host)
		return &o
	}
	secured, err := e.secure(ctx, s.conn, host, nil)
	if err != nil {
		o := connectFailed("tls_failed", "The mail server %s did not agree on TLS: %s.", host, plainError(err))
		return &o
	}
	s.conn, s.encrypted, s.text = secured, true, textproto.NewConn(secured)
	if err := s.hello(); err != nil { // what was offered in the clear does not count
		o := connectFailed("greeting_refused", "The mail server %s refused the greeting: %s.", host, smtpText(err))
		return &o
	}
	return nil
}

func (s *smtpSession) hello() error {
	s.extensions = map[string]string{}
	text, err := s.command(250, "EHLO localhost")
	if err != nil {
		_, err = s.command(250, "HELO localhost")
		return err
	}
	for _, line := range strings.Split(text, "\n")[1:] {
		name, args, _ := strings.Cut(line, " ")
		s.extensions[strings.ToUpper(name)] = args
	}
	return nil
}

// signIn uses PLAIN, else LOGIN. Without a user name nothing is done.
func (s *smtpSession) signIn(host string, c Credential, listed bool) *Outcome {
	user, password := c.get("username"), c.get("password")
	if user == "" {
		return nil
	}
	fail := func(code, format string, args ...any) *Outcome {
		o := connectFailed(code, format, args...)
		return &o
	}
	if !s.encrypted && !listed {
		return fail("auth_unsupported", "The password would go to %s without encryption.", host)
	}
	mechanisms := strings.Fields(strings.ToUpper(s.extensions["AUTH"]))
	b64 := base64.StdEncoding.EncodeToString
	var err error
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		_, err = s.command(235, "AUTH PLAIN "+b64([]byte("\x00"+user+"\x00"+password)))
	case slices.Contains(mechanisms, "LOGIN"):
		if _, err = s.command(334, "AUTH LOGIN"); err == nil {
			if _, err = s.command(334, b64([]byte(user))); err == nil {
				_, err = s.command(235, b64([]byte(password)))
			}
		}
	default:
		return fail("auth_unsupported", "The mail server %s offers no sign-in by PLAIN or LOGIN.", host)
	}
	if err != nil {
		text := string(redact([]byte(smtpText(err)), c.secrets()))
		if protocol, ok := errors.AsType[*textproto.Error](err); !ok || protocol.Code < 500 {
			return fail("auth_unavailable", "The mail server %s could not check the sign-in: %s.", host, text)
		}
		return fail("auth_failed", "The mail server %s refused user name and password: %s. Enter them again.", host, text)
	}
	return nil
}

// command sends one line and awaits a code.
func (s *smtpSession) command(expect int, line string) (string, error) {
	if err := s.text.PrintfLine("%s", line); err != nil {
		return "", err
	}
	_, text, err := s.text.ReadResponse(expect)
	return text, err
}

// send hands over one message. Until the line that ends the message is written the
// server must not deliver it, so failures before are definite; after it, silence is
// uncertain.
func (s *smtpSession) send(m effect.ResolvedMail, date time.Time, hooks Hooks, secrets []string) result {
	from := "MAIL FROM:<" + m.From + ">"
	if bytes.ContainsFunc(m.Message, func(r rune) bool { return r > 0x7e }) {
		if _, ok := s.extensions["8BITMIME"]; !ok {
			return refusedResult("unsupported_message", 0, "The message holds 8-bit text and the server takes 7-bit text only.")
		}
		from += " BODY=8BITMIME"
	}
	for _, verb := range append([]string{from}, recipients(m.To)...) {
		if _, err := s.command(25, verb); err != nil {
			return s.refuse(verb[:4], err, secrets)
		}
	}
	if _, err := s.command(354, "DATA"); err != nil {
		return s.refuse("DATA", err, secrets)
	}
	if err := s.body(m.Message, date); err != nil {
		return refusedResult("connection_lost", 0, "The connection ended before the message was complete; the server drops such a message.")
	}
	end := ".\r\n"
	if _, err := io.WriteString(s.conn, end); err != nil {
		return uncertainResult("connection_lost", 0, "The connection ended while the message was being finished.")
	}
	hooks.written()
	code, text, err := s.text.ReadResponse(250)
	text = string(redact([]byte(text), secrets))
	if err == nil {
		return result{event: core.EventReplyOK, status: code, reply: clip(text), id: queueID(text)}
	}
	if _, ok := errors.AsType[*textproto.Error](err); ok && code >= 400 {
		r := refusedResult("message_refused", code, fmt.Sprintf("The mail server refused the message: %d %s.", code, clip(text)))
		r.reply, r.retryable = clip(text), code < 500
		return r
	}
	return uncertainResult("no_reply", 0, "The mail server did not answer after it had the whole message.")
}

func recipients(to []string) []string {
	var out []string
	for _, a := range to {
		out = append(out, "RCPT TO:<"+a+">")
	}
	return out
}

// refuse is the definite end before the message: it resets the session so that nothing
// half-done stays behind.
func (s *smtpSession) refuse(verb string, err error, secrets []string) result {
	if protocol, ok := errors.AsType[*textproto.Error](err); ok {
		_, _ = s.command(250, "RSET")
		text := clip(string(redact([]byte(protocol.Msg), secrets)))
		codes := map[string]string{"MAIL": "sender_refused", "RCPT": "recipient_refused", "DATA": "message_refused"}
		r := refusedResult(codes[verb], protocol.Code, fmt.Sprintf("The mail server answered %d %s to %s; nothing was sent.", protocol.Code, text, verb))
		r.reply, r.retryable = text, protocol.Code < 500
		return r
	}
	r := refusedResult("connection_lost", 0, "The connection ended before the message was handed over; nothing was sent.")
	r.retryable = true
	return r
}

// body writes the Date line, which is core's own, and the message as sealed, with
// leading dots doubled as the protocol asks.
func (s *smtpSession) body(message []byte, date time.Time) error {
	var b bytes.Buffer
	b.WriteString("Date: " + date.UTC().Format(time.RFC1123Z) + "\r\n")
	for _, line := range bytes.SplitAfter(message, []byte("\r\n")) {
		if len(line) > 0 && line[0] == '.' {
			b.WriteByte('.')
		}
		b.Write(line)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\r\n")) {
		b.WriteString("\r\n")
	}
	_, err := s.conn.Write(b.Bytes())
	return err
}

// quit ends the session politely; the outcome is already known.
func (s *smtpSession) quit() {
	_ = s.text.PrintfLine("QUIT")
	s.conn.Close()
}

var queued = regexp.MustCompile(`(?i)queued as ([!-~]+)`)

// queueID finds the name under which many servers say that they queued the message.
func queueID(text string) string {
	m := queued.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return strings.Trim(m[1], ".,;()<>")
}

func smtpText(err error) string {
	if protocol, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Sprintf("%d %s", protocol.Code, clip(protocol.Msg))
	}
	return plainError(err)
}

// plainError shortens a network error to its cause.
func plainError(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err.Error()
	}
	return clip(err.Error())
}

// clip keeps the start of a foreign text on one line.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}
