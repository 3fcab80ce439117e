package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/google/go-cmp/cmp"
)

func put(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadConfiguration(t *testing.T) {
	got, err := ReadConfiguration(put(t, "c.yaml", "a: 1e-5\nb: [8, .inf, {1: x}]\nc: &n {d: null, on: yes}\ne: *n\n2: 1_000\nwhen: 2026-11-27\n"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"2":1000,"a":0.00001,"b":[8,"+Inf",{"1":"x"}],"c":{"d":null,"on":"yes"},"e":{"d":null,"on":"yes"},` +
		`"when":"2026-11-27T00:00:00Z"}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"a: [1, 2\nb: 3\n":          "line ",
		"a: 1\n\tb: 2\n":            "line 2: ",
		"a: 1\na: 2\n":              `line 2: mapping key "a" already defined at line 1`,
		"just words\n":              "it has no settings",
		"[1, 2]\n":                  "it has no settings",
		"":                          "it has no settings",
		"a: 1\n---\na: 2\n":         "several documents",
		"{\n\t\"a\": 1,\n\t\"b\"\n": "line ",
		strings.Repeat("#", maxConfigurationBytes+1): "more than 4194304 bytes",
		"a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\n" +
			"d: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d]\n" +
			"f: &f [*e, *e, *e, *e, *e, *e, *e, *e]\ng: [*f, *f, *f, *f, *f, *f, *f, *f]\n": "excessive aliasing",
	} {
		if _, err := ReadConfiguration(put(t, "c.yaml", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadConfiguration(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A Python that answers wrongly is an error with its last words, and one without the package is not the last one asked.
func TestAskingPython(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "env"))
	t.Setenv("PATH", filepath.Join(dir, "path"))
	t.Setenv("DSLOAD_PYTHON", filepath.Join(dir, "own"))
	answer := func(name, script string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const missing = `echo "ModuleNotFoundError: No module named 'dsload.memory.checkup'" >&2; exit 1`
	ask := func() (*Checkup, error) {
		return Check(context.Background(), filepath.Join(dir, "c.yaml"), map[string]any{"a": 1})
	}
	if _, err := ask(); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "python3 is not on PATH") {
		t.Error(err)
	}
	answer("env/bin/python3", missing)
	answer("path/python3", missing)
	if _, err := ask(); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "path/python3") ||
		!strings.Contains(err.Error(), "pip install -U dsload") {
		t.Error(err)
	}
	answer("own", `read asked; case $asked in *'"folder":"'*'"config"'*|*'"config":{"a":1}'*) `+
		`echo '{"text": "said", "result": {"a": 1}, "absurd": 2}' ;; esac`)
	c, err := ask()
	if err != nil || c.Text != "said" || c.Absurd != 2 || string(c.Result) != `{"a": 1}` {
		t.Errorf("%+v, %v", c, err)
	}
	answer("path/python3", "echo first >&2; echo 'ValueError: last' >&2; exit 1")
	if _, err := ask(); err == nil || !strings.HasSuffix(err.Error(), "ValueError: last") {
		t.Error(err)
	}
}

// A python3 in this folder is not one of the environment or on PATH.
func TestPythonOfThisFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("PATH", "")
	t.Setenv("DSLOAD_PYTHON", "")
	if err := os.Mkdir("bin", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bin/python3", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := pythons(); len(got) > 0 {
		t.Error(got)
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add("a: 1\nb: [.nan, {x: y}]\n")
	f.Add("? [a]\n: &x {<<: {b: 2}}\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if config, err := ReadConfiguration(path); err == nil {
			if _, err := json.Marshal(config); err != nil {
				t.Error(err)
			}
		}
	})
}
