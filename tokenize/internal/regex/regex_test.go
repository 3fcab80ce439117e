package regex

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

type recordedText struct {
	Text     string
	Isolated []string
	Removed  []string
}

type recordedCase struct {
	Pattern string
	Error   string
	Texts   []recordedText
}

// readCases reads what gen/cases.py recorded. DSLOAD_REGEX_CASES names one more file, for longer
// comparisons than the project keeps.
func readCases(t *testing.T) []recordedCase {
	t.Helper()
	var cases []recordedCase
	for _, path := range []string{"testdata/cases.jsonl", os.Getenv("DSLOAD_REGEX_CASES")} {
		if path == "" {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var c recordedCase
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// pieces cuts text at matches as Split does: all non-empty pieces, and those that are not matches.
func pieces(text string, matches []int) (isolated, removed []string) {
	last := 0
	for i := 0; i < len(matches); i += 2 {
		start, end := matches[i], matches[i+1]
		if last != start {
			isolated = append(isolated, text[last:start])
			removed = append(removed, text[last:start])
		}
		if start != end {
			isolated = append(isolated, text[start:end])
		}
		last = end
	}
	if last != len(text) {
		isolated = append(isolated, text[last:])
		removed = append(removed, text[last:])
	}
	return isolated, removed
}

// Patterns that Oniguruma takes and this package refuses; each must be refused for its own reason.
var refused = []string{"not supported", "nested", "too large"}

func TestRecordedCases(t *testing.T) {
	compared, unsupported, failures := 0, 0, 0
	for i, c := range readCases(t) {
		if testing.Short() && i%3 > 0 {
			continue
		}
		re, err := Compile(c.Pattern)
		if c.Error != "" {
			continue // no file contains what Oniguruma refuses; TestRefused has what we must refuse too
		}
		if err != nil {
			if !slices.ContainsFunc(refused, func(s string) bool { return strings.Contains(err.Error(), s) }) {
				t.Errorf("%v", err)
			}
			unsupported++
			continue
		}
		for _, x := range c.Texts {
			for _, remember := range []bool{false, true} {
				matches := re.matchesRemembering([]byte(x.Text), remember)
				isolated, removed := pieces(x.Text, matches)
				if !slices.Equal(isolated, x.Isolated) || !slices.Equal(removed, x.Removed) {
					if failures++; failures <= 20 {
						t.Errorf("%q on %q (remembering %v):\n got %q, without matches %q\nwant %q, without matches %q",
							c.Pattern, x.Text, remember, isolated, removed, x.Isolated, x.Removed)
					}
					break
				}
			}
			compared++
		}
	}
	t.Logf("%d texts compared, %d patterns not supported", compared, unsupported)
	if failures > 20 {
		t.Errorf("%d failures in all", failures)
	}
	if compared < 1000 {
		t.Errorf("only %d texts compared", compared)
	}
}

// matchesRemembering is AppendMatches with a machine that remembers from the first step on, where
// that is asked for (I4).
func (re *Regex) matchesRemembering(text []byte, remember bool) []int {
	if !remember {
		return re.AppendMatches(nil, text)
	}
	m := newMachine(re.prog)
	m.begin(text)
	m.memo.start()
	var out []int
	last := -1
	for from := 0; from <= len(text); {
		start, end := m.search(from)
		if start < 0 {
			break
		}
		if start == end && end == last {
			_, n := decodeOr1(text, end)
			from = end + n
			continue
		}
		out = append(out, start, end)
		from, last = end, end
	}
	m.finish()
	return out
}

func decodeOr1(text []byte, pos int) (rune, int) {
	if pos >= len(text) {
		return 0, 1
	}
	return decode(text, pos)
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(patternO200k); err != nil {
			b.Fatal(err)
		}
	}
}

// FindAt is that of a Search for one match.
func (re *Regex) FindAt(text []byte, from int) (start, end int) {
	s := re.Search(text)
	start, end = s.FindAt(from)
	s.Close()
	return start, end
}

// AppendMatches appends the start and end of each match in text, as Hugging Face's tokenizers
// iterate them: an empty match directly after the previous match does not count, and the search
// continues one character later.
func (re *Regex) AppendMatches(dst []int, text []byte) []int {
	s := re.Search(text)
	last := -1
	for from := 0; from <= len(text); {
		start, end := s.FindAt(from)
		if start < 0 {
			break
		}
		if start == end && end == last {
			_, n := utf8.DecodeRune(text[end:])
			from = end + max(n, 1)
			continue
		}
		dst = append(dst, start, end)
		from, last = end, end
	}
	s.Close()
	return dst
}
