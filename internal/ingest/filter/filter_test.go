package filter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestTextConditions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		text string
		want Reason
	}{
		{Options{}, "", Kept},
		{Options{MinChars: 3}, "日本", TooShort},
		{Options{MinChars: 3}, "日本語", Kept},
		{Options{MaxChars: 3}, "日本語", Kept},
		{Options{MaxChars: 3}, "日本語!", TooLong},
		{Options{Match: []string{"b+"}}, "abc", Kept},
		{Options{Match: []string{"b+", "d"}}, "abc", NoMatch},
		{Options{NoMatch: []string{"x", "c$"}}, "abc", Matched},
		{Options{NoMatch: []string{"x", "b$"}}, "abc", Kept},
		{Options{Match: []string{"^second"}}, "first\nsecond", NoMatch}, // lines only with (?m), as in Go and Python
		{Options{Match: []string{"(?m)^second"}}, "first\nsecond", Kept},
		{Options{Match: []string{"(?i)É"}}, "caf\u00e9", Kept},
		{Options{MinChars: 2, Match: []string{"x"}}, "a", TooShort}, // the first condition counts
	} {
		f, err := NewFilter(c.o)
		if err != nil {
			t.Fatalf("%+v: %v", c.o, err)
		}
		if got := f.Text([]byte(c.text), nil); got != c.want {
			t.Errorf("%+v on %q: %q, want %q", c.o, c.text, got, c.want)
		}
	}
	f, err := NewFilter(Options{Match: []string{"answer"}, MaxChars: 12})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Text([]byte("asked"), []byte("answer")); got != Kept {
		t.Errorf("a match in the target: %q", got)
	}
	if got := f.Text([]byte("asked?!"), []byte("answer")); got != TooLong {
		t.Errorf("prompt and target of 13 characters: %q", got)
	}
}

