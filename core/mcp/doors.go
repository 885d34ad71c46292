package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// doors knows which Host and Origin values may reach the endpoint. Both are checked for
// every bind address: a page on a foreign site can make a browser send requests here, and
// a name that resolves to this machine can make them look local.
type doors struct {
	hosts   []string // names without port, or host:port
	origins []string
}

func newDoors(base string, hosts, origins []string) (*doors, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("mcp: base URL %q is not an http or https address", base)
	}
	d := &doors{
		hosts:   []string{"localhost", "127.0.0.1", "::1", strings.ToLower(u.Hostname())},
		origins: []string{strings.ToLower(u.Scheme + "://" + u.Host)},
	}
	for _, h := range hosts {
		d.hosts = append(d.hosts, strings.ToLower(h))
	}
	for _, o := range origins {
		d.origins = append(d.origins, strings.ToLower(strings.TrimSuffix(o, "/")))
	}
	return d, nil
}

// check refuses foreign hosts and origins.
func (d *doors) check(r *http.Request) *core.Error {
	host := strings.ToLower(r.Host)
	if !slices.Contains(d.hosts, host) && !slices.Contains(d.hosts, nameOf(host)) {
		return core.Errf(core.KindForbidden, "foreign_host", "The Host %q is not served here. Use the public address, or add the host to allowedHosts.", r.Host)
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || !d.allows(strings.ToLower(origins[0]), host) {
		return core.Errf(core.KindForbidden, "foreign_origin", "Pages of the origin %q may not call this address. Add it to allowedOrigins if they should.", origins[0])
	}
	return nil
}

// allows reports whether pages of the origin may call: the public address, what the owner
// listed, and the address the request itself came to.
func (d *doors) allows(origin, host string) bool {
	return slices.Contains(d.origins, origin) || origin == "http://"+host || origin == "https://"+host
}

func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// share lets an allowed page read the answer.
func (d *doors) share(h http.Header, origin string) {
	if origin == "" {
		return
	}
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, X-Request-Id")
}

// preflight answers a browser's question before its request.
func (d *doors) preflight(h http.Header) {
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, X-Api-Key, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "600")
}
