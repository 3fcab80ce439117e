package charclass

import (
	"testing"
	"unicode"
)

// The generated tables follow Unicode versions of their own, but for old characters they must agree with
// Go's, and about white space for all.
func TestTablesAgainstUnicode(t *testing.T) {
	b := BertTables()
	for r := rune(0x80); r < 0x2000; r++ {
		if unicode.In(r, unicode.Mn) && GraphemeOf(r) != GraphemeExtend && r != 0x1734 && r < 0x1700 {
			t.Errorf("%U does not extend", r)
		}
		if l := unicode.ToLower(r); l != r && r < 0x530 && r != 0x130 && b.Lower[r] != string(l) {
			t.Errorf("lower case of %U is %q", r, b.Lower[r])
		}
		if unicode.In(r, unicode.P) != b.Punctuation.Has(r) && r < 0x590 {
			t.Errorf("punctuation %U", r)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.IsSpace(r) != Is(r, Whitespace) {
			t.Errorf("white space %U", r)
		}
	}
	for _, s := range []Ranges{Set(" extends"), Set(" prepends")} {
		if s[0].First < 0x300 {
			t.Errorf("%U is not where GraphemeOf looks", s[0].First)
		}
	}
	controls := Set(" controls")
	for r := rune(0); r < 0x300; r++ {
		if controls.Has(r) != (GraphemeOf(r) == GraphemeControl) {
			t.Errorf("control %U", r)
		}
	}
	if b.Stripped['é'] != "e" || b.Lower['İ'] != "i̇" || !b.Chinese.Has('中') || b.Chinese.Has('a') {
		t.Error("tables are off")
	}
}
