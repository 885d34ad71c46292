package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/sallyport-dev/sallyport/core"
)

// Limits of passwords. The upper one keeps hashing cheap for us, not for attackers.
const (
	MinPassword = 10
	MaxPassword = 1024
)

// Hashing is the cost of argon2id. Stored hashes carry their own, so that it can be
// raised; a hash of lower cost is renewed at the next sign-in.
type Hashing struct {
	MemoryKiB uint32
	Passes    uint32
	Lanes     uint8
}

// DefaultHashing takes some tens of milliseconds and 32 MiB on a small server.
var DefaultHashing = Hashing{MemoryKiB: 32 << 10, Passes: 3, Lanes: 1}

const (
	saltBytes = 16
	hashBytes = 32
	// A stored hash may come from an imported database: these bound what it can cost.
	maxMemoryKiB = 1 << 20
	maxPasses    = 64
)

// hasher runs argon2id for a few callers at a time: each takes tens of MiB, and
// sign-in is open to everybody.
type hasher struct {
	cost  Hashing
	slots chan struct{}
	dummy string // hash compared with when there is no such account, so that both take as long
}

func newHasher(cost Hashing) (*hasher, error) {
	if cost == (Hashing{}) {
		cost = DefaultHashing
	}
	h := &hasher{cost: cost, slots: make(chan struct{}, max(2, runtime.NumCPU()))}
	var err error
	h.dummy, err = h.hash(context.Background(), rand.Text())
	return h, err
}

func (h *hasher) enter(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hash returns the password's argon2id hash in PHC string form.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer func() { <-h.slots }()
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	sum := argon2.IDKey([]byte(password), salt, h.cost.Passes, h.cost.MemoryKiB, h.cost.Lanes, hashBytes)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.MemoryKiB, h.cost.Passes, h.cost.Lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)), nil
}

// verify compares in constant time. An empty stored hash stands for an account that
// does not exist or cannot sign in with a password; it takes as long and never fits.
func (h *hasher) verify(ctx context.Context, stored, password string) (ok, weak bool, err error) {
	known := stored != ""
	if !known {
		stored = h.dummy
	}
	cost, salt, want, err := parsePHC(stored)
	if err != nil {
		return false, false, err
	}
	if err := h.enter(ctx); err != nil {
		return false, false, err
	}
	defer func() { <-h.slots }()
	got := argon2.IDKey([]byte(password), salt, cost.Passes, cost.MemoryKiB, cost.Lanes, uint32(len(want)))
	ok = subtle.ConstantTimeCompare(got, want) == 1 && known
	return ok, cost.MemoryKiB < h.cost.MemoryKiB || cost.Passes < h.cost.Passes, nil
}

func parsePHC(s string) (cost Hashing, salt, sum []byte, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return cost, nil, nil, fmt.Errorf("stored password hash has an unknown form")
	}
	if _, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &cost.MemoryKiB, &cost.Passes, &cost.Lanes); err != nil {
		return cost, nil, nil, fmt.Errorf("stored password hash: %w", err)
	}
	if cost.MemoryKiB < 8 || cost.MemoryKiB > maxMemoryKiB || cost.Passes < 1 || cost.Passes > maxPasses || cost.Lanes < 1 {
		return cost, nil, nil, fmt.Errorf("stored password hash has parameters out of bounds")
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return cost, nil, nil, fmt.Errorf("stored password hash: %w", err)
	}
	if sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return cost, nil, nil, fmt.Errorf("stored password hash: %w", err)
	}
	if len(salt) < 8 || len(sum) < 16 || len(sum) > 128 {
		return cost, nil, nil, fmt.Errorf("stored password hash has salt or sum of a wrong length")
	}
	return cost, salt, sum, nil
}

// checkPassword refuses passwords that are too short, too long, not text, or the
// account's own name.
func checkPassword(password, email string) error {
	problem := ""
	local, _, _ := strings.Cut(email, "@")
	switch {
	case utf8.RuneCountInString(password) < MinPassword:
		problem = fmt.Sprintf("needs at least %d characters", MinPassword)
	case len(password) > MaxPassword:
		problem = fmt.Sprintf("has more than %d bytes", MaxPassword)
	case !utf8.ValidString(password):
		problem = "is not valid text"
	case strings.EqualFold(password, email) || strings.EqualFold(password, local):
		problem = "is the account's own name"
	case strings.Count(password, password[:1]) == len(password):
		problem = "is one character repeated"
	}
	if problem == "" {
		return nil
	}
	e := core.Errf(core.KindInvalid, "weak_password", "The password %s. Choose a longer phrase.", problem)
	e.Fields = []core.FieldError{{Pointer: "/password", Message: problem}}
	return e
}
