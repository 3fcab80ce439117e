package shell

import "testing"

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{"text": "text", "a.b": "a.b", "größe": "größe",
		"Full Text": "'Full Text'", "it's": `'it'\''s'`, "a[0]": "'a[0]'", "$x": "'$x'", "": "''", "~a": "'~a'",
		"/tmp/s-1.sock": "/tmp/s-1.sock", "a\x1bb": "'a\x1bb'", "a,b": "'a,b'", "e\u0301": "'e\u0301'"} {
		if got := Quote(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	for s, want := range map[string]string{"a b": "'a b'", "-": "-", "-o": "./-o", "--out x": "'./--out x'", "": "''"} {
		if got := Path(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
