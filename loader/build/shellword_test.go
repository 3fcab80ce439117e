package build

import "testing"

func TestShellWord(t *testing.T) {
	for name, want := range map[string]string{"text": "text", "a.b": "a.b", "größe": "größe",
		"Full Text": "'Full Text'",
		"it's":      `'it'\''s'`, "a[0]": "'a[0]'", "$x": "'$x'"} {
		if got := shellWord(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
