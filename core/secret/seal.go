package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"strconv"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// format is the version of the envelope; it is bound by the seal.
const format = 1

// rewrapBatch is how many records one transaction wraps again.
const rewrapBatch = 100

// Reader finds sealed values; *store.DB and *store.Tx are Readers.
type Reader interface {
	Secret(ctx context.Context, ws store.WorkspaceID, id string) (*store.Secret, error)
}

// Seal stores a value under a data key of its own, which the KEK wraps, and returns
// its identifier. Workspace, class and subject (what the value belongs to, for example
// a connection) are bound: a sealed value moved to another row does not open.
func (k *Keeper) Seal(ctx context.Context, tx *store.Tx, ws store.WorkspaceID, class, subject string, plain []byte) (id string, err error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return "", err
	}
	dek := make([]byte, keySize)
	if _, err := rand.Read(dek); err != nil {
		return "", err
	}
	s := &store.Secret{ID: core.NewID("sec", now), WorkspaceID: ws, Class: class, Subject: subject, Format: format,
		KeyID: k.keks[0].id, CreatedAt: store.At(now)}
	s.WrappedKey = aead(derive(k.keks[0].key, "wrap")).Seal(nil, nil, dek, wrapData(s))
	s.Sealed = aead(dek).Seal(nil, nil, plain, boundData(s))
	return s.ID, tx.InsertSecret(ctx, s)
}

// Unseal opens a value that was sealed for the same workspace, class and subject.
func (k *Keeper) Unseal(ctx context.Context, r Reader, ws store.WorkspaceID, id, class, subject string) (Value, error) {
	s, err := r.Secret(ctx, ws, id)
	if err != nil {
		return Value{}, err
	}
	// What the caller expects is bound, not what the row says.
	s.WorkspaceID, s.Class, s.Subject = ws, class, subject
	dek, err := k.unwrap(s)
	if err != nil {
		return Value{}, err
	}
	plain, err := aead(dek).Open(nil, nil, s.Sealed, boundData(s))
	if err != nil {
		return Value{}, broken(id, err)
	}
	return Value{plain: plain}, nil
}

// Rewrap wraps again, under the current KEK, every data key that an earlier KEK wraps,
// and tells how many there were. It may run while the host works.
func (k *Keeper) Rewrap(ctx context.Context, db *store.DB) (int, error) {
	total := 0
	for {
		n := 0
		err := db.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
			rows, err := tx.SystemSecretsNotUnder(ctx, k.keks[0].id, rewrapBatch)
			if err != nil {
				return err
			}
			n = len(rows)
			for i := range rows {
				if err := k.rewrap(ctx, tx, &rows[i]); err != nil {
					return err
				}
			}
			return nil
		})
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}

func (k *Keeper) rewrap(ctx context.Context, tx *store.Tx, s *store.Secret) error {
	dek, err := k.unwrap(s)
	if err != nil {
		return err
	}
	old := s.KeyID
	s.KeyID = k.keks[0].id
	wrapped := aead(derive(k.keks[0].key, "wrap")).Seal(nil, nil, dek, wrapData(s))
	return tx.RewrapSecret(ctx, s.ID, old, s.KeyID, wrapped)
}

func (k *Keeper) unwrap(s *store.Secret) ([]byte, error) {
	kek := k.find(s.KeyID)
	if kek == nil {
		return nil, core.Errf(core.KindUnavailable, "key_missing", "The secret %s was sealed with an encryption key that is not here. Add the earlier key as a further line of the key file.", s.ID)
	}
	dek, err := aead(derive(kek.key, "wrap")).Open(nil, nil, s.WrappedKey, wrapData(s))
	if err != nil || len(dek) != keySize {
		return nil, broken(s.ID, err)
	}
	return dek, nil
}

func broken(id string, err error) error {
	return &core.Error{Kind: core.KindInternal, Code: "secret_broken",
		Detail: "The stored secret " + id + " was changed or belongs elsewhere. Enter the credential again.", Err: err}
}

// aead is AES-256-GCM with a random nonce in front. Keys have 32 bytes, so it cannot fail.
func aead(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("secret: " + err.Error())
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("secret: " + err.Error())
	}
	return gcm
}

func boundData(s *store.Secret) []byte {
	return joined([]byte("value"), []byte(s.WorkspaceID), []byte(s.Class), []byte(s.Subject), []byte(strconv.Itoa(s.Format)))
}

func wrapData(s *store.Secret) []byte {
	return joined([]byte("key"), []byte(s.ID), []byte(s.KeyID), []byte(strconv.Itoa(s.Format)))
}

// joined puts the length before each part, so that no two lists of parts look alike.
func joined(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = binary.BigEndian.AppendUint64(out, uint64(len(p)))
		out = append(out, p...)
	}
	return out
}
