package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/sdk/effect"
)

// sink is a real mail server that keeps what it accepted.
type sink struct {
	mu       sync.Mutex
	mails    []mail
	password string
	refuse   map[string]*smtp.SMTPError // by verb
}

type mail struct {
	from, user string
	to         []string
	data       []byte
}

type sinkSession struct {
	*sink
	mail
}

func (s *sink) NewSession(*smtp.Conn) (smtp.Session, error) { return &sinkSession{sink: s}, nil }
func (s *sinkSession) AuthMechanisms() []string             { return []string{sasl.Plain} }
func (s *sinkSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != s.password {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}
func (s *sinkSession) fail(verb string) error {
	if e := s.sink.refuse[verb]; e != nil {
		return e
	}
	return nil
}
func (s *sinkSession) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return s.fail("MAIL")
}
func (s *sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return s.fail("RCPT")
}
func (s *sinkSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.fail("DATA"); err != nil {
		return err
	}
	s.data = b
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.mails = append(s.sink.mails, s.mail)
	return nil
}
func (s *sinkSession) Reset()        { s.mail = mail{user: s.user} }
func (s *sinkSession) Logout() error { return nil }

// serveSMTP starts the sink; tlsMode is starttls, implicit or none.
func serveSMTP(t *testing.T, s *sink, tlsMode string) (*Egress, string) {
	t.Helper()
	certs := httptest.NewTLSServer(http.NotFoundHandler()) // only for its certificate
	defer certs.Close()
	server := smtp.NewServer(s)
	server.Domain, server.AllowInsecureAuth = "sink.test", tlsMode == "none"
	server.ErrorLog = discardLog{}
	cfg := &tls.Config{Certificates: certs.TLS.Certificates}
	if tlsMode == "starttls" {
		server.TLSConfig = cfg
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if tlsMode == "implicit" {
		l = tls.NewListener(l, cfg)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	e, err := New(Config{AllowPrivate: []string{address}, RootCAs: certs.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	if err != nil {
		t.Fatal(err)
	}
	return e, address
}

type discardLog struct{}

func (discardLog) Printf(string, ...any) {}
func (discardLog) Println(...any)        {}

const sealedMail = "From: a@example.org\r\nTo: b@example.org\r\nSubject: Hi\r\nMessage-ID: <act_1@example.org>\r\n\r\n.a dot first\r\n..\r\nend\r\n.\r\nafter\r\n"

func mailPlan(address, mode string) plan {
	return plan{key: "act_1", resolved: effect.Resolved{Steps: []effect.ResolvedStep{{Endpoint: "smtp.send",
		Mail: &effect.ResolvedMail{Server: address, TLS: mode, From: "a@example.org", To: []string{"b@example.org"}, Message: []byte(sealedMail)}}}}}
}

func TestMailArrivesAsSealedButForTheDate(t *testing.T) {
	for _, mode := range []string{"starttls", "implicit", "none"} {
		s := &sink{password: "right"}
		e, address := serveSMTP(t, s, mode)
		o := e.send(t.Context(), mailPlan(address, strings.TrimPrefix(mode, "starttls")), NewCredential(nil, map[string]string{"username": "ada", "password": "right"}), Hooks{Connected: func() error {
			if len(s.mails) != 0 {
				t.Error("sent before the mark")
			}
			return nil
		}})
		if o.Event != core.EventReplyOK || len(s.mails) != 1 {
			t.Fatalf("%s: %+v", mode, o)
		}
		got := s.mails[0]
		date, rest, _ := bytes.Cut(got.data, []byte("\r\n"))
		if !bytes.HasPrefix(date, []byte("Date: ")) || string(rest) != sealedMail {
			t.Errorf("%s: message %q", mode, got.data)
		}
		if got.user != "ada" || got.from != "a@example.org" || len(got.to) != 1 || got.to[0] != "b@example.org" {
			t.Errorf("%s: envelope %+v", mode, got)
		}
	}
}

func TestMailFailuresBeforeTheMark(t *testing.T) {
	s := &sink{password: "right"}
	e, address := serveSMTP(t, s, "starttls")
	marks := Hooks{Connected: func() error { t.Error("marked"); return nil }}
	wrong := NewCredential(nil, map[string]string{"username": "ada", "password": "wrong-password"})
	if o := e.send(t.Context(), mailPlan(address, ""), wrong, marks); o.Event != core.EventConnectFailed || o.Code != "auth_failed" || strings.Contains(o.Detail, "wrong-password") {
		t.Errorf("wrong password: %+v", o)
	}
	if o := e.send(t.Context(), mailPlan(address, "implicit"), Credential{}, marks); o.Event != core.EventConnectFailed || o.Code != "tls_failed" {
		t.Errorf("implicit on a clear port: %+v", o)
	}
	unlisted, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if o := unlisted.send(t.Context(), mailPlan(address, ""), Credential{}, marks); o.Event != core.EventRecheckFailed || o.Code != "address_refused" {
		t.Errorf("unlisted: %+v", o)
	}
	if o := unlisted.send(t.Context(), mailPlan("mail.example.com:25", "none"), Credential{}, marks); o.Code != "encryption_required" {
		t.Errorf("none on a public host: %+v", o)
	}
	if o := e.send(t.Context(), mailPlan(address, ""), Credential{}, Hooks{Connected: func() error { return errors.New("no") }}); o.Event != core.EventConnectFailed {
		t.Errorf("no mark: %+v", o)
	}
	if err := e.Probe(t.Context(), address, "", wrong); code(err) != "auth_failed" {
		t.Errorf("probe: %v", err)
	}
	if len(s.mails) != 0 {
		t.Fatalf("%d mails were accepted", len(s.mails))
	}
}

func TestRefusalsAreDefinite(t *testing.T) {
	for verb, want := range map[string]string{"MAIL": "sender_refused", "RCPT": "recipient_refused", "DATA": "message_refused"} {
		for _, number := range []int{451, 550} {
			s := &sink{refuse: map[string]*smtp.SMTPError{verb: {Code: number, Message: "no thanks"}}}
			e, address := serveSMTP(t, s, "starttls")
			o := e.send(t.Context(), mailPlan(address, ""), Credential{}, Hooks{})
			if o.Event != core.EventRefused || o.Code != want || o.Steps[0].Status != number || o.Retryable != (number == 451) || len(s.mails) != 0 {
				t.Errorf("%s %d: %+v", verb, number, o)
			}
		}
	}
}

// TestSilenceAtEachVerb lets a server hang up when it is asked for a verb, or go silent.
func TestSilenceAtEachVerb(t *testing.T) {
	for _, c := range []struct {
		verb  string
		event core.ActionEvent
	}{
		{"greeting", core.EventConnectFailed}, {"EHLO", core.EventConnectFailed}, {"AUTH", core.EventConnectFailed},
		{"MAIL", core.EventRefused}, {"RCPT", core.EventRefused}, {"DATA", core.EventRefused}, {"body", core.EventRefused}, {".", core.EventUncertain},
	} {
		for _, hang := range []bool{false, true} {
			if hang && c.verb == "body" {
				continue // a message this small fits into the buffers of the kernel
			}
			o := playSMTP(t, c.verb, hang)
			if o.Event != c.event {
				t.Errorf("%s, hang %v: %+v, want %s", c.verb, hang, o, c.event)
			}
		}
	}
}

func playSMTP(t *testing.T, failAt string, hang bool) Outcome {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		scriptSMTP(c, failAt, hang, done)
	}()
	e, err := New(Config{AllowPrivate: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	p := mailPlan(l.Addr().String(), "none")
	if failAt == "body" { // larger than what the kernel takes for a closed connection
		p.resolved.Steps[0].Mail.Message = append([]byte("Subject: x\r\n\r\n"), bytes.Repeat([]byte("0123456789\r\n"), 1<<20)...)
	}
	ctx := t.Context()
	if hang {
		short, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		defer cancel()
		ctx = short
	}
	o := e.send(ctx, p, NewCredential(nil, map[string]string{"username": "u", "password": "p"}), Hooks{})
	close(done)
	l.Close()
	<-ended
	return o
}

func scriptSMTP(c net.Conn, failAt string, hang bool, done <-chan struct{}) {
	fail := func() {
		if hang {
			<-done
			return
		}
		reset(c)
	}
	if failAt == "greeting" {
		fail()
		return
	}
	_, _ = io.WriteString(c, "220 hi\r\n")
	r := bufio.NewReader(c)
	answers := map[string]string{"EHLO": "250-x\r\n250 AUTH PLAIN\r\n", "AUTH": "235 ok\r\n", "MAIL": "250 ok\r\n", "RCPT": "250 ok\r\n", "DATA": "354 go\r\n", ".": "250 queued as 42\r\n", "QUIT": "221 bye\r\n"}
	inBody := false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		verb := strings.TrimRight(line, "\r\n")
		if inBody {
			if failAt == "body" {
				fail()
				return
			}
			if verb != "." {
				continue
			}
		} else if len(verb) > 4 {
			verb = verb[:4]
		}
		if verb == failAt {
			fail()
			return
		}
		_, _ = io.WriteString(c, answers[verb])
		inBody = verb == "DATA"
	}
}
