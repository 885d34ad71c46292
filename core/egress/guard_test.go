package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"golang.org/x/net/dns/dnsmessage"
)

func TestRanges(t *testing.T) {
	for _, s := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:7f00:1::",
		"fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "2001:db8::1",
	} {
		if public(netip.MustParseAddr(s)) {
			t.Errorf("%s counts as public", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"} {
		if !public(netip.MustParseAddr(s)) {
			t.Errorf("%s does not count as public", s)
		}
	}
}

// canary counts connections; nothing may reach it.
func canary(t *testing.T, address string) (port string, hits *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no listener on %s: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	hits = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, hits
}

var spellings = []string{
	"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.000.000.001", "0127.0.0.1", "0177.0.0.1", "0177.0.0.01", "0x7f.0.0.1", "0x7f.1", "0x7f000001", "0X7F000001",
	"2130706433", "017700000001", "0", "0.0.0.0", "127.0.0.2", "127.127.127.127", "localhost", "LOCALHOST", "localhost.", "localhost.localdomain",
	"ip6-localhost", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	"①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1", "[::1%25lo]", "[fe80::1%25lo]", "user@127.0.0.1", "127.0.0.1%00.example.com", "%6c%6f%63%61%6c%68%6f%73%74",
}

func TestEverySpellingOfLoopbackIsRefused(t *testing.T) {
	port, hits := canary(t, "127.0.0.1:0")
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spellings {
		for _, scheme := range []string{"https", "http"} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := e.Fetch(ctx, Request{Class: Web, URL: scheme + "://" + s + ":" + port + "/"})
			cancel()
			if err == nil {
				t.Errorf("%s://%s was read", scheme, s)
			}
		}
		// The hook alone must hold too, whatever the checks before it let through.
		host := s
		if len(s) > 2 && s[0] == '[' {
			host = s[1 : len(s)-1]
		}
		d := net.Dialer{Timeout: 5 * time.Second, Control: e.guard.control(host, port)}
		if conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port)); err == nil {
			conn.Close()
			t.Errorf("%s was dialled", s)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d connections reached the loopback listener", n)
	}
	allowed, err := New(Config{AllowPrivate: []string{"127.0.0.1:" + port}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := allowed.dial(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatalf("the listed address is refused: %v", err)
	}
	conn.Close()
}

func TestBadListEntries(t *testing.T) {
	for _, s := range []string{"127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:0", "127.0.0.1:99999", "host:http", ""} {
		if _, err := New(Config{AllowPrivate: []string{s}}); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// flippingDNS answers every A question with the addresses in turn.
func flippingDNS(t *testing.T, answers ...[4]byte) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for n := 0; ; {
			size, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:size]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Header.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body: &dnsmessage.AResource{A: answers[min(n, len(answers)-1)]}}}
				n++
			}
			out, err := m.Pack()
			if err == nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestNamesThatResolveToPrivateAddressesAreRefused(t *testing.T) {
	port, hits := canary(t, "127.0.0.1:0")
	for _, address := range [][4]byte{{127, 0, 0, 1}, {10, 0, 0, 1}, {169, 254, 169, 254}} {
		e, err := New(Config{Resolver: flippingDNS(t, address)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Fetch(t.Context(), Request{Class: Web, URL: fmt.Sprintf("https://rebind.example:%s/", port)})
		if ce, ok := errors.AsType[*core.Error](err); !ok || ce.Code != "address_refused" {
			t.Errorf("%v: got %v, want address_refused", address, err)
		}
	}
	if hits.Load() != 0 {
		t.Fatal("the private address was reached")
	}
}
