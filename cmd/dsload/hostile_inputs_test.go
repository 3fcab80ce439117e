//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// file writes the parts into a file with the given extension.
func (m *hostileMaker) file(ending string, parts ...any) string {
	m.t.Helper()
	m.n++
	path := filepath.Join(m.dir, fmt.Sprintf("f%d%s", m.n, ending))
	f, err := os.Create(path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	writeParts(m.t, f, parts...)
	return path
}

// times is a text that is repeated.
type times struct {
	text string
	n    int
}

func writeParts(t *testing.T, w io.Writer, parts ...any) {
	for _, part := range parts {
		p, ok := part.(times)
		if !ok {
			p = times{fmt.Sprint(part), 1}
		}
		block := strings.Repeat(p.text, max(1, min(p.n, (64<<10)/max(1, len(p.text)))))
		for left := p.n * len(p.text); left > 0; left -= len(block) {
			if _, err := io.WriteString(w, block[:min(left, len(block))]); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// word is a string of one of the kinds that engines find hard.
func (m *hostileMaker) word() string {
	return pick(m, "a", "ab ", " ", "é", "\u0301", "word number 7, ", "👩\u200d", "中文", "\xff", "<&\"'>", "0123456789",
		"Ａ", "{{.text}}", "\t", "İ", "zzzzzzzz")
}

// template draws templates that double, pad, escape, loop, recur and print.
func (m *hostileMaker) template() hostileCase {
	var b strings.Builder
	big := pick(m, `"x"`, `text`, `big`, `"%99999d" % 1`, `"%999999s" % ""`)
	fmt.Fprintf(&b, `{%% set n = namespace(x=%s) %%}`, big)
	for range 1 + m.rnd.IntN(5) {
		step := pick(m, `{% set n.x = n.x ~ n.x %}`, `{% set n.x = [n.x, n.x, n.x] | join(n.x) %}`,
			`{% set n.x = n.x | escape | string %}`, `{% set n.x = n.x | urlencode %}`, `{% set n.x = n.x | upper %}`,
			`{% set n.x = n.x | tojson %}`, `{% set n.x = "%s%s%s%s" % (n.x, n.x, n.x, n.x) %}`,
			`{% set n.x = n.x | replace("<", n.x) %}`, `{% set y = "%999999d%999999d" % (1, 2) %}`,
			`{% set y = map | string %}`, `{% set y = record | tojson(indent=999999) %}`, `{% set y = 9 ** 99999 %}`,
			`{% if n.x == n.x %}{% endif %}`, `{% for i in list %}{% for i in list %}{% endfor %}{% endfor %}`,
			`{% for k in map %}{% endfor %}`, `{{ n.x }}`, `{{ map }}`, `{{ list | sort | unique | list }}`)
		switch m.rnd.IntN(4) {
		case 0:
			fmt.Fprintf(&b, `{%% for i in range(%d) %%}%s{%% endfor %%}`, pick(m, 10, 1000, 99999, 1<<62), step)
		case 1:
			b.WriteString(strings.Repeat(step, 1+m.rnd.IntN(40)))
		case 2:
			name := pick(m, "r", "s", "t")
			fmt.Fprintf(&b, `{%% macro %s() %%}%s{{ %[1]s() }}{%% endmacro %%}{{ %[1]s() }}`, name, step)
		default:
			b.WriteString(step)
		}
	}
	b.WriteString(`{{ n.x | length }} {{ text }}`)
	n := pick(m, 1, 1000, 100000)
	data := m.file(".jsonl", `{"text":"t","big":"`, times{"b<é", n}, `","list":[`, times{"1,", n}, `1],"map":{"":0`,
		times{`,"k":1`, 3}, `}}`, "\n")
	return hostileCase{cap: m.caps(), args: []string{"build", data, "--template", m.file(".jinja", b.String()),
		"--on-bad-record", pick(m, "fail", "skip")}}
}

// regex draws patterns of a pre-tokenizer.
func (m *hostileMaker) regex() hostileCase {
	var b strings.Builder
	n := pick(m, 10, 1000, 20000, 100000)
	switch m.rnd.IntN(4) {
	case 0:
		for i := range n {
			fmt.Fprintf(&b, "w%x|", i)
		}
		b.WriteString("x")
	case 1:
		b.WriteString(strings.Repeat("(", n) + "a" + strings.Repeat(")", n))
	case 2:
		b.WriteString(strings.Repeat("(a{0,1000})", min(n, 100)))
	case 3:
		b.WriteString(strings.Repeat(pick(m, `\p{L}?`, `[a-z]*`, `(?:a|b)+`, `\s*`), min(n, 1000)))
	}
	j := plainTokenizer()
	j["pre_tokenizer"] = map[string]any{"type": "Split", "pattern": map[string]string{"Regex": b.String()},
		"behavior": "Isolated", "invert": false}
	data, err := json.Marshal(j)
	if err != nil {
		m.t.Fatal(err)
	}
	return hostileCase{cap: m.caps(), args: []string{"build", m.file(".txt", "w1 w2 aaa\n", times{m.word(), 20000},
		"\n"), "--format", "text", "--tokenizer", m.file(".json", string(data))}}
}

// data draws JSON lines whose values take more memory decoded than written.
func (m *hostileMaker) data() hostileCase {
	element := pick(m, `{"":0},`, `[],`, `"",`, `{},`, `1,`, `{"a":[{}]},`, `null,`, `"\u0041",`)
	n := pick(m, 100, 50000, 590000)
	n = min(n, (4<<20-100)/len(element))
	parts := []any{`{"text":"a","x":[`, times{element, n}, "0]}\n"}
	if m.rnd.IntN(4) == 0 {
		parts = []any{`{"text":"a","x":`, times{"[", n}, times{"]", n}, "}\n"}
	}
	var all []any
	for range 1 + m.rnd.IntN(4) {
		all = append(all, parts...)
	}
	args := []string{"build", m.file(".jsonl", all...), "--on-bad-record", pick(m, "fail", "skip")}
	if body := pick(m, "", "{{ text }}", "{% for i in x %}{{ i }}{% endfor %}", "{{ x | length }}", "{{ record }}"); body != "" {
		args = append(args, "--template", m.file(".jinja", body))
	}
	return hostileCase{cap: m.caps(), args: args}
}

// line draws one very long line, also through standard input.
func (m *hostileMaker) line() hostileCase {
	parts := []any{times{m.word(), pick(m, 1000, 1<<20, 4<<20)}, times{m.word(), pick(m, 1, 1<<18)}, "\n"}
	c := hostileCase{cap: m.caps(), args: []string{"build", "--format",
		pick(m, "text", "document", "auto", "jsonl", "csv"), "--max-length", fmt.Sprint(pick(m, 1, 512, 1<<18))}}
	if m.rnd.IntN(2) == 0 {
		c.args = append(c.args, "-")
		c.feed = func(stdin io.Writer) {
			for _, part := range parts {
				p, ok := part.(times)
				if !ok {
					p = times{fmt.Sprint(part), 1}
				}
				if _, err := io.Copy(stdin, io.LimitReader(&endless{text: p.text},
					int64(p.n*len(p.text)))); err != nil {
					return // the program has ended, which is judged elsewhere
				}
			}
		}
		return c
	}
	c.args = append(c.args, m.file(".txt", parts...))
	return c
}

// endless repeats a text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// bomb draws small files that decompress to large ones.
func (m *hostileMaker) bomb() hostileCase {
	var b bytes.Buffer
	ending := pick(m, ".gz", ".zst")
	var w io.WriteCloser = gzip.NewWriter(&b)
	if ending == ".zst" {
		encoder, err := zstd.NewWriter(&b, zstd.WithWindowSize(pick(m, 1<<16, 8<<20, 64<<20)))
		if err != nil {
			m.t.Fatal(err)
		}
		w = encoder
	}
	writeParts(m.t, w, times{pick(m, "\x00", "a", "a\n", m.word(), `{"text":"a"}`+"\n", "\n"), pick(m, 1<<20, 8<<20)})
	if err := w.Close(); err != nil {
		m.t.Fatal(err)
	}
	return hostileCase{cap: m.caps(), args: []string{"build", m.file(".txt"+ending, b.String()), "--format",
		pick(m, "auto", "text", "document")}}
}
