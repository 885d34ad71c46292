package dataset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/core"
	"github.com/sallyport-dev/sallyport/core/audit"
	"github.com/sallyport-dev/sallyport/core/dataset"
	"github.com/sallyport-dev/sallyport/core/secret"
	"github.com/sallyport-dev/sallyport/core/store"
	"github.com/sallyport-dev/sallyport/core/store/testdb"
)

func person(ws string) core.Principal {
	return core.Principal{Kind: core.ActorKindPerson, ID: "usr_1", WorkspaceID: ws, Scopes: core.ScopesOfRole(core.UserRoleOwner)}
}

func service(t *testing.T, db *store.DB) *dataset.Service {
	t.Helper()
	keys, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return dataset.New(db, audit.New(db, keys, core.SystemClock{}, nil))
}

func TestUploadAndRead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db *store.DB) {
		s, p := service(t, db), person("ws_1")
		var csv strings.Builder
		csv.WriteString("\ufeffmail,\"na,me\"\n")
		for i := range 1203 { // more than two batches
			fmt.Fprintf(&csv, "u%d@example.org,\"A \"\"%d\"\"\"\n", i, i)
		}
		d, err := s.Create(t.Context(), p, " users ", "text/csv; charset=utf-8", []byte(csv.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d.Name != "users" || d.Rows != 1203 || !slices.Equal(d.Columns, []string{"mail", "na,me"}) || d.Bytes != csv.Len() || len(d.Digest) != 64 {
			t.Errorf("%+v", d)
		}
		n := 0
		err = s.Rows(t.Context(), "ws_1", d.ID, func(rows []json.RawMessage) error {
			for _, row := range rows {
				want := fmt.Sprintf(`{"mail":"u%d@example.org","na,me":"A \"%d\""}`, n, n)
				if string(row) != want {
					t.Fatalf("row %d is %s", n, row)
				}
				n++
			}
			return nil
		})
		if err != nil || n != 1203 {
			t.Errorf("%d rows, %v", n, err)
		}
		enough := errors.New("enough")
		if err := s.Rows(t.Context(), "ws_1", d.ID, func([]json.RawMessage) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("reading went on: %v", err)
		}
		if err := s.Rows(t.Context(), "ws_2", d.ID, func([]json.RawMessage) error { return nil }); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("foreign rows: %v", err)
		}
		if _, err := s.Get(t.Context(), person("ws_2"), d.ID); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("foreign dataset: %v", err)
		}
		page, err := s.List(t.Context(), p, core.Query{})
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != d.ID {
			t.Errorf("%+v, %v", page, err)
		}
		if err := s.Delete(t.Context(), p, d.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), p, d.ID); !core.IsKind(err, core.KindNotFound) {
			t.Errorf("still there: %v", err)
		}
	})
}

func TestJSONKeepsValues(t *testing.T) {
	s, p := service(t, testdb.SQLite(t)), person("ws_1")
	d, err := s.Create(t.Context(), p, "x", "application/json", []byte(`[{"b": 1.50, "a": null}, {"c": [ {"d": "é"} ]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Columns, []string{"b", "a", "c"}) {
		t.Errorf("columns %v", d.Columns)
	}
	got := []string{}
	if err := s.Rows(t.Context(), "ws_1", d.ID, func(rows []json.RawMessage) error {
		for _, r := range rows {
			got = append(got, string(r))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{`{"b":1.50,"a":null}`, `{"c":[{"d":"é"}]}`}) {
		t.Errorf("rows %v", got)
	}
}

func TestBadUploads(t *testing.T) {
	s, p := service(t, testdb.SQLite(t)), person("ws_1")
	for name, c := range map[string]struct {
		kind, body string
		want       core.ErrorKind
	}{
		"media type":   {"text/plain", "a", core.KindUnsupported},
		"empty csv":    {"text/csv", "", core.KindInvalid},
		"ragged csv":   {"text/csv", "a,b\n1\n", core.KindMalformed},
		"double name":  {"text/csv", "a,a\n1,2\n", core.KindInvalid},
		"nameless":     {"text/csv", "a,\n1,2\n", core.KindInvalid},
		"not UTF-8":    {"text/csv", "a\n\xff\n", core.KindMalformed},
		"open quote":   {"text/csv", "a\n\"x\n", core.KindMalformed},
		"no array":     {"application/json", `{"a":1}`, core.KindMalformed},
		"no objects":   {"application/json", `[1]`, core.KindInvalid},
		"no columns":   {"application/json", `[]`, core.KindInvalid},
		"too large":    {"text/csv", "a\n" + strings.Repeat("x", dataset.MaxBytes), core.KindTooLarge},
		"many columns": {"text/csv", manyColumns(), core.KindInvalid},
	} {
		if _, err := s.Create(t.Context(), p, "x", c.kind, []byte(c.body)); !core.IsKind(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := s.Create(t.Context(), p, " ", "text/csv", []byte("a\n1\n")); !core.IsKind(err, core.KindInvalid) {
		t.Errorf("no name: %v", err)
	}
	viewer := person("ws_1")
	viewer.Scopes = core.ScopesOfRole(core.UserRoleViewer)
	if _, err := s.Create(t.Context(), viewer, "x", "text/csv", []byte("a\n1\n")); !core.IsKind(err, core.KindForbidden) {
		t.Errorf("viewer: %v", err)
	}
}

func manyColumns() string {
	names := make([]string, dataset.MaxColumns+1)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	return strings.Join(names, ",") + "\n"
}
