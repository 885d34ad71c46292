package secret_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func none(string) string { return "" }

func open(t *testing.T, dir string) *secret.Keeper {
	t.Helper()
	k, err := secret.Open(dir, none)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t *testing.T, db *store.DB, k *secret.Keeper, ws store.WorkspaceID, class, subject, plain string) string {
	t.Helper()
	var id string
	err := db.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) (err error) {
		id, err = k.Seal(ctx, tx, ws, class, subject, []byte(plain))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return core.AsError(err).Code
}

func TestSealedValuesOpenOnlyWhereTheyBelong(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		ctx := context.Background()
		k := open(t, t.TempDir())
		id := seal(t, db, k, "ws_a", "smtp", "con_1", "hunter2")
		v, err := k.Unseal(ctx, db, "ws_a", id, "smtp", "con_1")
		if err != nil || v.Reveal() != "hunter2" {
			t.Fatalf("unseal: %v, %v", v.Reveal(), err)
		}
		if _, err := k.Unseal(ctx, db, "ws_b", id, "smtp", "con_1"); code(err) != "not_found" {
			t.Errorf("another workspace: %v", err)
		}
		if _, err := k.Unseal(ctx, db, "ws_a", id, "webhook", "con_1"); code(err) != "secret_broken" {
			t.Errorf("another class: %v", err)
		}
		if _, err := k.Unseal(ctx, db, "ws_a", id, "smtp", "con_2"); code(err) != "secret_broken" {
			t.Errorf("another subject: %v", err)
		}
		if _, err := open(t, t.TempDir()).Unseal(ctx, db, "ws_a", id, "smtp", "con_1"); code(err) != "key_missing" {
			t.Errorf("another KEK: %v", err)
		}
	})
}

func TestSwappedRowsDoNotOpen(t *testing.T) {
	ctx := context.Background()
	db := testdb.SQLite(t)
	k := open(t, t.TempDir())
	a := seal(t, db, k, "ws_a", "smtp", "con_1", "one")
	b := seal(t, db, k, "ws_a", "smtp", "con_1", "two")
	row, err := db.Secret(ctx, "ws_a", a)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(row.Sealed, []byte("one")) {
		t.Error("the value is stored in clear")
	}
	if _, err := db.WriterSQL().ExecContext(ctx, "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE id = ?) WHERE id = ?", a, b); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Unseal(ctx, db, "ws_a", b, "smtp", "con_1"); code(err) != "secret_broken" {
		t.Errorf("a sealed value of another row opened: %v", err)
	}
}

func TestRotation(t *testing.T) {
	ctx := context.Background()
	db := testdb.SQLite(t)
	dir := t.TempDir()
	old := open(t, dir)
	if err := old.Bind(ctx, db); err != nil {
		t.Fatal(err)
	}
	id := seal(t, db, old, "ws_a", "smtp", "con_1", "hunter2")
	sum := old.MAC("decision", []byte("x"))
	if err := open(t, t.TempDir()).Bind(ctx, db); code(err) != "key_mismatch" {
		t.Fatalf("a foreign KEK was accepted: %v", err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "kek"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	if err := os.WriteFile(filepath.Join(dir, "kek"), []byte(fresh+"\n"+string(before)), 0o600); err != nil {
		t.Fatal(err)
	}
	both := open(t, dir)
	if err := both.Bind(ctx, db); err != nil {
		t.Fatal(err)
	}
	if !both.CheckMAC("decision", sum, []byte("x")) || both.CheckMAC("decision", sum, []byte("y")) {
		t.Error("an earlier MAC must verify, another must not")
	}
	if n, err := both.Rewrap(ctx, db); n != 1 || err != nil {
		t.Fatalf("rewrap: %d, %v", n, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kek"), []byte(fresh), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := open(t, dir).Unseal(ctx, db, "ws_a", id, "smtp", "con_1"); err != nil || v.Reveal() != "hunter2" {
		t.Fatalf("after rotation: %v", err)
	}
}

func TestValueNeverPrints(t *testing.T) {
	const canary = "canary-5f1e"
	v := secret.Of(canary)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", v, "pointer", &v, "inside", struct{ V secret.Value }{v})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", v, "inside", struct{ V secret.Value }{v})
	j, err := json.Marshal(map[string]any{"v": v, "p": &v})
	if err != nil {
		t.Fatal(err)
	}
	all := log.String() + string(j)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		all += fmt.Sprintf(verb, v) + fmt.Sprintf(verb, &v) + fmt.Sprintf(verb, struct{ V secret.Value }{v}) + fmt.Sprintf(verb, []secret.Value{v})
	}
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), base64.StdEncoding.EncodeToString([]byte(canary)), fmt.Sprintf("%d", []byte(canary))} {
		if strings.Contains(strings.ToLower(all), strings.ToLower(form)) {
			t.Errorf("printed as %q", form)
		}
	}
	if v.Reveal() != canary || v.IsZero() || !(secret.Value{}).IsZero() {
		t.Error("Reveal or IsZero is wrong")
	}
}

