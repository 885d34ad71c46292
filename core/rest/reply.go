package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/core"
)

// writeJSON writes v. A value that cannot be marshalled is a fault of the program.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

func reply(w http.ResponseWriter, v any) error {
	writeJSON(w, http.StatusOK, "application/json", v)
	return nil
}

// goTo sends a browser to a page of this installation.
func (s *server) goTo(w http.ResponseWriter, page string) {
	w.Header().Set("Location", s.BaseURL+page)
	w.WriteHeader(http.StatusSeeOther)
}

// replyTagged writes a resource with its ETag: the digest that decisions name, a dot,
// and a hash of the representation. The digest alone would be the same before and
// after a send, and a caller that polls with If-None-Match would never see the outcome.
func replyTagged(w http.ResponseWriter, r *http.Request, digest string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	tag := `"` + digest + "." + hex.EncodeToString(sum[:6]) + `"`
	w.Header().Set("ETag", tag)
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(append(b, '\n'))
	return nil
}

func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}

// digestOf reads the digest that a decision or an edit names: the one in the body, or
// the part of If-Match before the dot. Empty when none is named.
func digestOf(r *http.Request, fromBody *string) (string, error) {
	header := strings.TrimSpace(r.Header.Get("If-Match"))
	named := ""
	if header != "" && header != "*" {
		tag, ok := strings.CutPrefix(header, `"`)
		tag, closed := strings.CutSuffix(tag, `"`)
		named, _, _ = strings.Cut(tag, ".")
		if !ok || !closed || strings.Contains(tag, `"`) || named == "" {
			return "", core.Errf(core.KindMalformed, "malformed_if_match", "If-Match takes one strong ETag in quotes, as the ETag header gave it.")
		}
	}
	if fromBody == nil || *fromBody == "" {
		return named, nil
	}
	if named != "" && named != *fromBody {
		return "", core.Errf(core.KindMalformed, "two_digests", "If-Match and expectedDigest name different digests. Name one.")
	}
	return *fromBody, nil
}

// query reads the parameters that all lists share; openapi.json has checked which of
// them the operation knows.
func query(r *http.Request) (core.Query, error) {
	v := r.URL.Query()
	q := core.Query{Cursor: v.Get("cursor"), RunID: v.Get("runId"), Status: v.Get("status")}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > core.MaxLimit {
			return q, badParameter("limit", "must be a whole number from 1 to "+strconv.Itoa(core.MaxLimit))
		}
		q.Limit = n
	}
	if text := v.Get("since"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return q, badParameter("since", "must be a time such as 2026-01-31T08:00:00Z")
		}
		q.Since = at.UTC()
	}
	return q, nil
}

func badParameter(name, message string) error {
	e := core.Errf(core.KindInvalid, "invalid_parameter", "The parameter %s %s.", name, message)
	e.Fields = []core.FieldError{{Pointer: "/" + name, Message: message}}
	return e
}

// replyPage writes one page of a list under its name, and the way to the next one.
func replyPage[T any](w http.ResponseWriter, r *http.Request, s *server, name string, page core.Page[T]) error {
	items := page.Items
	if items == nil {
		items = []T{}
	}
	body := map[string]any{name: items}
	if page.NextCursor != "" {
		body["nextCursor"] = page.NextCursor
		v := r.URL.Query()
		v.Set("cursor", page.NextCursor)
		next := url.URL{Path: r.URL.Path, RawQuery: v.Encode()}
		w.Header().Set("Link", "<"+s.BaseURL+next.RequestURI()+`>; rel="next"`)
	}
	return reply(w, body)
}

// recorder keeps a copy of the reply.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.body.Write(b)
	return w.ResponseWriter.Write(b)
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// without drops a top-level field of a JSON object.
func without(body []byte, field string) []byte {
	if field == "" {
		return body
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal(body, &doc) != nil {
		return nil
	}
	delete(doc, field)
	b, err := json.Marshal(doc)
	if err != nil {
		return nil
	}
	return append(b, '\n')
}
