package source

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestDocumentedFormats holds the formats of docs/formats.md against the constants of type Format.
func TestDocumentedFormats(t *testing.T) {
	var want []string
	for i := range formats {
		if formats[i].name != JSONChat { // which the text below the table describes
			want = append(want, string(formats[i].name))
		}
	}
	text, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	table := regexp.MustCompile("(?s)\\| `--format` .*?\n\n").Find(text)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` ").FindAllSubmatch(table, -1) {
		got = append(got, string(m[1]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 7 || !slices.Equal(want, got) {
		t.Errorf("docs/formats.md has the formats %v, the code %v", got, want)
	}
}
