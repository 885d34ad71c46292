// Package secret keeps what must not be read in the database: it seals values under
// keys that stand outside it, signs core's own records, and gives secrets a type that
// never prints. There is one key-encryption key (KEK), 32 bytes, from which the other
// keys are derived, and one key that signs checkpoints of the audit log.
package secret

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Environment variables that stand in for the files of the key directory. With _FILE
// appended they name a file.
const (
	EnvKEK      = "SALLYPORT_KEK"
	EnvAuditKey = "SALLYPORT_AUDIT_KEY"
)

const keySize = 32

// signerName stands in the checkpoints of the audit log.
const signerName = "sallyport-audit"

// Keeper holds the keys of an installation. It is safe for concurrent use.
type Keeper struct {
	keks     []kek // the current one first; older ones still open what they sealed
	signer   note.Signer
	verifier string
}

type kek struct {
	id  string
	key []byte
}

// Open loads the keys: the KEK from SALLYPORT_KEK or SALLYPORT_KEK_FILE, else from the
// file kek of the directory; the audit key likewise from SALLYPORT_AUDIT_KEY or the
// file audit. Files that are missing are made, readable by their owner alone. A KEK is
// 32 bytes in base64; further lines are earlier ones. Hosts that share a database
// share both keys. Call Bind before using a database.
func Open(dir string, getenv func(string) string) (*Keeper, error) {
	text, err := load(EnvKEK, filepath.Join(dir, "kek"), getenv, func() (string, error) {
		key := make([]byte, keySize)
		_, err := rand.Read(key)
		return base64.StdEncoding.EncodeToString(key), err
	})
	if err != nil {
		return nil, err
	}
	k := &Keeper{}
	for line := range strings.FieldsSeq(text) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != keySize {
			return nil, core.Errf(core.KindInvalid, "kek_invalid", "The encryption key is not 32 bytes in base64. Make one with: openssl rand -base64 32")
		}
		k.keks = append(k.keks, kek{id: derivedID(key), key: key})
	}
	if len(k.keks) == 0 {
		return nil, core.Errf(core.KindInvalid, "kek_invalid", "The encryption key is empty. Restore the file kek of the key directory from a backup.")
	}
	private, err := load(EnvAuditKey, filepath.Join(dir, "audit"), getenv, func() (string, error) {
		private, _, err := note.GenerateKey(rand.Reader, signerName)
		return private, err
	})
	if err != nil {
		return nil, err
	}
	return k, k.setSigner(strings.TrimSpace(private))
}

func (k *Keeper) setSigner(private string) error {
	broken := core.Errf(core.KindInvalid, "audit_key_invalid", "The key that signs the audit log cannot be read. Restore the file audit of the key directory from a backup.")
	signer, err := note.NewSigner(private)
	if err != nil {
		return broken
	}
	// PRIVATE+KEY+name+hash+base64(algorithm byte, seed)
	parts := strings.SplitN(private, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return broken
	}
	public, ok := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	if !ok {
		return broken
	}
	k.verifier, err = note.NewEd25519VerifierKey(signer.Name(), public)
	k.signer = signer
	return err
}

// load reads a key from the environment or from a file, which it makes when missing.
func load(env, path string, getenv func(string) string, generate func() (string, error)) (string, error) {
	if v := getenv(env); v != "" {
		return v, nil
	}
	if named := getenv(env + "_FILE"); named != "" {
		b, err := os.ReadFile(named)
		if err != nil {
			return "", fmt.Errorf("read the key named by %s_FILE: %w", env, err)
		}
		return string(b), nil
	}
	b, err := os.ReadFile(path)
	if err == nil {
		return string(b), checkMode(path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read a key: %w", err)
	}
	text, err := generate()
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return create(path, text)
}

// create writes a key file so that it is there whole or not at all. If another process
// made it in the meantime, that one is used.
func create(path, text string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("directory of keys: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(text + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		b, err := os.ReadFile(path)
		return string(b), err
	} else if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	return text, nil
}

func checkMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read a key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && os.PathSeparator == '/' {
		return core.Errf(core.KindForbidden, "key_file_open", "The key file %s can be read by others (mode %04o). Run: chmod 600 %s", path, mode, path)
	}
	return nil
}

// boundKEK is the instance value that remembers which KEK a database belongs to.
const boundKEK = "kek_id"

// Bind ties the database to the KEK at first use. Later it refuses a KEK that does not
// belong to the database with key_mismatch: nothing sealed could be opened, and no
// approval could be verified.
func (k *Keeper) Bind(ctx context.Context, db *store.DB) error {
	current := k.keks[0].id
	return db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		bound, err := tx.InsertInstanceValue(ctx, boundKEK, current)
		if err != nil || bound == current {
			return err
		}
		if k.find(bound) == nil {
			return core.Errf(core.KindConflict, "key_mismatch",
				"The encryption key is not the one this database was made with. Restore the file kek of the key directory, or name the key with %s_FILE.", EnvKEK)
		}
		return tx.PutInstanceValue(ctx, boundKEK, current)
	})
}

func (k *Keeper) find(id string) *kek {
	for i := range k.keks {
		if k.keks[i].id == id {
			return &k.keks[i]
		}
	}
	return nil
}

// derive makes the key for one purpose. HKDF can fail only for lengths we do not ask for.
func derive(key []byte, purpose string) []byte {
	out, err := hkdf.Key(sha256.New, key, nil, "sallyport/"+purpose, keySize)
	if err != nil {
		panic("secret: derive a key: " + err.Error())
	}
	return out
}

func derivedID(key []byte) string { return hex.EncodeToString(derive(key, "key-id")[:8]) }

// MAC authenticates data for a purpose with a key that is not in the database. Parts
// are length-prefixed, so that moving a byte from one to the next changes the MAC.
func (k *Keeper) MAC(purpose string, data ...[]byte) []byte { return mac(k.keks[0].key, purpose, data) }

// CheckMAC reports whether sum is the MAC of data, under the current KEK or an earlier one.
func (k *Keeper) CheckMAC(purpose string, sum []byte, data ...[]byte) bool {
	for _, kek := range k.keks {
		if hmac.Equal(sum, mac(kek.key, purpose, data)) {
			return true
		}
	}
	return false
}

func mac(key []byte, purpose string, data [][]byte) []byte {
	h := hmac.New(sha256.New, derive(key, "mac/"+purpose))
	h.Write(joined(data...))
	return h.Sum(nil)
}

// Signer signs checkpoints of the audit log; the second value verifies them and may be
// published.
func (k *Keeper) Signer() (note.Signer, string) { return k.signer, k.verifier }

// JWTKey signs access tokens. Every host with the same KEK has the same.
func (k *Keeper) JWTKey() (id string, key ed25519.PrivateKey) { return jwtKey(k.keks[0].key) }

// JWTPublicKeys are the keys that verify access tokens, by key id: the current one and
// those of earlier KEKs.
func (k *Keeper) JWTPublicKeys() map[string]ed25519.PublicKey {
	out := map[string]ed25519.PublicKey{}
	for _, kek := range k.keks {
		id, key := jwtKey(kek.key)
		if public, ok := key.Public().(ed25519.PublicKey); ok {
			out[id] = public
		}
	}
	return out
}

func jwtKey(kek []byte) (string, ed25519.PrivateKey) {
	key := ed25519.NewKeyFromSeed(derive(kek, "access-tokens"))
	sum := sha256.Sum256(key[ed25519.SeedSize:])
	return hex.EncodeToString(sum[:8]), key
}
