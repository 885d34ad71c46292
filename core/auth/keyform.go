package auth

import (
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/sallyport-dev/sallyport/core"
)

// A key reads spk_<kind>_<id>_<secret>_<crc>: scanners recognise the first part, lists
// show kind and id, the secret holds 243 bits, and the check value catches a mistyped
// key before the database is asked.
const (
	keyMark   = "spk"
	secretLen = 42
	// keyAlphabet leaves out what is misread, and the underscore that parts the fields.
	keyAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"
)

// keyParts are the fields of a key.
type keyParts struct {
	kind   core.APIKeyKind
	id     string // with its prefix key_
	secret string
}

// makeKey draws a secret and writes the key out.
func makeKey(kind core.APIKeyKind, id string) string {
	body := strings.Join([]string{keyMark, string(kind), strings.TrimPrefix(id, core.PrefixKey+"_"), randomText(secretLen)}, "_")
	return body + "_" + checkValue(body)
}

// parseKey takes a key apart and checks form and check value, nothing else.
func parseKey(key string) (keyParts, bool) {
	f := strings.Split(key, "_")
	if len(f) != 5 || f[0] != keyMark || len(f[3]) != secretLen {
		return keyParts{}, false
	}
	kind := core.APIKeyKind(f[1])
	if kind != core.APIKeyKindAgent && kind != core.APIKeyKindService {
		return keyParts{}, false
	}
	id := core.PrefixKey + "_" + f[2]
	if !core.HasPrefix(id, core.PrefixKey) || checkValue(strings.Join(f[:4], "_")) != f[4] {
		return keyParts{}, false
	}
	return keyParts{kind: kind, id: id, secret: f[3]}, true
}

// LooksLikeKey reports whether a credential has the form of a key, true or not.
func LooksLikeKey(credential string) bool { return strings.HasPrefix(credential, keyMark+"_") }

// keyPrefix is what lists show of a key.
func keyPrefix(kind core.APIKeyKind, id string) string {
	id = strings.TrimPrefix(id, core.PrefixKey+"_")
	return fmt.Sprintf("%s_%s_%s", keyMark, kind, id[:min(len(id), 26)])
}

func checkValue(s string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s))) }

// randomText draws n characters of keyAlphabet without bias.
func randomText(n int) string {
	limit := byte(256 - 256%len(keyAlphabet))
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		if _, err := rand.Read(buf[:]); err != nil {
			panic("auth: the system gives no randomness: " + err.Error())
		}
		for _, b := range buf {
			if b < limit && len(out) < n {
				out = append(out, keyAlphabet[int(b)%len(keyAlphabet)])
			}
		}
	}
	return string(out)
}
