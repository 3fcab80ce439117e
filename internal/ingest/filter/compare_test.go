package filter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func newWhere(t *testing.T, where string) *Filter {
	t.Helper()
	f, err := NewFilter(Options{Where: strings.Split(where, ";")})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	return f
}

func TestComparisons(t *testing.T) {
	const record = `{"lang": "en", "n": 1.50, "big": 9007199254740993, "neg": -3, "ok": true, "none": null, "empty": "",
		"tags": ["a", 12, [99], {"x": 1}], "meta": {"n": 10}, "o": {"p": 1}, "digits": "10", "nan": NaN,
		"far": -Infinity, "when": "2020-02-29T12:00:00.5", "no": [], "esc": "a\"b\u00e9"}`
	for _, c := range []struct {
		where string // several by semicolons
		want  bool
	}{
		{"n>1.5", false}, {"n>=1.5", true}, {"n<=15e-1", true}, {"n<1.50001", true}, {"n>-2", true},
		{"n != 1.5", false},
		{"n!=1.51", true}, {"n>=01.5", true}, {"n>+1.4", true}, {"n>.9", true}, {"n > 1", true},
		{"big>9007199254740992", true}, {"big<9007199254740993.5", true}, {"big>=9007199254740994", false},
		{"big!=9007199254740992", true},
		{"neg<-2.99", true}, {"neg>-3", false}, {"neg<0", true},
		{"meta.n>=10", true}, {"meta.n<9", false}, {"o>=1", false}, {"o!=1", false}, {"o.p!=2", true},
		{"lang>=de", true}, {"lang<fr", true}, {"lang!=en", false}, {"lang!=de", true}, {"lang!=de;lang!=en", false},
		{"digits>=9", false}, {"digits<9", true}, // texts
		{"n>=abc", false}, {"n<abc", true}, // texts, if one is not a number
		{"ok!=true", false}, {"ok!=TRUE", false}, {"ok!=false", true}, {"ok>=0", false}, {"ok<z", false},
		{"none!=1", false}, {"none!=null", false}, {"none<1", false}, {"lang!=null", true},
		{"missing!=1", false}, {"missing<1", false}, {"missing>=0", false},
		{"empty!=x", true}, {"empty<a", true}, {"empty>=a", false},
		{"tags>11", true}, {"tags>12", true} /* a, as a text */, {"tags>=a", true}, {"tags!=a", false},
		{"tags!=b", true}, {"tags>=99", true},
		{"no!=a", true}, {"no<1", false},
		{"nan!=1", true}, {"nan>=0", false}, {"nan<0", false}, {"nan<x", false},
		{"far<-1e300", true}, {"far>=-inf", true}, {"far<=-Infinity", true}, {"far>-inf", false},
		{"when>=2020-02-29", true}, {"when<2020-03", true}, {"when<2020-02-29T12:00:01", true},
		{"when>2020-02-29T12:00:00", true},
		{`esc>a"b`, true}, {`esc<=a"bé`, true},
		{"n>=1;n<2;lang=en", true}, {"n>=1;n<1.2", false}, {"n=1.5;n=2;n<2", true}, {"n=1.5;n=2;n>=2", false},
	} {
		if got, err := newWhere(t, c.where).JSON([]byte(record), 0); err != nil || got.Holds != c.want {
			t.Errorf("%s: %v, %v, want %v", c.where, got, err, c.want)
		}
	}
	if newWhere(t, "a=1;b=2").Compares() || !newWhere(t, "a=1;b!=2").Compares() {
		t.Error("Compares is wrong")
	}
}

func TestComparisonsInColumns(t *testing.T) {
	columns, row := []string{"id", "n", "empty", "word", "nan"}, []string{"007", "2.50", "", "n/a", "NaN"}
	at := func(i int) []byte { return []byte(row[i]) }
	for _, c := range []struct {
		where string
		want  bool
	}{
		{"id>=7", true}, {"id<8", true}, {"id!=007", false}, {"n>2.49", true}, {"n<10", true}, {"n!=2.5", false},
		{"empty<9", false}, {"empty!=9", false}, {"empty>=0", false}, {"none!=1", false},
		{"word>=3", true}, {"word<1000", false}, {"word!=n/a", false}, {"nan>=0", false}, {"nan!=1", true},
	} {
		if got := newWhere(t, c.where).Row(columns, at, 0); got.Holds != c.want {
			t.Errorf("%s: %v, want %v", c.where, got, c.want)
		}
	}
	// What is decided is not looked for.
	if v := newWhere(t, "gone>=1;n>2").Row(columns, at, 1); !v.Holds || v.Has != 3 {
		t.Errorf("a decided condition: %+v", v)
	}
}

// Values that are compared as texts, though they or the bound are numbers, are reported.
func TestComparedAsText(t *testing.T) {
	columns, row := []string{"n", "word", "empty", "nan"}, []string{"2", "n/a", "", "nan"}
	record := []byte(`{"n": 2, "word": "10", "none": null, "list": ["a"], "ok": true}`)
	for where, want := range map[string][2]bool{ // of JSON, of a row
		"n>=3": {false, false}, "word>=3": {true, true}, "word>=b": {false, false}, "word!=3": {false, false},
		"word=3": {false, false}, "none>3": {false, false}, "list>3": {true, false}, "list>b": {false, false}, "ok>3": {false, false},
		"empty<3": {false, false}, "nan<3": {false, false}, "n<3;word<=5": {true, true},
		"n>=b": {true, true}, "n=b": {false, false}, "n!=b": {false, false}, "nan<b": {false, false}, "ok<b": {false, false},
	} {
		f := newWhere(t, where)
		v, err := f.JSON(record, 0)
		if r := f.Row(columns, func(i int) []byte { return []byte(row[i]) }, 0); err != nil || v.AsText != want[0] ||
			r.AsText != want[1] {
			t.Errorf("%s: %v, %v, %v, want %v", where, v.AsText, r.AsText, err, want)
		}
	}
}

