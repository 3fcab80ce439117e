package jinja

import (
	"strings"
	"testing"
)

// A plain loop gives what a general one does, at the same charge.
func TestPlainLoopsEqualOthers(t *testing.T) {
	words := &List{}
	for i := range 120 {
		words.Items = append(words.Items, strings.Repeat("é", i*i%3000))
	}
	mixed := &List{Items: []any{"a", int64(1), true, 2.5, &List{}}}
	for _, body := range []string{"{% for x in l %}- {{ x }}\n{% endfor %}", "{% for x in l %}{{ loop.index }}. {{ x }}{% endfor %}",
		"{% for x in l %}{% endfor %}", "{% for x in l %}{{ x }}{{ x }}{{ loop.index }}{{ loop.index }}{% endfor %}",
		"{% for x in l %}" + strings.Repeat("a", 3000) + "{{ x }}{% else %}none{% endfor %}",
		"{% set q %}{% for x in l %}{{ x }}{% endfor %}{% endset %}{{ q }}",
		"{% for x in l %}{% for y in l %}{{ y }},{% endfor %}{% endfor %}"} {
		for _, list := range []*List{words, mixed, {}} {
			for _, limits := range []Limits{{1 << 20, 1 << 20, 1 << 20}, {4000, 1 << 20, 1 << 20}, {1 << 20, 3000, 1 << 20},
				{1 << 20, 1 << 20, 3000}} {
				run := func(general bool) (string, Limits, error) {
					tmpl, err := Parse(body)
					if err != nil {
						t.Fatal(err)
					}
					if general {
						dropPlain(tmpl.body)
					}
					d := &Dict{}
					d.Set("l", list)
					out, _, used, err := tmpl.Render([]byte("before "), d, Options{Limits: limits})
					return string(out), used, err
				}
				got, used, err := run(false)
				want, wantUsed, wantErr := run(true)
				if got != want || (err == nil) != (wantErr == nil) || err == nil && used != wantUsed {
					t.Errorf("%.50s, %d items, %v: %d bytes, %v, %v; want %d, %v, %v", body, len(list.Items), limits,
						len(got), used, err, len(want), wantUsed, wantErr)
				}
			}
		}
	}
}

func dropPlain(body []node) {
	for _, n := range body {
		switch n := n.(type) {
		case *forNode:
			n.plain = nil
			dropPlain(n.body)
		case *setBlockNode:
			dropPlain(n.body)
		}
	}
}

// Strings that lie in a builder's memory are as good as others.
func TestBoxedText(t *testing.T) {
	var b Builder
	var all []any
	for i := range 3000 {
		all = append(all, b.Text(strings.Repeat("x", i%7)))
	}
	for i, v := range all {
		if v != any(strings.Repeat("x", i%7)) {
			t.Fatalf("%d: %v", i, v)
		}
	}
}
