package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/mcp/router"
)

// lists keeps the finished answers to bare list requests. The SDK marshals every schema
// for every request, which makes tools/list thirty times slower than sending the same
// bytes. What is kept is the SDK's own answer, taken once per snapshot, so that the two
// cannot differ; whatever is not the plain case goes to the SDK.
type lists struct {
	sdk  http.Handler
	kept atomic.Pointer[map[string]keptList]
}

// keptList is an answer around the id of the request.
type keptList struct{ before, after []byte }

var listMethods = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

func newLists(sdk http.Handler) *lists { return &lists{sdk: sdk} }

// rebuild asks the SDK anew; it runs at every registry swap, after the SDK server follows.
func (l *lists) rebuild() {
	kept := map[string]keptList{}
	for _, method := range listMethods {
		if k, ok := l.ask(method); ok {
			kept[method] = k
		}
	}
	l.kept.Store(&kept)
}

func (l *lists) ask(method string) (keptList, bool) {
	const marker = "0d4c9c1e-id"
	body := `{"jsonrpc":"2.0","id":"` + marker + `","method":"` + method + `"}`
	ctx := contextWithPrincipal(context.Background(), core.Anonymous())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
	if err != nil {
		return keptList{}, false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := &memory{header: http.Header{}, status: http.StatusOK}
	l.sdk.ServeHTTP(w, r)
	before, after, ok := bytes.Cut(w.Bytes(), []byte(strconv.Quote(marker)))
	return keptList{before, after}, ok && w.status == http.StatusOK
}

// memory is a response kept in memory.
type memory struct {
	bytes.Buffer
	header http.Header
	status int
}

func (m *memory) Header() http.Header    { return m.header }
func (m *memory) WriteHeader(status int) { m.status = status }

// serve answers a bare list request; false leaves it to the SDK.
func (l *lists) serve(w http.ResponseWriter, h http.Header, body router.Body) bool {
	m, ok := body.Only()
	if !ok || !plainParams(m.Params) || h.Get("Mcp-Method") != "" {
		return false
	}
	switch h.Get("Mcp-Protocol-Version") {
	case "", "2025-03-26", "2025-06-18", "2025-11-25":
	default:
		return false
	}
	number, ok := m.ID.Raw().(int64)
	kept := l.kept.Load()
	if !ok || kept == nil {
		return false
	}
	k, ok := (*kept)[m.Method]
	if !ok {
		return false
	}
	id := strconv.AppendInt(nil, number, 10)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.Header().Set("Content-Length", strconv.Itoa(len(k.before)+len(id)+len(k.after)))
	w.WriteHeader(http.StatusOK)
	for _, part := range [][]byte{k.before, id, k.after} {
		if _, err := w.Write(part); err != nil {
			return true // the client is gone
		}
	}
	return true
}

func plainParams(params json.RawMessage) bool {
	p := bytes.TrimSpace(params)
	return len(p) == 0 || string(p) == "{}"
}
