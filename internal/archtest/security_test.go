package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every test that docs/security.md and docs/compatibility.md name exists: a promise whose test was
// renamed or removed is no longer tested by anything.
func TestSecurityNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	compatibility, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	defined := regexp.MustCompile(`(?m)^(?:func |def )((?:Test|Fuzz|test_)\w*)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); strings.HasPrefix(name, ".") && name != ".." || name == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		switch name := d.Name(); {
		case strings.HasSuffix(name, ".txtar"):
			have[name] = true
		case strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "test_") && strings.HasSuffix(name, ".py"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range defined.FindAllStringSubmatch(string(source), -1) {
				have[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	named := regexp.MustCompile("`((?:Test|Fuzz|test_)\\w*|\\w+\\.txtar)`")
	names := named.FindAllStringSubmatch(string(text)+string(compatibility), -1)
	for _, m := range names {
		if !have[m[1]] {
			missing = append(missing, m[1])
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d tests are named", len(names))
	}
	if missing = slices.Compact(missing); len(missing) > 0 {
		t.Errorf("docs/security.md or docs/compatibility.md names tests that do not exist: %s",
			strings.Join(missing, ", "))
	}
	_, promises, found := strings.Cut(string(text), "## A corpus")
	if !found {
		t.Fatal("no promises")
	}
	for line := range strings.Lines(promises) {
		isPromise := strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| promise |") &&
			!strings.HasPrefix(line, "| --- |")
		if isPromise && !named.MatchString(line) {
			t.Errorf("no test holds: %s", line)
		}
	}
}
