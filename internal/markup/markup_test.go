package markup

import "testing"

type named string

func TestFormatEscapesAllTextButMarkup(t *testing.T) {
	const hostile = "<i a=\"b\" c='d'>&amp;\u202e\x1b"
	const escaped = "&lt;i a=&#34;b&#34; c=&#39;d&#39;&gt;&amp;amp;⟨U+202E⟩␛"
	for _, c := range []struct {
		format string
		args   []any
		want   HTML
	}{
		{"<b>%s</b>", []any{hostile}, "<b>" + escaped + "</b>"},
		{"<b>%s</b>", []any{named(hostile)}, "<b>" + escaped + "</b>"},
		{"<b>%v</b>", []any{[]string{hostile}}, "<b>[" + escaped + "]</b>"},
		{"<b>%s</b>", []any{HTML("<i>")}, "<b><i></b>"},
		{`<b x="%d">%s</b>`, []any{12, int64(13)}, `<b x="12">13</b>`},
	} {
		if got := Format(c.format, c.args...); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.format, c.args, got, c.want)
		}
	}
}

func TestFill(t *testing.T) {
	slots := map[string]HTML{"a": "{{b}}", "b": "<i>"}
	if got := Fill("x{{a}}{{b}}\n{{b}}y", slots); got != "x{{b}}<i>\n<i>y" {
		t.Errorf("filled: %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a slot without content is left out")
		}
	}()
	Fill("{{c}}", slots)
}

func TestEach(t *testing.T) {
	got := Each([]string{"a", "<"}, func(i int, s string) HTML { return Format("<b>%d %s</b>", i, s) })
	if got != "<b>0 a</b><b>1 &lt;</b>" {
		t.Errorf("each: %q", got)
	}
}
