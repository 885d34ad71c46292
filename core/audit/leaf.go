package audit

import (
	"encoding/binary"
	"strings"

	"github.com/sallyport-dev/sallyport/core/store"
)

// leafFormat begins every leaf, so that a later encoding cannot be mistaken for this one.
const leafFormat = "sallyport audit leaf 1"

// leaf encodes what the tree commits to: each part with its length before it, so that
// no two entries have the same bytes.
func leaf(r *store.AuditEntry) []byte {
	var b []byte
	part := func(p []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	number := func(n int64) { part(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	part([]byte(leafFormat))
	number(r.Seq)
	number(r.At.UnixMicro())
	for _, text := range []string{string(r.ActorKind), r.ActorID, r.OnBehalfOf, r.Action, r.Target, string(r.Outcome),
		string(r.WorkspaceID), r.RequestID, r.TraceID} {
		part([]byte(text))
	}
	part(r.DetailsCommit)
	part(r.PersonalCommit)
	return b
}

// clean makes text that both databases keep as it is, and bounds it.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// maxText bounds identifiers and names in entries; callers choose some of them.
const maxText = 500

// sensitive are the names of fields that never belong into the log. They are matched
// as parts of a name, after folding.
var sensitive = []string{"password", "passwd", "secret", "token", "authorization", "cookie", "credential", "apikey", "privatekey", "assertion"}

// redact replaces the values of sensitive fields. Callers have no reason to report
// them; this catches the one that does by mistake.
func redact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			if isSensitive(k) {
				out[k] = "[redacted]"
				continue
			}
			out[k] = redact(inner)
		}
		return out
	case map[string]string:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			out[k] = inner
		}
		return redact(out)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redact(v[i])
		}
		return out
	}
	return v
}

// joints stand between the words of a name.
var joints = strings.NewReplacer("_", "", "-", "", " ", "")

func isSensitive(name string) bool {
	folded := strings.ToLower(joints.Replace(name))
	for _, s := range sensitive {
		if strings.Contains(folded, s) {
			return true
		}
	}
	return false
}
