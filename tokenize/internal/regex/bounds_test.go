package regex

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/effort"
)

func mustCompile(t testing.TB, pattern string) *Regex {
	t.Helper()
	re, err := Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

// TestStepsStayLinear runs patterns whose plain backtracking is quadratic or exponential and counts
// steps, not time.
func TestStepsStayLinear(t *testing.T) {
	const n = 20000
	a, mixed := strings.Repeat("a", n), strings.Repeat("ab", n/2)
	for _, c := range []struct{ pattern, text string }{
		{`(a|a)*b`, a}, {`(?:a+)+b`, a}, {`(?:a*)*b`, a}, {`(?:a?b?)*c`, mixed}, {`a*a*a*a*b`, a}, {`a+b|a`, a},
		{`a++b|a`, a},
		{`(?=.*x)a|a`, a}, {`(?:a(?=.*b|a))+c|a`, a}, {`(?<=a*b)a|a`, a}, {`(?>a*)b|a`, a}, {`(?:(?>a*)b|a)+c`, a},
		{`(?:a+?)+?b`, a},
		{`(?:(?:a|ab)*)*c`, mixed}, {`\s*[\r\n]+|\s+(?!\S)|\s+`, strings.Repeat(" ", n)},
		{patternO200k, strings.Repeat("A", n)},
		{patternCL100k, strings.Repeat("\u0301", n)}, {`(?:(?!b)[a-z])+c|a`, a},
		{`a{2,5000}b|a`, a}, {`a{2,5000}?b|a`, a}, {`a{2,5000}+b|a`, a}, {`a{3000,5000}b|a`, a}, {`a{5000,}b|a`, a},
		{`(?:a{1,5000}b?)*c|a`, a},
		{`(?:a{1,5000}?b?)*c|a`, a}, {`(?<=ba{2,5000})a|a`, a}, {`(?<=ba{2,5000}?)a|a`, a}, {`(?=a{2,5000}b)a|a`, a},
		{`(?:a{0,5000}b?)+?c|a`, a},
		{`[ab]{9,5000}[b-c]{9,5000}d|.`, mixed}, {`é{2,5000}b|é`, strings.Repeat("é", n/2)},
		{`(?:a{2,900}|b{2,900})*c|.`, strings.Repeat(a[:1000]+strings.Repeat("b", 1000), n/2000)},
	} {
		checkSteps(t, c.pattern, c.text, 200)
	}
}

// TestStepsOfAMegabyte: the table of outcomes, whose size is bounded, forgets some of so long a
// text, which must not matter.
func TestStepsOfAMegabyte(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	a := strings.Repeat("a", 1<<20)
	for _, pattern := range []string{`a*b`, `(?=.*x)a|a`, `a{2,5000}b|a`} {
		checkSteps(t, pattern, a, 50)
	}
}

// checkSteps finds all matches and counts the steps a byte.
func checkSteps(t *testing.T, pattern, text string, limit int) {
	t.Helper()
	m := newMachine(mustCompile(t, pattern).prog)
	m.begin([]byte(text))
	for from := 0; from <= len(text); {
		start, end := m.search(from)
		if start < 0 {
			break
		}
		from = max(end, start+1)
	}
	if m.steps > limit*len(text) {
		t.Errorf("%q: %d steps for %d bytes", pattern, m.steps, len(text))
	}
	m.finish()
}

// TestCountedLoops: remembering changes no match of patterns with loops that have bounds, small
// ones, so that texts run over them (I4).
func TestCountedLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var part func(depth int) string
	part = func(depth int) string {
		if depth == 0 || r.IntN(3) == 0 {
			low := r.IntN(6)
			return fmt.Sprintf("%s{%d,%d}%s", pick("a", "é", "[ab]", "[^b]", "."), low, low+r.IntN(12),
				pick("", "", "?", "+"))
		}
		inner := part(depth - 1)
		for range r.IntN(3) {
			inner += pick("", "|", "b", "a?") + part(depth-1)
		}
		return pick("(?:", "(?:", "(?:", "(?=", "(?!", "(?>") + inner + ")" + pick("", "*", "+?", "{1,4}", "?")
	}
	remembered := 0
	for range 4000 {
		pattern := pick("", "", "(?<=[ab]{1,7})", "(?<=b[^b]{0,7}?)") + part(2) + pick("", "b", "c") +
			pick("", "|a", "|.")
		re, err := Compile(pattern)
		if err != nil {
			continue
		}
		remembered += re.prog.counted
		var text []byte
		for range r.IntN(60) {
			text = append(text, pick("a", "a", "a", "a", "a", "é", "b", "\xc3", "\xa9")...)
		}
		if got, want := re.matchesRemembering(text, true), re.matchesRemembering(text, false); !slices.Equal(got,
			want) {
			t.Fatalf("%q on %q: remembering %v, else %v", pattern, text, got, want)
		}
	}
	if remembered < 2000 {
		t.Errorf("%d loops with bounds", remembered)
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	if effort.Raced() {
		t.Skip("allocations cannot be counted under the race detector")
	}
	text := []byte(strings.Repeat("Hello, World! It's 2024; I'VE 12345 things\n\n  日本語テキスト ", 20))
	for _, pattern := range []string{patternGPT2, patternCL100k, patternO200k, `(?:a|b)*c`, `(?<=\w)\b`} {
		re := mustCompile(t, pattern)
		dst := re.AppendMatches(nil, text)
		if n := testing.AllocsPerRun(20, func() { dst = re.AppendMatches(dst[:0], text) }); n != 0 {
			t.Errorf("%q: %v allocations", pattern, n)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	re := mustCompile(t, patternO200k)
	text := []byte(strings.Repeat("camelCase HTTPServer 12345 \n\n", 50))
	want := re.AppendMatches(nil, text)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if !slices.Equal(re.AppendMatches(nil, text), want) {
					t.Error("another result when run concurrently")
				}
			}
		})
	}
	wg.Wait()
}

