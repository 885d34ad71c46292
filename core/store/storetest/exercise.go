// Package storetest is the one suite that every kind of database must pass.
package storetest

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/store"
)

// Workspaces of the suite: everything is written in mine, nothing may be seen from theirs.
const (
	mine   store.WorkspaceID = "ws_mine"
	theirs store.WorkspaceID = "ws_theirs"
)

// Exercise calls every read and every write on a fresh, migrated database.
func Exercise(t *testing.T, db *store.DB) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(*T)
	}{
		{"transactions", transactions},
		{"installation", installation},
		{"people", people},
		{"sessions", sessions},
		{"tokens", tokens},
		{"keys", keys},
		{"secrets", secrets},
		{"runs", runs},
		{"drafts", drafts},
		{"actions", actions},
		{"due actions", dueActions},
		{"decisions", decisions},
		{"connections", connections},
		{"datasets", datasets},
		{"audit", audit},
		{"events", events},
		{"webhooks", webhooks},
		{"usage and memory", usageAndMemory},
		{"idempotency", idempotency},
		{"pages", pages},
		{"text", text},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(&T{T: t, db: db, ctx: t.Context()}) })
	}
}

// T is a test with a database.
type T struct {
	*testing.T
	db  *store.DB
	ctx context.Context
}

var moment = time.Date(2026, 11, 21, 10, 0, 0, 123456000, time.UTC)

func at(d time.Duration) store.Time { return store.At(moment.Add(d)) }

// id makes an identifier that sorts after all that were made before.
func (t *T) id(prefix string) string {
	return core.NewID(prefix, moment.Add(time.Duration(made.Add(1))*time.Millisecond))
}

var made atomic.Int64

// write runs fn in a transaction that must succeed.
func (t *T) write(fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := t.db.InTx(t.ctx, fn); err != nil {
		t.Fatal(err)
	}
}

// refused runs fn in a transaction that must fail with a code.
func (t *T) refused(code string, fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	t.hasCode(code, t.db.InTx(t.ctx, fn))
}

func (t *T) hasCode(code string, err error) {
	t.Helper()
	if err == nil || core.AsError(err).Code != code {
		t.Errorf("error is %v, want %s", err, code)
	}
}

// ok passes a value on and fails the test on an error.
func ok[V any](v V, err error) func(*T) V {
	return func(t *T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// same compares a row that was read with the one that was written.
func same[V any](t *T, got, want V) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back:\n%+v\nwritten:\n%+v", got, want)
	}
}

func count(t *T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// filled makes a row in which every field has a value of its own, so that a column
// that is missing or mixed up shows.
func filled[V any](seed int) *V {
	v := new(V)
	n := seed * 1000
	fill(reflect.ValueOf(v).Elem(), &n)
	return v
}

var (
	timeType = reflect.TypeFor[store.Time]()
	stdTime  = reflect.TypeFor[time.Time]()
	jsonType = reflect.TypeFor[store.JSON]()
	byteType = reflect.TypeFor[[]byte]()
)

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(at(time.Duration(*n) * time.Microsecond)))
		return
	case stdTime:
		v.Set(reflect.ValueOf(moment.Add(time.Duration(*n))))
		return
	case jsonType:
		v.SetBytes(fmt.Appendf(nil, `{"n": %d, "text":"é\u0000"}`, *n))
		return
	case byteType:
		v.SetBytes(fmt.Appendf([]byte{0, 0xff}, "%d", *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text'\\%d?", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprintf("any %d", *n)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), element)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "BaseModel" {
				fill(v.Field(i), n)
			}
		}
	default:
		panic("storetest: no value for a " + v.Type().String())
	}
}
