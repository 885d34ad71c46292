package core

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Prefixes of identifiers. An identifier is a prefix, an underscore and a ULID,
// so that it sorts by creation and says what it names.
const (
	PrefixRun        = "run"
	PrefixAction     = "act"
	PrefixAsset      = "ast"
	PrefixWorkspace  = "ws"
	PrefixUser       = "usr"
	PrefixKey        = "key"
	PrefixDecision   = "dec"
	PrefixConnection = "con"
	PrefixSnapshot   = "snp"
	PrefixEvent      = "evt"
	PrefixSession    = "ses"
	PrefixDataset    = "dat"
	PrefixHook       = "whk"
	PrefixRequest    = "req"
)

var idEntropy = struct {
	sync.Mutex
	*ulid.MonotonicEntropy
}{MonotonicEntropy: ulid.Monotonic(rand.Reader, 0)}

// NewID makes an identifier with the given prefix at the given time. Identifiers
// made within one millisecond of one process rise strictly.
func NewID(prefix string, at time.Time) string {
	idEntropy.Lock()
	defer idEntropy.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), idEntropy.MonotonicEntropy)
	if err != nil { // the counter within one millisecond is exhausted: fresh randomness keeps ids unique
		id = ulid.MustNew(ulid.Timestamp(at), rand.Reader)
	}
	return prefix + "_" + id.String()
}

// HasPrefix reports whether id looks like an identifier with the prefix. It says
// nothing about whether the thing exists.
func HasPrefix(id, prefix string) bool {
	rest, ok := strings.CutPrefix(id, prefix+"_")
	if !ok {
		return false
	}
	_, err := ulid.ParseStrict(rest)
	return err == nil
}