func TestMACSeparatesPartsAndPurposes(t *testing.T) {
	k := open(t, t.TempDir())
	a := k.MAC("p", []byte("ab"), []byte("c"))
	for name, other := range map[string][]byte{
		"moved byte":      k.MAC("p", []byte("a"), []byte("bc")),
		"joined":          k.MAC("p", []byte("abc")),
		"another purpose": k.MAC("q", []byte("ab"), []byte("c")),
		"another KEK":     open(t, t.TempDir()).MAC("p", []byte("ab"), []byte("c")),
	} {
		if bytes.Equal(a, other) {
			t.Errorf("%s gives the same MAC", name)
		}
	}
	if !bytes.Equal(a, k.MAC("p", []byte("ab"), []byte("c"))) {
		t.Error("the same data gives another MAC")
	}
}

func TestKeysAreMadeOnceAndKeptPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	a, b := open(t, dir), open(t, dir)
	_, va := a.Signer()
	signer, vb := b.Signer()
	idA, keyA := a.JWTKey()
	idB, keyB := b.JWTKey()
	if va != vb || idA != idB || !keyA.Equal(keyB) {
		t.Error("keys differ after opening again")
	}
	signed, err := note.Sign(&note.Note{Text: "hello\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vb)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(signed, note.VerifierList(verifier)); err != nil {
		t.Errorf("the verifier key does not fit the signer: %v", err)
	}
	if !ed25519.Verify(b.JWTPublicKeys()[idA], []byte("m"), ed25519.Sign(keyA, []byte("m"))) {
		t.Error("the public key does not fit the private one")
	}
	for _, name := range []string{"kek", "audit"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "kek"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := secret.Open(dir, none); code(err) != "key_file_open" {
		t.Errorf("an open key file was accepted: %v", err)
	}
}

func TestKEKFromTheEnvironment(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	file := filepath.Join(t.TempDir(), "k")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := func(name, value string) func(string) string {
		return func(n string) string {
			if n == name {
				return value
			}
			return ""
		}
	}
	a, err := secret.Open(dir, env(secret.EnvKEK, key))
	if err != nil {
		t.Fatal(err)
	}
	b, err := secret.Open(dir, env(secret.EnvKEK+"_FILE", file))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.MAC("p"), b.MAC("p")) {
		t.Error("the same KEK from two places gives two MACs")
	}
	if _, err := os.Stat(filepath.Join(dir, "kek")); !os.IsNotExist(err) {
		t.Error("a key file was written beside a key from the environment")
	}
	for _, bad := range []string{"short", base64.StdEncoding.EncodeToString([]byte("x")), " "} {
		if _, err := secret.Open(dir, env(secret.EnvKEK, bad)); code(err) != "kek_invalid" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
