// Package egress is the only way out of the host: it reads for connectors and for the
// open web, speaks to the hosts core itself needs, and sends what a person approved.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// Limits of one exchange.
const (
	MaxRequestBytes = 1 << 20
	MaxReplyBytes   = 8 << 20
	DefaultTimeout  = 30 * time.Second
	dialTimeout     = 10 * time.Second
	maxHeaderBytes  = 64 << 10
)

// Config of the way out.
type Config struct {
	// AllowPrivate lists host:port pairs in private ranges, and plain-text ones, that may
	// be reached.
	AllowPrivate []string
	// RootCAs replaces the certificate authorities of the system; nil keeps them.
	RootCAs *x509.CertPool
	// Resolver replaces the one of the system; nil keeps it.
	Resolver *net.Resolver
	Clock    core.Clock
	Log      *slog.Logger
}

// Egress reaches the network. It is safe for concurrent use.
type Egress struct {
	guard    *guard
	roots    *x509.CertPool
	resolver *net.Resolver
	reads    *http.Transport
	clock    core.Clock
	log      *slog.Logger
}

// New makes the way out; it fails on an entry of AllowPrivate that is not host:port.
func New(c Config) (*Egress, error) {
	g, err := newGuard(c.AllowPrivate)
	if err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	e := &Egress{guard: g, roots: c.RootCAs, resolver: c.Resolver, clock: c.Clock, log: c.Log}
	e.reads = &http.Transport{
		Proxy:                  nil, // a proxy would dial for us, past the guard
		DialContext:            e.dial,
		TLSClientConfig:        e.tlsConfig(""),
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
	}
	return e, nil
}

// Close drops idle connections.
func (e *Egress) Close() { e.reads.CloseIdleConnections() }

// tlsConfig leaves ServerName to net/http where it is empty.
func (e *Egress) tlsConfig(serverName string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: e.roots, ServerName: serverName, NextProtos: []string{"http/1.1"}}
}

// dial connects to host:port past the guard. Its errors are certain: no byte was sent.
func (e *Egress) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &RefusedError{Target: address, Reason: "it is not host:port"}
	}
	if err := checkHost(host); err != nil && !e.guard.lists(host, port) {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, Resolver: e.resolver, Control: e.guard.control(host, port)}
	conn, err := d.DialContext(ctx, network, address)
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		e.log.Warn("egress refused", "target", refusal.Target, "reason", refusal.Reason)
		return nil, refusal
	}
	return conn, err
}

// secure does the TLS handshake on conn for host.
func (e *Egress) secure(ctx context.Context, conn net.Conn, host string, protocols []string) (*tls.Conn, error) {
	cfg := e.tlsConfig(host)
	cfg.NextProtos = protocols
	secured := tls.Client(conn, cfg)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}
