package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/schemas"
)

// readBody takes the whole body, as long as it is within the operation's limit.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge(limit)
		}
		return nil, core.Errf(core.KindMalformed, "body_incomplete", "The body ended before it was complete. Send it again.")
	}
	return b, nil
}

func tooLarge(limit int64) error {
	return core.Errf(core.KindTooLarge, "body_too_large", "The body is larger than %d KiB, which is the limit here.", limit>>10)
}

// checkBody refuses what the operation does not take: another media type, text that is
// not JSON, a key that stands twice, and what its schema does not allow.
func (op *operation) checkBody(r *http.Request, body []byte) error {
	empty := len(bytes.TrimSpace(body)) == 0
	if op.body == nil {
		if empty || string(bytes.TrimSpace(body)) == "{}" {
			return nil
		}
		return core.Errf(core.KindInvalid, "body_unexpected", "This operation takes no body. Leave it out.")
	}
	if empty {
		if op.bodyRequired {
			return core.Errf(core.KindMalformed, "body_missing", "A body is needed (%s); /openapi.json shows what is in it.", strings.Join(op.media, " or "))
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(op.media, kind) {
		return core.Errf(core.KindUnsupported, "unsupported_media_type", "Send the body with Content-Type: %s.", strings.Join(op.media, " or "))
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return core.Errf(core.KindUnsupported, "unsupported_encoding", "The body must not be compressed (Content-Encoding: %.20q).", enc)
	}
	if kind != mediaJSON {
		return nil
	}
	if err := checkJSON(body); err != nil || op.upload {
		return err
	}
	err = op.body.Validate(body)
	if ve, ok := errors.AsType[*schemas.ValidationError](err); ok {
		return invalid("invalid_body", "The body does not fit: "+summary(ve)+".", ve)
	}
	return err
}

func invalid(code, detail string, ve *schemas.ValidationError) error {
	e := core.Errf(core.KindInvalid, code, "%s", detail)
	for _, issue := range ve.Issues {
		e.Fields = append(e.Fields, core.FieldError{Pointer: issue.Pointer, Message: issue.Message})
	}
	return e
}

func summary(ve *schemas.ValidationError) string {
	const most = 3
	var parts []string
	for i, issue := range ve.Issues {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(ve.Issues)-most))
			break
		}
		where := issue.Pointer
		if where == "" {
			where = "the body"
		}
		parts = append(parts, where+" "+issue.Message)
	}
	return strings.Join(parts, "; ")
}

// maxDepth bounds nesting, which a decoder answers with stack.
const maxDepth = 64

// checkJSON refuses text that is not one JSON value, or that has a key twice: two
// readers of such an object may see different things.
func checkJSON(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := walkValue(dec, nil, 0); err != nil {
		if e, ok := errors.AsType[*core.Error](err); ok {
			return e
		}
		return core.Errf(core.KindMalformed, "malformed_json", "The body is not JSON: it breaks near byte %d.", dec.InputOffset())
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return core.Errf(core.KindMalformed, "malformed_json", "Something follows the JSON value. Send one value.")
	}
	return nil
}

// place is where a value stands. It is spelled out only in errors: an upload has
// millions of places.
type place struct {
	in   *place
	name string
}

func (p *place) pointer() string {
	if p == nil {
		return ""
	}
	return p.in.pointer() + "/" + strings.ReplaceAll(strings.ReplaceAll(p.name, "~", "~0"), "/", "~1")
}

func walkValue(dec *json.Decoder, at *place, depth int) error {
	if depth > maxDepth {
		return core.Errf(core.KindMalformed, "too_deep", "The body is nested deeper than %d levels.", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for i := 0; dec.More(); i++ {
		inner := &place{in: at}
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			inner.name, _ = key.(string)
			if seen[inner.name] {
				e := core.Errf(core.KindMalformed, "duplicate_key", "A key stands twice in the body. Send it once.")
				e.Fields = []core.FieldError{{Pointer: inner.pointer(), Message: "stands twice"}}
				return e
			}
			seen[inner.name] = true
		} else {
			inner.name = strconv.Itoa(i)
		}
		if err := walkValue(dec, inner, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// decode reads the request's body, which was checked before, into out.
func decode(r *http.Request, out any) error {
	body := requestOf(r).body
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return core.Errf(core.KindInvalid, "invalid_body", "The body does not fit the fields of this operation.")
	}
	return nil
}