func TestBadConditions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Match: []string{"(a"}}, "missing closing"},
		{Options{Match: []string{`a(?=b)`}}, "RE2"},
		{Options{NoMatch: []string{""}}, "empty"},
		{Options{MinChars: 9, MaxChars: 8}, "`max-chars` 8"},
		{Options{Where: []string{"lang"}}, "FIELD=VALUE"},
		{Options{Where: []string{"=en"}}, "FIELD=VALUE"},
		{Options{Where: []string{"score"}}, "'score>=3'"}, // which a shell may have left of score>3
		{Options{Where: []string{">=3"}}, `">=3": the name of the field is missing`},
		{Options{Where: []string{"!=en"}}, "the name of the field is missing"},
		{Options{Where: []string{"<"}}, "the name of the field is missing"},
		{Options{Where: []string{"score>= "}}, "the value is missing"},
		{Options{Where: []string{"score!="}}, "the value is missing"},
		{Options{Where: []string{"score<>3"}}, "write != for unequal, as in score!=3"},
		{Options{Where: []string{"score=>3"}}, "write score>=3"},
		{Options{Where: []string{"score>==3"}}, "a sign too many"},
		{Options{Where: []string{"score!==3"}}, "a sign too many"},
		{Options{Where: []string{"lang~=en"}}, "`match`"},
		{Options{Where: []string{"lang!>en"}}, "! stands before = alone"},
		{Options{Where: []string{"a..b=1"}}, "is empty"},
		{Options{Where: []string{"lang===en"}}, "begin with ="},
		{Options{Where: []string{"lang=~en"}}, "`match`"},
		{Options{Where: []string{"lang in (en, de)"}}, "`where` lang=en `where` lang=de"},
		{Options{Where: []string{"score>1 AND score<4"}}, "two conditions, with AND between them"},
		{Options{Where: []string{`lang="en" or lang="de"`}}, "with or between"},
		{Options{Where: []string{"lang=en && ok"}}, ""}, // may be a value
		{Options{Where: []string{"lang=en && meta.list[0]!=3"}}, "with && between"},
		{Options{Where: []string{"score>1||x<2"}}, "with || between"},
		{Options{Where: []string{"score>=2,score<4"}}, "with , between"},
		{Options{Where: []string{"score>=2; score <4"}}, "with ; between"},
		{Options{Where: []string{"lang=en and n is null"}}, "with and between"},
		{Options{Where: []string{`title="a and b=c"`}}, ""},
		{Options{Where: []string{"title=Jack and Jill, and 3 others"}}, ""},
		{Options{Where: []string{"url=http://a.b/?x=1&y=2", "path='~/x'", "eq='=x'"}}, ""},
		{Options{Where: []string{`s="<3"`, "s='>9'", `s!="<3"`, `s!=">3"`, `s<">3"`, `s>="=x"`}}, ""},
		{Options{Where: []string{"s=<3"}}, "write s<=3"},
	} {
		_, err := NewFilter(c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestWhere(t *testing.T) {
	const record = `{"lang": "en", "n": 1.50, "big": 123456789012345678901, "ok": true, "none": null, "empty": "",
		"tags": ["a", 2, "b\u00e9", ["deep"]], "meta": {"lang": "de", "list": [{"x": 7}]}, "a.b": "literal", "o": {"p": 1},
		"text": "1.0", "eq": "a=b", "nan": NaN, "nans": [{"x": -Infinity}, NaN, 1], "heart": "<3"}`
	for _, c := range []struct {
		where string // several by semicolons
		want  bool
	}{
		{"lang=en", true}, {"lang=EN", false}, {"lang=e", false}, {"lang==en", true},
		{"lang = en", true}, {"lang == 'en'", true}, {`lang="en"`, true}, {`lang != "en"`, false}, {`empty=""`, true},
		{`lang='en"`, false}, {`heart="<3"`, true}, {`heart!='<3'`, false}, {`heart=">3"`, false}, {`heart>"<2"`, true},
		{"n=1.5", true}, {"n=15e-1", true}, {"n=1.51", false}, {"n=one", false},
		{"big=123456789012345678901", true}, {"big=123456789012345678902", false},
		{"big=1.23456789012345678901e20", true},
		{"ok=true", true}, {"ok=True", true}, {"ok=false", false}, {"ok=1", false},
		{"none=null", true}, {"none=", false}, {"none=0", false}, {"empty=", true}, {"empty=null", false},
		{"tags=a", true}, {"tags=2", true}, {"tags=bé", true}, {"tags=c", false}, {"tags=deep", false},
		{"tags[0]=a", true}, {"tags[1]=a", false},
		{"meta.lang=de", true}, {"meta.list[0].x=7", true}, {"meta.list[1].x=7", false}, {"meta=de", false},
		{"a.b=literal", true},
		{"missing=null", false}, {"missing=", false}, {"text=1", false}, {"text=1.0", true}, {"eq=a=b", true},
		{"nan=NaN", true}, {"nan=0", false}, {"nans=NaN", true}, {"nans=1.0", true}, {"nans=2", false}, {"nans!=1", false},
		{"lang=de;lang=en", true}, {"lang=de;lang=fr", false}, {"lang=en;ok=true", true}, {"lang=en;ok=false", false},
	} {
		f, err := NewFilter(Options{Where: strings.Split(c.where, ";")})
		if err != nil {
			t.Fatalf("%s: %v", c.where, err)
		}
		got, err := f.JSON([]byte(record), 0)
		if err != nil || got.Holds != c.want {
			t.Errorf("%s: %v, %v, want %v", c.where, got, err, c.want)
		}
	}
	f, err := NewFilter(Options{Where: []string{"lang=en", "meta.no=1", "ok=false"}})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := f.JSON([]byte(record), 0); v.Has != 0b101 || err != nil {
		t.Errorf("fields found: %b, %v", v.Has, err)
	}
	if _, err := f.JSON([]byte(`{"lang": "de", "text": "never closed`), 0); err == nil {
		t.Error("a malformed record was judged")
	}
}

func TestWhereInColumns(t *testing.T) {
	columns, row := []string{"id", "ok", "n", "empty"}, []string{"007", "TRUE", "2.50", ""}
	for _, c := range []struct {
		where string
		want  bool
	}{
		{"id=007", true}, {"id=7", false}, {"ok=true", true}, {"ok=false", false}, {"n=2.5", true}, {"n=2.50", true},
		{"n=2", false},
		{"empty=", true}, {"empty=null", false}, {"none=1", false},
	} {
		f, err := NewFilter(Options{Where: []string{c.where}})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Row(columns, func(i int) []byte { return []byte(row[i]) }, 0); got.Holds != c.want {
			t.Errorf("%s: %v, want %v", c.where, got, c.want)
		}
	}
}

// TestCanonicalNumber compares numbers with exact rationals.
func TestNumbersEqualByValue(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type parsed struct {
		text   string
		number number
		value  *big.Rat
	}
	var seen []parsed
	for range 400 {
		text := fmt.Sprint(rnd.IntN(30))
		if rnd.IntN(2) == 0 {
			text = "-" + text
		}
		if rnd.IntN(2) == 0 {
			text += "." + fmt.Sprintf("%0*d", 1+rnd.IntN(3), rnd.IntN(10))
		}
		if rnd.IntN(2) == 0 {
			text += []string{"e", "E+", "e-"}[rnd.IntN(3)] + fmt.Sprint(rnd.IntN(3))
		}
		n, ok := jsonNumber([]byte(text))
		value, isRat := new(big.Rat).SetString(text)
		if !ok || !isRat || !json.Valid([]byte(text)) {
			t.Fatalf("%s is not a number", text)
		}
		for _, s := range seen {
			if n.compare(&s.number) != value.Cmp(s.value) {
				t.Fatalf("%s compares with %s as %d", text, s.text, n.compare(&s.number))
			}
		}
		seen = append(seen, parsed{text, n, value})
	}
	for _, text := range []string{"", "-", "007", "1.", ".5", "1e", "1e+-2", "0x1", "1 ", "NaN", "١"} {
		if _, ok := jsonNumber([]byte(text)); ok {
			t.Errorf("%q is a number", text)
		}
	}
}

func TestSampleIsNestedAndStable(t *testing.T) {
	kept := func(share float64) (list []int) {
		f, err := NewFilter(Options{Sample: share})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20000 {
			if f.Text(fmt.Appendf(nil, "document %d", i), nil) == Kept {
				list = append(list, i)
			}
		}
		return list
	}
	last := map[int]bool{}
	for i := range 20000 {
		last[i] = true
	}
	for _, share := range []float64{1, 0.7, 0.3, 0.01} {
		now := map[int]bool{}
		for _, i := range kept(share) {
			if now[i] = true; !last[i] {
				t.Fatalf("document %d is in the sample of %g and in no larger one", i, share)
			}
		}
		if n := float64(len(now)); n < 20000*share-300 || n > 20000*share+300 {
			t.Errorf("a sample of %g has %g of 20000", share, n)
		}
		last = now
	}
	if first := kept(0.0005); fmt.Sprint(first) != "[4390 4762 13403 16184 17362 18769 19998]" {
		t.Errorf("another sample than ever before: %v", first)
	}
}
