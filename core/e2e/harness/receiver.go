package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Delivery is one request that reached a receiver.
type Delivery struct {
	ID     string // webhook-id
	Body   []byte
	SHA256 string // of Body, hex
	// Verified reports whether the signature holds, by the reference library.
	Verified bool
}

// Receiver is a webhook receiver on this machine that keeps what it gets.
type Receiver struct {
	Name, URL, Addr, Secret string
	// Answer, when set, writes the reply after the delivery was recorded.
	Answer func(w http.ResponseWriter, d Delivery)

	mu         sync.Mutex
	deliveries []Delivery
	srv        *http.Server
}

// StartReceiver starts a receiver that verifies with the secret (whsec_…).
func StartReceiver(name, secret string) (*Receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Receiver{Name: name, Secret: secret, Addr: ln.Addr().String(), URL: "http://" + ln.Addr().String() + "/hooks/" + name}
	hook, err := webhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	r.srv = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
		if err != nil {
			return
		}
		sum := sha256.Sum256(body)
		d := Delivery{ID: req.Header.Get("webhook-id"), Body: body, SHA256: hex.EncodeToString(sum[:]), Verified: hook.Verify(body, req.Header) == nil}
		r.mu.Lock()
		r.deliveries = append(r.deliveries, d)
		answer := r.Answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, d)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() { _ = r.srv.Serve(ln) }()
	return r, nil
}

// Close stops the receiver.
func (r *Receiver) Close() { _ = r.srv.Close() }

// Deliveries are the requests so far.
func (r *Receiver) Deliveries() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Delivery(nil), r.deliveries...)
}
