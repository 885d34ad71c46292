package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Mail is one message that reached the mail server.
type Mail struct {
	From string
	To   []string
	Raw  []byte // as received
	// WithoutDate is Raw without its Date line: what was sealed.
	WithoutDate []byte
	// SHA256 of WithoutDate, hex.
	SHA256 string
}

// MailServer is an SMTP server on this machine that keeps what it gets.
type MailServer struct {
	Addr, User, Pass string
	// OnData, when set, runs after the whole message arrived and before the reply; an
	// error is the reply.
	OnData func(Mail) error

	mu    sync.Mutex
	mails []Mail
	srv   *smtp.Server
}

// StartMail starts a mail server that asks for the given user and password.
func StartMail(user, pass string) (*MailServer, error) {
	m := &MailServer{User: user, Pass: pass}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.Addr = ln.Addr().String()
	m.srv = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: m}, nil }))
	m.srv.Domain = "localhost"
	m.srv.AllowInsecureAuth = true
	m.srv.ReadTimeout, m.srv.WriteTimeout = 30*time.Second, 30*time.Second
	go func() { _ = m.srv.Serve(ln) }()
	return m, nil
}

// Close stops the server.
func (m *MailServer) Close() { _ = m.srv.Close() }

// Mails are the messages so far.
func (m *MailServer) Mails() []Mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Mail(nil), m.mails...)
}

type mailSession struct {
	server *MailServer
	authed bool
	from   string
	to     []string
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != s.server.User || pass != s.server.Pass {
			return errors.New("wrong user or password")
		}
		s.authed = true
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.authed {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	mail := Mail{From: s.from, To: append([]string(nil), s.to...), Raw: raw, WithoutDate: withoutDate(raw)}
	sum := sha256.Sum256(mail.WithoutDate)
	mail.SHA256 = hex.EncodeToString(sum[:])
	s.server.mu.Lock()
	s.server.mails = append(s.server.mails, mail)
	hook := s.server.OnData
	s.server.mu.Unlock()
	if hook != nil {
		return hook(mail)
	}
	return nil
}

func (s *mailSession) Reset()        { s.from, s.to = "", nil }
func (s *mailSession) Logout() error { return nil }

// withoutDate removes the Date line of the header.
func withoutDate(raw []byte) []byte {
	head, body, found := bytes.Cut(raw, []byte("\r\n\r\n"))
	var kept [][]byte
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if !bytes.HasPrefix(bytes.ToLower(line), []byte("date:")) {
			kept = append(kept, line)
		}
	}
	out := bytes.Join(kept, []byte("\r\n"))
	if found {
		out = append(append(out, "\r\n\r\n"...), body...)
	}
	return out
}
