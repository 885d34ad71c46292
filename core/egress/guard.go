package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// refused are ranges that never are a public host of somebody else. Anything that is
// not global unicast is refused besides.
var refused = func() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // a cloud's machine service on a public address
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
		"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}()

// public reports whether an address may be reached without being listed.
func public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(refused, func(p netip.Prefix) bool { return p.Contains(a) })
}

// RefusedError says that an address must not be reached. It is certain that nothing
// was sent.
type RefusedError struct{ Target, Reason string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is refused: %s. An address in a private network can be reached only when the owner lists its host:port in egress.allowPrivate", e.Target, e.Reason)
}

// guard decides which addresses may be dialled.
type guard struct{ listed map[string]bool }

// newGuard reads host:port pairs; "[::1]:25" for IPv6.
func newGuard(allow []string) (*guard, error) {
	g := &guard{listed: map[string]bool{}}
	for _, entry := range allow {
		host, port, err := net.SplitHostPort(strings.TrimSpace(entry))
		if n, perr := strconv.Atoi(port); err != nil || host == "" || perr != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("egress.allowPrivate: %q is not host:port", entry)
		}
		g.listed[target(host, port)] = true
	}
	return g, nil
}

func target(host, port string) string {
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(host, ".")), port)
}

// lists reports whether the owner listed the host and port as they were typed.
func (g *guard) lists(host, port string) bool { return g.listed[target(host, port)] }

// control is the last word before a socket connects: it sees the resolved address, so
// no spelling of a name or number and no change of a DNS answer gets past it.
func (g *guard) control(host, port string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return &RefusedError{Target: address, Reason: "it is not an address and port"}
		}
		resolved := net.JoinHostPort(at.Addr().Unmap().String(), strconv.Itoa(int(at.Port())))
		if g.lists(host, port) || g.listed[resolved] || public(at.Addr()) {
			return nil
		}
		return &RefusedError{Target: net.JoinHostPort(host, port), Reason: "it leads to " + at.Addr().String() + ", which is not a public address"}
	}
}

// checkHost refuses host names that different readers understand differently: letters
// outside ASCII, user information, and numbers that only some resolvers take for an
// address.
func checkHost(host string) error {
	bad := func(reason string) error { return &RefusedError{Target: strconv.Quote(host), Reason: reason} }
	if host == "" || len(host) > 253 {
		return bad("it is not a host name")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return bad("an address with a zone is local")
		}
		return nil // the control hook judges it
	}
	for _, r := range host {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
		default:
			return bad("a host name has ASCII letters, digits, - and . only")
		}
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := strings.ToLower(labels[len(labels)-1])
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		return bad("it is a number that some resolvers read as an address")
	}
	return nil
}
