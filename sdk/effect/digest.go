package effect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"time"
)

// domain keeps this hash apart from every other one made of the same bytes.
const domain = "sallyport sealed effect"

// Digest is what a person approves: SHA-256 over the sealed effect and what it rests
// on. Every field is written with its length in front, so that no two different
// effects share an encoding; the bytes that will be sent enter as they are, so that no
// two parsers can disagree about them.
func Digest(s Sealed, b Binding) [32]byte {
	e := encoder{sha256.New()}
	e.text(domain)
	e.number(FormatVersion)
	e.binding(b)
	e.sealed(s)
	return [32]byte(e.h.Sum(nil))
}

// ContentSHA256 is the SHA-256, in hex, of each step's body or message alone: what a
// receiver can compare. It is empty for a manual effect.
func ContentSHA256(s Sealed) []string {
	sums := []string{}
	for _, step := range s.Steps {
		var content []byte
		switch {
		case step.HTTP != nil:
			content = step.HTTP.Body
		case step.Mail != nil:
			content = step.Mail.Message
		}
		sum := sha256.Sum256(content)
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	return sums
}

// encoder writes values so that their borders cannot be confused: texts and lists
// carry their length, numbers have a fixed width, options carry a flag.
type encoder struct{ h hash.Hash }

func (e encoder) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	e.h.Write(b[:])
}

func (e encoder) bytes(b []byte) {
	e.number(int64(len(b)))
	e.h.Write(b)
}

func (e encoder) text(s string) { e.bytes([]byte(s)) }

func (e encoder) texts(list ...string) {
	for _, s := range list {
		e.text(s)
	}
}

func (e encoder) list(items []string) {
	e.number(int64(len(items)))
	e.texts(items...)
}

func (e encoder) numbers(items []int) {
	e.number(int64(len(items)))
	for _, n := range items {
		e.number(int64(n))
	}
}

func (e encoder) pairs(items []Pair) {
	e.number(int64(len(items)))
	for _, p := range items {
		e.texts(p.Name, p.Value)
	}
}

func (e encoder) table(m map[string]string) {
	e.number(int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.texts(k, m[k])
	}
}

func (e encoder) present(ok bool) bool {
	if ok {
		e.number(1)
	} else {
		e.number(0)
	}
	return ok
}

// moment writes a time to the microsecond, which is what every database keeps.
func (e encoder) moment(t time.Time) { e.number(t.UnixMicro()) }

func (e encoder) binding(b Binding) {
	e.texts(b.InstallationID, b.WorkspaceID, b.RunID, b.ActionID)
	e.number(int64(b.Revision))
	e.texts(b.Tool, b.Plugin, b.Connector, b.Channel, b.PluginDigest, b.ManifestDigest, b.ToolDigest, b.InputSHA256)
	c := b.Connection
	e.texts(c.ID, c.Provider, c.Name, c.AccountID, c.Account, c.BaseURL, c.TLS, c.Binding)
	e.number(int64(len(b.Endpoints)))
	for _, p := range b.Endpoints {
		e.texts(p.ID, p.Class, p.Transport, p.Host, p.Method, p.Path)
		e.table(p.PathParams)
		e.list(p.Query)
		e.list(p.Headers)
		e.list(p.Signers)
		e.numbers(p.Definite)
		e.number(int64(p.TimeoutSeconds))
		e.number(int64(p.MaxResponseBytes))
	}
	e.number(int64(len(b.AssetRefs)))
	for _, r := range b.AssetRefs {
		e.text(r.ID)
		e.number(int64(r.Revision))
		e.text(r.Digest)
	}
	e.list(b.EvidenceIDs)
	e.list(b.DependsOn)
	e.texts(b.Supersedes, b.Reversibility, b.Proof)
	e.number(int64(b.Needed))
	e.text(b.IdempotencyKey)
	e.moment(b.NotAfter)
}

func (e encoder) sealed(s Sealed) {
	e.texts(s.Kind, s.Explanation, s.Target.AccountID, s.Target.Label, s.Connection)
	e.number(int64(len(s.Steps)))
	for _, step := range s.Steps {
		e.step(step)
	}
	if m := s.Manual; e.present(m != nil) {
		e.texts(m.Title, m.Text, m.OpenURL)
		e.pairs(m.Fields)
		e.list(m.Checklist)
	}
	e.number(int64(len(s.Preconditions)))
	for _, p := range s.Preconditions {
		e.texts(p.Endpoint, p.Pointer, p.Expected)
		e.table(p.Params)
	}
	if l := s.Lookup; e.present(l != nil) {
		e.texts(l.Endpoint, l.Pointer, l.Marker)
		e.table(l.Params)
	}
	if e.present(s.Money != nil) {
		e.number(s.Money.Micros)
		e.text(s.Money.Currency)
	}
	if e.present(s.NotBefore != nil) {
		e.moment(*s.NotBefore)
	}
	e.number(int64(s.Reach))
}

func (e encoder) step(s Step) {
	e.text(s.Endpoint)
	if h := s.HTTP; e.present(h != nil) {
		e.table(h.PathParams)
		e.pairs(h.Query)
		e.pairs(h.Headers)
		e.bytes(h.Body)
		e.text(h.IdempotencyHeader)
	}
	if m := s.Mail; e.present(m != nil) {
		e.text(m.From)
		e.list(m.To)
		e.bytes(m.Message)
	}
	e.numbers(s.Success.Statuses)
	e.texts(s.Success.Pointer, s.Success.Value)
	e.number(int64(len(s.Captures)))
	for _, c := range s.Captures {
		e.texts(c.Name, c.Pointer, c.Header, c.Pattern)
		e.number(int64(c.MaxLength))
	}
	e.texts(s.Result.IDPointer, s.Result.URLPointer, s.Result.IDHeader)
}