func TestFolder(t *testing.T) {
	for _, c := range []struct {
		where, value string
		null, want   bool
	}{
		{"m=7", "07", false, true}, {"m=07", "7", false, true}, {"m=8", "07", false, false},
		{"m!=7", "07", false, false},
		{"m>=2", "10", false, true}, {"m>=02", "10", false, true}, {"m=en", "en", false, true},
		{"m!=en", "de", false, true},
		{"m=null", "x", true, true}, {"m!=1", "x", true, false}, {"m<1", "x", true, false}, {"m!=1", "", false, false},
	} {
		if got := newWhere(t, c.where).Folder(0, c.value, c.null); got != c.want {
			t.Errorf("%s of %q: %v, want %v", c.where, c.value, got, c.want)
		}
	}
}

// randomNumber writes one of few values in one of many ways.
func randomNumber(rnd *rand.Rand) string {
	text := fmt.Sprintf("%s%d", []string{"", "-"}[rnd.IntN(2)], rnd.IntN(40))
	if rnd.IntN(2) == 0 {
		text += fmt.Sprintf(".%0*d", 1+rnd.IntN(3), rnd.IntN(10))
	}
	if rnd.IntN(2) == 0 {
		text += fmt.Sprintf("e%d", rnd.IntN(7)-3)
	}
	return text
}

// TestNumberOrder compares numbers with exact rationals.
func TestNumberOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		a, b := randomNumber(rnd), randomNumber(rnd)
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		n, ok := parseNumber([]byte(a))
		m, ok2 := parseNumber([]byte(b))
		if !ok || !ok2 || n.compare(&m) != x.Cmp(y) {
			t.Fatalf("%s with %s: %d, %v, %v, want %d", a, b, n.compare(&m), ok, ok2, x.Cmp(y))
		}
	}
	for _, text := range []string{"", " ", "-", ".", "1e", "e1", "1.2.3", "0x1", "1_0", "nan", "NaN", "1e1.5", "--1",
		"2020-01-01"} {
		if isNumber(text) {
			t.Errorf("%q is a number", text)
		}
	}
	if isNumber("1e99999999999999999999") != true {
		t.Error("a large exponent")
	}
}

// TestCanHold checks that no record meets a condition that cannot hold between the least and the greatest
// of its values.
func TestCanHold(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	kinds := []func() string{
		func() string { return strconv.Itoa(rnd.IntN(12) - 3) },
		func() string { return strconv.FormatFloat(float64(rnd.IntN(20))/4, 'g', -1, 64) },
		func() string {
			return fmt.Sprintf("%q", string(rune('a'+rnd.IntN(5)))+[]string{"", "b", "é"}[rnd.IntN(3)])
		},
		func() string { return []string{"-Infinity", "Infinity", "3", "1e+06"}[rnd.IntN(4)] },
	}
	wrong, skipped := 0, 0
	for range 4000 {
		kind := kinds[rnd.IntN(len(kinds))]
		operator := []string{"=", "!=", ">=", "<=", ">", "<"}[rnd.IntN(6)]
		f := newWhere(t, "v"+operator+strings.Trim(kinds[rnd.IntN(len(kinds))](), `"`))
		values := make([]string, 1+rnd.IntN(4))
		for i := range values {
			values[i] = kind()
		}
		e := Extent{Min: []byte(values[0]), Max: []byte(values[0])}
		for _, v := range values {
			if before(v, string(e.Min)) {
				e.Min = []byte(v)
			}
			if before(string(e.Max), v) {
				e.Max = []byte(v)
			}
		}
		can := f.CanHold(0, e)
		if !can {
			skipped++
		}
		for _, v := range values {
			if verdict, err := f.JSON([]byte(`{"v":`+v+`}`), 0); err != nil {
				t.Fatal(err)
			} else if verdict.Holds && !can {
				wrong++
				t.Errorf("%v of %v: %s holds, and cannot", f.opts.Where, values, v)
			}
		}
	}
	if skipped < 500 {
		t.Errorf("%d of 4000 are left out", skipped)
	}
	for _, c := range []struct {
		where string
		e     Extent
		want  bool
	}{
		{"v>=3", Extent{}, true}, {"v>=3", Extent{Null: true}, false}, {"v=null", Extent{Null: true}, true},
		{"v=3", Extent{Null: true}, false}, {"v!=3", Extent{Min: []byte("3"), Max: []byte("3")}, false},
		{"v!=3", Extent{Min: []byte("3"), Max: []byte("3"), NaN: true}, true},
		{"v>=3", Extent{Min: []byte("9"), Max: []byte("1")}, true}, // not in order
		{"v>=3", Extent{Min: []byte("NaN"), Max: []byte("1")}, true},
		{"v>=zz", Extent{Min: []byte("1"), Max: []byte("2")}, true},
		{"v>=3", Extent{Min: []byte("false"), Max: []byte("true")}, true},
		{"v=1;v=5", Extent{Min: []byte("2"), Max: []byte("4")}, false},
		{"v=1;v=3", Extent{Min: []byte("2"), Max: []byte("4")}, true},
	} {
		if got := newWhere(t, c.where).CanHold(0, c.e); got != c.want {
			t.Errorf("%s of %+v: %v, want %v", c.where, c.e, got, c.want)
		}
	}
}

// before orders JSON values of one kind.
func before(a, b string) bool {
	if a[0] == '"' {
		var x, y string
		_, _ = json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)
		return x < y
	}
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return x < y
}