func TestFindAt(t *testing.T) {
	re := mustCompile(t, `(?<=a)b`)
	for _, c := range []struct {
		text             string
		from, start, end int
	}{{"ab", 0, 1, 2}, {"ab", 1, 1, 2}, {"ab", 2, -1, -1}, {"", 0, -1, -1}, {"b", 0, -1, -1}, {"a\xffab", 0, 3, 4}} {
		if s, e := re.FindAt([]byte(c.text), c.from); s != c.start || e != c.end {
			t.Errorf("FindAt(%q, %d) = %d, %d; want %d, %d", c.text, c.from, s, e, c.start, c.end)
		}
	}
	if got := mustCompile(t, `.`).AppendMatches(nil, []byte("a\xe4\xbd\xf0")); !slices.Equal(got,
		[]int{0, 1, 1, 2, 2, 3, 3, 4}) {
		t.Errorf("ill-formed bytes match as %v", got)
	}
}

func TestRefused(t *testing.T) {
	for pattern, reason := range map[string]string{
		`(a)\1`: "back-references", `a\K`: `\K`, `\G`: `\G`, `(?(1)a)`: "group option", `(?~a)`: "group option",
		`(?P<n>a)`: "group option", `(?s).`: "group option",
		`*a`: "nothing to repeat", `a|+`: "nothing to repeat", `{2}`: "nothing to repeat",
		`^*`: "repeat of an assertion", `(a`: "not closed", `a)`: "unmatched",
		`[a`: "not closed", `[z-a]`: "empty range", `[a-\d]`: "range that ends with a set",
		`\p{Klingon}`: "not known", `[[:foo:]]`: "not known",
		`a{1,100001}`: "repeat count", `(?:(?:ab){1000}){1000}`: "too large", `(?<=(?>a))b`: "look-behind",
		`a{3,1}`: "lower bound",
		strings.Repeat("(", 200) + strings.Repeat(")", 200): "nested", `\x{110000}`: "not a character",
		`\xff`: "not one UTF-8", "\xff": "not UTF-8",
		`(?i)` + strings.Repeat("s", 100): "too many strings", `\`: "ends too early",
	} {
		_, err := Compile(pattern)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Reason, reason) {
			t.Errorf("Compile(%.40q): %v, want a reason with %q", pattern, err, reason)
		}
	}
}

// FuzzCompile: no pattern panics, and remembering outcomes changes no match (I4).
func FuzzCompile(f *testing.F) {
	for _, p := range []string{patternGPT2, patternCL100k, patternO200k, `(?i)ss|ß+`, `[a&&[^b-c]]*?x{2,3}`,
		`(?<=a|b*)c`, `(?:(a?)*|b)*+c`, `(?:a{2,9}|b{1,5}?)*c|.`, `(?<=a{1,6})b{0,7}+c`, `\X\R`, `(?x) a # b`} {
		f.Add(p, "abc ab\u0301ß 12\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := Compile(pattern)
		if err != nil || len(text) > 30 {
			return
		}
		m := newMachine(re.prog)
		m.begin([]byte(text))
		start, end := m.search(0)
		m.memo.start()
		if s, e := m.search(0); s != start || e != end {
			t.Errorf("%q on %q: %d, %d; remembering from the start %d, %d", pattern, text, start, end, s, e)
		}
	})
}

