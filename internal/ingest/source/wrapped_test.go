package source

import (
	"fmt"
	"strings"
	"testing"
)

// lineOf makes n words that follow from i, so that lines differ.
func lineOf(i, n int) string {
	const words = "the of and to in river mountain seventeen yellow bicycle however nothing quickly letter under"
	list := strings.Fields(words)
	var out []string
	for k := range n {
		out = append(out, list[(i*i*7+k*k*3+k*i)%len(list)])
	}
	return strings.Join(out, " ")
}

// filled breaks text at a width.
func filled(text string, width int) string {
	var out, line []string
	for _, w := range strings.Fields(text) {
		if len(strings.Join(append(line, w), " ")) > width {
			out, line = append(out, strings.Join(line, " ")), nil
		}
		line = append(line, w)
	}
	return strings.Join(append(out, strings.Join(line, " ")), "\n")
}

func joined(n int, separator string, line func(i int) string) string {
	var out []string
	for i := range n {
		out = append(out, line(i))
	}
	return strings.Join(out, separator) + "\n"
}

func TestLooksWrapped(t *testing.T) {
	sentence := func(i int) string { return "The " + lineOf(i, 6+i%11) + "." }
	paragraph := func(i int) string {
		return joined(9, " ", func(k int) string { return sentence(9*i + k) })
	}
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"paragraphs":        {joined(20, "\n\n", func(i int) string { return filled(paragraph(i), 72) }), true},
		"paragraphs, lower": {joined(9, "\n\n", func(i int) string { return filled(lineOf(i, 60), 72) }), true},
		"no blank lines":    {joined(20, "\n", func(i int) string { return filled(paragraph(i), 64) }), true},
		"CRLF":              {strings.ReplaceAll(filled(paragraph(1)+paragraph(2), 40), "\n", "\r\n"), true},
		"Chinese": {joined(50, "\n",
			func(i int) string { return strings.Repeat(string(rune(0x4e00+i)), 40) }), true},
		"Go":                 {"func f() {\n\tif x {\n\t\treturn\n\t}\n}\n\nvar a = 1\n", true},
		"Python":             {"def f(x):\n    return x\n\n\nclass A:\n    pass\n", true},
		"verses":             {joined(9, "\n\n", func(i int) string { return filled(lineOf(i, 16), 24) }), true},
		"sentences":          {joined(99, "\n", sentence), false},
		"sentences, grouped": {joined(30, "\n\n", func(i int) string { return joined(5, "\n", sentence) }), false},
		"lower, no marks":    {joined(99, "\n", func(i int) string { return lineOf(i, 3+i%17) }), false},
		"paragraphs on lines": {joined(30, "\n\n", func(i int) string { return strings.TrimSpace(paragraph(i)) }),
			false},
		"documents on lines": {joined(30, "\n", func(i int) string { return lineOf(i, 80+i) }), false},
		"a template": {joined(99, "\n",
			func(i int) string { return fmt.Sprintf("document number %02d of the corpus we made here", i) }), false},
		"another template": {joined(99, "\n",
			func(i int) string { return lineOf(i, 1) + " sailed to the harbour at the end of the world" }), false},
		"headlines": {joined(99, "\n", func(i int) string { return strings.ToUpper(lineOf(i, 3+i%6)) }),
			false},
		"words":  {joined(99, "\n", func(i int) string { return lineOf(i, 1) }), false},
		"hashes": {joined(99, "\n", func(i int) string { return fmt.Sprintf("%064x", i) }), false},
		"Chinese sentences": {joined(50, "\n", func(i int) string { return strings.Repeat("字", 5+i) + "。" }),
			false},
		"numbered, all aligned": {joined(99, "\n", func(i int) string { return fmt.Sprintf("%6d\t", i) + sentence(i) }),
			false},
		"only later": {joined(200, "\n", sentence) +
			joined(99, "\n\n", func(i int) string { return filled(paragraph(i), 72) }), false},
		"few lines": {"one\n  two\nthree\n", false},
		"blank":     {"\n \n\n", false},
	} {
		if got := looksWrapped([]byte(c.text), true); got != c.want {
			t.Errorf("%s: %t\n%.300s", name, got, c.text)
		}
	}
}

// A folder may have a million small texts, and each is looked at.
func TestLooksWrappedAllocates(t *testing.T) {
	text := []byte(joined(99, "\n", func(i int) string { return "The " + lineOf(i, 12) + " (and so on)." }))
	if n := testing.AllocsPerRun(10, func() { looksWrapped(text, true) }); n > 2 {
		t.Errorf("%v allocations for %d lines, want one for the lines and one for their widths", n, 99)
	}
}

// One record of an input, or of a member, says that it looks wrapped, where no format was given, and
// not again after a resume.
func TestWrappedIsSaidOnce(t *testing.T) {
	wrapped := joined(9, "\n\n", func(i int) string { return filled(lineOf(i, 60), 72) })
	plain := "One.\nTwo.\nThree.\nFour.\nFive.\nSix.\n"
	dir := t.TempDir()
	a := write(t, dir, "a.txt", wrapped)
	b := write(t, dir, "b.tar", tarred(t, file{"x.txt", plain}, file{"y.txt", wrapped}, file{"z.txt", wrapped}))
	for _, c := range []struct {
		args   []string
		format Format
		want   int
	}{{[]string{a}, Auto, 1}, {[]string{a, b, a}, Auto, 4}, {[]string{b}, Tar, 2}, {[]string{a}, Text, 0},
		{[]string{write(t, dir, "c.txt", plain)}, Auto, 0}} {
		set := openSet(t, Options{Args: c.args, Format: c.format})
		r, err := set.Reader(Position{})
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		for n := 1; ; n++ {
			var rec Record
			if _, err := r.Next(nil, &rec); err != nil {
				break
			}
			if rec.Wrapped {
				said++
			}
			if n%7 == 0 { // in another process
				at := r.Position()
				r.Close()
				if r, err = set.Reader(at); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.Close()
		if said != c.want {
			t.Errorf("%v as %s: said %d times, want %d", c.args, c.format, said, c.want)
		}
	}
}
