package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSentences(t *testing.T) {
	s := "Exports work, e.g. CSV and PDF. Version 1.2 is out! Is it fast?\nYes."
	var got []string
	for _, span := range Sentences(s) {
		if s[span.Start:span.End] != span.Text {
			t.Errorf("span %d–%d does not cut out %q", span.Start, span.End, span.Text)
		}
		got = append(got, span.Text)
	}
	want := []string{"Exports work, e.g. CSV and PDF.", "Version 1.2 is out!", "Is it fast?", "Yes."}
	if !slices.Equal(got, want) {
		t.Errorf("sentences %q, want %q", got, want)
	}
}

func TestStemsMergeSpellings(t *testing.T) {
	if a, b := Stems("Exporting the invoices"), Stems("invoice exports"); !slices.Equal(a, []string{"export", "invoic"}) || !slices.Equal(b, []string{"invoic", "export"}) {
		t.Errorf("stems %q and %q", a, b)
	}
	if got := Stems("1,000 rows"); got[0] != "1000" {
		t.Errorf("number %q", got[0])
	}
}

func TestQuantities(t *testing.T) {
	same := [][2]string{{"1,000 rows", "1000 rows"}, {"1k rows", "1,000 rows"}, {"40 %", "0.4"}, {"40s", "40 seconds"}, {"2 minutes", "120 s"}, {"$9", "9 USD"}, {"two teams", "2 teams"}, {"3 weeks", "21 days"}}
	for _, pair := range same {
		a, b := Quantities(pair[0]), Quantities(pair[1])
		if len(a) != 1 || len(b) != 1 || !a[0].Same(b[0]) {
			t.Errorf("%q and %q differ: %+v, %+v", pair[0], pair[1], a, b)
		}
	}
	different := [][2]string{{"40 seconds", "40 minutes"}, {"40 teams", "14 teams"}, {"$9", "9 EUR"}, {"40 %", "40 teams"}}
	for _, pair := range different {
		a, b := Quantities(pair[0]), Quantities(pair[1])
		if len(a) != 1 || len(b) != 1 || a[0].Same(b[0]) {
			t.Errorf("%q and %q count as the same: %+v, %+v", pair[0], pair[1], a, b)
		}
	}
	for _, s := range []string{"v1.2.3", "utf8 text", "/v2/users", "one thing"} {
		if got := Quantities(s); len(got) != 0 {
			t.Errorf("%q holds quantities %+v", s, got)
		}
	}
}

func TestClean(t *testing.T) {
	dirty := "Pay\u202e\u2066 \u200bnow\x00\x1b[31m\r\n\r\n\tplease \U000e0041👨\u200d👩"
	if got, want := Clean(dirty), "Pay now[31m\nplease 👨\u200d👩"; got != want {
		t.Errorf("Clean = %q, want %q", got, want)
	}
	if got := Clean(strings.Repeat("ä ", 3000)); utf8.RuneCountInString(got) > MaxUntrusted || !utf8.ValidString(got) {
		t.Errorf("%d characters left", utf8.RuneCountInString(got))
	}
	if got := OneLine("a\nb\u2028c", 10); got != "a b c" {
		t.Errorf("OneLine = %q", got)
	}
	if got := Clean("bad \xff byte"); !utf8.ValidString(got) {
		t.Errorf("invalid UTF-8 left: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u202eb\n\x00")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, Invisible) || utf8.RuneCountInString(got) > MaxUntrusted {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if again := Clean(got); again != got {
			t.Errorf("cleaning twice differs: %q, then %q", got, again)
		}
		XWeight(s)
		Sentences(s)
		Quantities(s)
	})
}

func TestPlaceholders(t *testing.T) {
	for _, s := range []string{"Hi [name],", "Dear {{first_name}}", "Price: TBD", "lorem ipsum dolor", "your company name", "<insert link here>", "Hello ${user}"} {
		if len(Placeholders(s)) == 0 {
			t.Errorf("no placeholder found in %q", s)
		}
	}
	for _, s := range []string{"See [the docs](https://a.example)", "a < b", "task [x] done", "plain text"} {
		if got := Placeholders(s); len(got) != 0 {
			t.Errorf("%q: placeholders %q", s, got)
		}
	}
	if got := Placeholders("Hi {{first_name}}", "first_name"); len(got) != 0 {
		t.Errorf("an allowed merge field is a placeholder: %q", got)
	}
}

func TestSimilarity(t *testing.T) {
	a := "Export a quarter of invoices as CSV with VAT columns."
	if got := NearDuplicate(a, a); got != 1 {
		t.Errorf("a text and itself: %.2f", got)
	}
	if got := NearDuplicate(a, "Deposits from banks are matched to open invoices."); got != 0 {
		t.Errorf("two texts without a common run: %.2f", got)
	}
	if near, far := Cosine(a, "CSV export of invoices"), Cosine(a, "Plan truck routes by dock hours"); near <= far {
		t.Errorf("cosine %.2f of a near text, %.2f of a far one", near, far)
	}
}

func TestKeyphrases(t *testing.T) {
	blocks := []string{
		"Tidepool is a durable job queue for SQLite. The job queue keeps retries and cron schedules in the database file.",
		"Workers claim jobs from the job queue inside one transaction. Cron schedules are rows.",
	}
	got := Keyphrases(blocks, 5)
	var all []string
	for _, phrase := range got {
		all = append(all, phrase.Text)
	}
	if !slices.Contains(all, "job queue") && !slices.Contains(all, "durable job queue") || !slices.Contains(all, "cron schedules") {
		t.Errorf("keyphrases %q miss the subject", all)
	}
	if again := Keyphrases(blocks, 5); !slices.Equal(got, again) {
		t.Error("the same input gave another order")
	}
	if Keyphrases(nil, 5) != nil {
		t.Error("keyphrases out of nothing")
	}
}

func TestBackground(t *testing.T) {
	if common, rare := IDF(Stem("free")), IDF(Stem("brassica")); common >= rare {
		t.Errorf("idf of a common word %.2f, of a rare one %.2f", common, rare)
	}
	if n := len(background()); n < 1100 {
		t.Errorf("the background table has %d stems", n)
	}
}

func TestCutGraphemes(t *testing.T) {
	family := "👨\u200d👩\u200d👧"
	if got := CutGraphemes(family+"ab", 2); got != family+"a" {
		t.Errorf("cut inside a grapheme: %q", got)
	}
	if Graphemes(family) != 1 || CutGraphemes("ab", 5) != "ab" {
		t.Error("graphemes miscounted")
	}
}