func BenchmarkMatches(b *testing.B) {
	prose := []byte(strings.Repeat("The quick brown fox jumps over 12 lazy dogs; isn't that nice? \n", 200))
	han := []byte(strings.Repeat("日本語テキストと漢字。", 500))
	for _, c := range []struct {
		name, pattern string
		text          []byte
	}{
		{"gpt2/prose", patternGPT2, prose}, {"o200k/prose", patternO200k, prose}, {"o200k/han", patternO200k, han},
		{"gpt2/spaces", patternGPT2, bytes.Repeat([]byte(" "), 20000)}, {"digits", `\p{N}{1,3}`, prose},
	} {
		b.Run(c.name, func(b *testing.B) {
			re := mustCompile(b, c.pattern)
			b.SetBytes(int64(len(c.text)))
			var dst []int
			for b.Loop() {
				dst = re.AppendMatches(dst[:0], c.text)
			}
			if len(dst) == 0 {
				b.Fatal("no matches")
			}
		})
	}
}

// TestPatternLimits compiles patterns whose trees, sets or programs would be huge: each is refused
// by its limit, in little memory.
func TestPatternLimits(t *testing.T) {
	classes := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "[\\p{L}%c]", rune(0xE000+i))
		}
		return b.String()
	}
	var words strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&words, "w%x|", i)
	}
	for name, pattern := range map[string]string{
		"alternatives": words.String() + "w", "classes": classes(2500), "counted": `(?:\p{L}{1,999}x){1,9999}`,
		"long":  strings.Repeat("a", maxPattern+1),
		"folds": "(?i)" + strings.Repeat("ss", 12) + strings.Repeat("x", 30000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Compile(pattern)
		runtime.ReadMemStats(&after)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !syntax.TooLarge {
			t.Errorf("%s: error %v, want one that says TooLarge", name, err)
			continue
		}
		if len(err.Error()) > 500 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d MiB allocated before it is refused", name, n>>20)
		}
	}
	for name, pattern := range map[string]string{"ideographs": alternatives(6000), "scripts": classes(100)} {
		re, err := Compile(pattern)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if re.Bytes() < int64(len(pattern)) {
			t.Errorf("%s: a program of %d bytes", name, re.Bytes())
		}
	}
}

// alternatives lists n ideographs.
func alternatives(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "|%c", rune(0x4E00+i))
	}
	return b.String()[1:]
}

// TestSearchBytes searches the longest pieces that a build makes with patterns that remember and
// stack as much as they can: what the machine holds stays below SearchBytes, with room to grow.
func TestSearchBytes(t *testing.T) {
	texts := [][]byte{bytes.Repeat([]byte("ab"), 64<<10), bytes.Repeat([]byte("a"), 128<<10)}
	for _, c := range []struct {
		pattern string
		loops   bool
	}{
		{`(?:a|aa|a?b)*c|x`, true}, {`(?:(?:a|b)(?=a*b*c))*z`, true}, {`(?:[ab]*[ac]*)*d`, true},
		{`.{1,9000}?z|a`, false}, {`\p{L}+|\s+(?!\S)`, false},
	} {
		re := mustCompile(t, c.pattern)
		if loops := re.SearchBytes() > memoBytes; loops != c.loops {
			t.Errorf("%s: %d bytes", c.pattern, re.SearchBytes())
		}
		for _, text := range texts {
			s := re.Search(text)
			for at, n := 0, 0; at >= 0 && n < 3; n++ {
				_, at = s.FindAt(at)
			}
			frames, entries := cap(s.m.stack), cap(s.m.memo.table)
			held := int64(frames)*int64(unsafe.Sizeof(frame{})) + int64(entries)*int64(unsafe.Sizeof(memoEntry{}))
			if held+held/4 > re.SearchBytes() {
				t.Errorf("%s: a search holds %d bytes, which takes more than %d while it grows", c.pattern, held,
					re.SearchBytes())
			}
			s.Close()
		}
	}
}
