package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/shard"

	"github.com/dsload/dsload/internal/tokenizers"
)

// TestHistogram checks that a histogram has every row, begins with one, has no line wider than asked for, and
// draws a bar where there are rows.
func TestHistogram(t *testing.T) {
	for _, lengths := range [][][3]int64{
		{{1, 5, 5}}, {{8, 5, 40}}, {{100, 3, 300}, {104, 1, 104}}, {{0, 1, 0}, {7, 9, 63}, {127, 1_000_000, 127_000_000}},
		{{128, 5, 640}, {4096, 12, 50_000}, {1 << 20, 1, 1 << 20}},
	} {
		_, longest := shard.BucketBounds(lengths[len(lengths)-1][0])
		longest -= (longest - lengths[len(lengths)-1][0]) / 2 // a build that cuts rows ends its last bucket early
		var want float64
		for _, b := range lengths {
			want += float64(b[1])
		}
		for _, width := range []int{40, 80, 200} {
			text := histogram(lengths, longest, width)
			var got float64
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d columns of %d: %q", n, width, line)
				}
				var n float64
				if strings.Contains(line, formatCount(longest+1)) {
					t.Errorf("%q, where the longest is %d", line, longest)
				}
				m := regexp.MustCompile(`^ +[\d,]+(?:–[\d,]+)? +([\d,]+)`).FindStringSubmatch(line)
				if m == nil {
					t.Fatalf("%q", line)
				}
				fmt.Sscan(strings.ReplaceAll(m[1], ",", ""), &n)
				if got == 0 && n == 0 {
					t.Errorf("an empty line before the first with rows:\n%s", text)
				}
				got += n
				if (n > 0) != strings.ContainsAny(line, "▏▎▍▌▋▊▉█") {
					t.Errorf("%v rows: %q", n, line)
				}
			}
			if got < want-maxBins || got > want+maxBins || strings.Count(text, "\n") > maxBins {
				t.Errorf("%v of %v rows:\n%s", got, want, text)
			}
		}
	}
	if text := histogram(nil, 0, 80); text != "" {
		t.Errorf("no rows: %q", text)
	}
}

// TestExplainInColours checks that colours end with each token, and that nothing in the text acts
// on the terminal.
func TestExplainInColours(t *testing.T) {
	tok, err := tokenizers.Open("gpt2", tokenizers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := &explainer{tokenizer: tok, colours: true}
	if err := e.write(&out, []byte("Hello, \x1b]0;pwned\x07 world\u202e")); err != nil {
		t.Fatal(err)
	}
	sgr := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	codes := sgr.FindAllString(out.String(), -1)
	seen := map[string]bool{}
	for i, code := range codes {
		if (i%2 == 1) != (code == endColours) {
			t.Fatalf("codes %q", codes)
		}
		seen[code] = true
	}
	if len(seen) < 3 {
		t.Errorf("codes %v", seen)
	}
	if rest := sgr.ReplaceAllString(out.String(), ""); strings.IndexFunc(rest, acts) >= 0 ||
		!strings.Contains(rest, "␛]0;pwned␇") {
		t.Errorf("%q", rest)
	}
}
