package connector

import (
	"bufio"
	"encoding/base64"
	"net"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
)

// listener is a mail server that offers a sign-in and tells what it was sent.
func listener(t *testing.T) (port string, said chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	said = make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = c.Write([]byte("220 mail\r\n"))
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					said <- lines.Text()
					reply := "235 ok\r\n"
					if strings.HasPrefix(lines.Text(), "EHLO") {
						reply = "250-mail\r\n250 AUTH PLAIN\r\n"
					}
					_, _ = c.Write([]byte(reply))
				}
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, said
}

// Who may point a connection elsewhere does not thereby learn the stored password: it
// has to be entered again for another address.
func TestAStoredPasswordStaysWithItsAddress(t *testing.T) {
	good, first := listener(t)
	evil, second := listener(t)
	r := newRig(t, "127.0.0.1:"+good, "127.0.0.1:"+evil)
	fields := map[string]string{"host": "127.0.0.1", "port": good, "tls": "none", "from": "a@example.com", "username": "u", "password": "correct-horse"}
	c, err := r.Put(t.Context(), r.owner, "smtp", Credentials{Fields: fields})
	if err != nil || c.Status != core.ConnectorStatusConnected || len(first) == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, change := range []map[string]string{{"port": evil}, {"port": evil, "username": "v"}, {"tls": "implicit"}, {"host": "LOCALHOST"}} {
		if _, err := r.Put(t.Context(), r.owner, "smtp", Credentials{Fields: change}); code(err) != "invalid_credentials" || core.AsError(err).Fields[0].Pointer != "/fields/password" {
			t.Errorf("%v: %v", change, err)
		}
	}
	for len(second) > 0 {
		line := <-second
		plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "AUTH PLAIN "))
		if strings.Contains(string(plain), "correct-horse") {
			t.Fatal("the stored password went to another server")
		}
	}
	if _, err := r.Put(t.Context(), r.owner, "smtp", Credentials{Fields: map[string]string{"from": "b@example.com"}}); err != nil {
		t.Errorf("the same address: %v", err)
	}
	if _, err := r.Put(t.Context(), r.owner, "smtp", Credentials{Fields: map[string]string{"port": evil, "password": "new"}}); err != nil {
		t.Errorf("with the password: %v", err)
	}
}
