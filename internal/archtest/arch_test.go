// Package archtest holds the imports to the direction in which the data flows
// (docs/architecture.md), and the race detector to where there are goroutines.
package archtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dsload/dsload"

// allowed lists, for each place, the places of this module that it may import besides its own
// children. A place that ends in "!" is that package alone, without its children. The longest
// matching place governs a package.
var allowed = map[string][]string{
	"cmd/dsload": {"internal/fault", "loader", "shard", "export", "stats", "tokenize", "internal/page",
		"internal/counts", "internal/cputime", "internal/notify", "internal/procgroup", "internal/shell", "internal/units"},
	"stats":  {"shard", "tokenize", "loader/serve/sampler", "loader/pack", "internal/counts", "internal/units"},
	"export": {"internal/fault", "shard", "internal/counts"},
	"loader": {"internal/fault", "loader/internal", "loader/origins", "tokenize", "shard",
		"loader/remote"},
	"loader/pack": {},
	"loader/build": {"internal/fault", "loader!", "loader/internal", "loader/origins", "loader/pack", "loader/remote",
		"internal/counts", "internal/jsonscan", "internal/shell", "internal/units", "tokenize", "shard"},
	"loader/build/source":          {"internal/csvscan", "internal/fault", "internal/units", "internal/jsonscan", "internal/shell", "loader/remote"},
	"loader/remote":                {"internal/fault", "internal/units"},
	"loader/build/source/synth":    {"internal/units"},
	"loader/build/source/columnar": {"internal/fault", "internal/jsonscan", "internal/units"},
	"loader/build/example":         {"internal/fault", "internal/counts", "internal/csvscan", "internal/jsonscan", "tokenize"},
	"loader/build/command":         {"internal/procgroup"},
	"loader/build/shape":           {"internal/fault", "internal/jsonscan", "loader/build/example", "shard"},
	"loader/serve":                 {"internal/fault", "internal/units", "loader!", "loader/internal", "loader/pack", "shard"},
	"loader/serve/sampler":         {"internal/fault", "loader/pack"},
	"loader/serve/collate":         {},
	"loader/serve/feed": {"internal/fault", "internal/units", "loader/pack", "loader/serve/sampler", "loader/serve/collate", "loader/internal",
		"internal/page"},
	"loader/internal/budget":          {"internal/units"},
	"loader/internal/spelling":        {},
	"loader/internal/resident":        {},
	"loader/internal/store":           {"internal/fault", "loader/remote", "shard"},
	"loader/memrecord":                {},
	"loader/origins":                  {},
	"loader/textcache":                {"internal/fault", "shard"},
	"tokenize":                        {},
	"shard":                           {},
	"bench":                           {"internal/cputime", "loader", "shard", "tokenize"},
	"internal/archtest":               {},
	"internal/refdata":                {}, // for tests alone: imports of tests are not looked at
	"internal/effort":                 {}, // likewise
	"tokenize/internal":               {},
	"tokenize/internal/enginetest":    {"internal/cputime", "internal/effort", "internal/refdata"},
	"tokenize/builtin":                {"tokenize"},
	"tokenize/train":                  {"tokenize"},
	"tokenize/internal/ucd":           {},
	"tokenize/internal/regex":         {},
	"loader/build/example/chat":       {"internal/fault", "internal/jsonscan", "loader/build/example", "tokenize"},
	"loader/build/example/chat/jinja": {},
	"internal/counts":                 {},
	"internal/cputime":                {},
	"internal/csvscan":                {},
	"internal/jsonscan":               {},
	"internal/procgroup":              {},
	"internal/page":                   {},
	"internal/notify":                 {},
	"internal/shell":                  {},
	"internal/units":                  {},
	"internal/fault":                  {},
}

// coreOutside are the modules besides the standard library that the tokenizer's core may import.
var coreOutside = []string{"golang.org/x/text/"}

type goPackage struct {
	Dir, ImportPath                    string
	Imports                            []string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Standard                           bool
	Module                             *struct{ Path string }
}

const fields = "Dir,ImportPath,Imports,GoFiles,TestGoFiles,XTestGoFiles,Standard,Module"

func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=" + fields}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

// place is the longest key of allowed that path lies in.
func place(path string) string {
	best := ""
	for p := range allowed {
		if (path == p || strings.HasPrefix(path, p+"/")) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

func TestImportsFollowTheData(t *testing.T) {
	checked := 0
	for _, p := range list(t, "./...") {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		home := place(from)
		if home == "" {
			t.Errorf("%s has no place in the layout: add it to docs/architecture.md and to this test, or move it", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			checked++
			if !mayImport(home, to) {
				t.Errorf("%s imports %s: data does not flow that way", from, to)
			}
		}
	}
	if checked == 0 {
		t.Error("no import was checked")
	}
}

// starts finds goroutines in code that is not a test's: "go f(...)", and Go of an errgroup or WaitGroup.
var starts = regexp.MustCompile(`(?m)^\s*(go (func\(|[\w.]+\()|[\w.]+\.Go\(func)`)

// TestPackagesWithGoroutinesAreRaced: make test gives them the race detector.
func TestPackagesWithGoroutinesAreRaced(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	raced := strings.Fields(strings.ReplaceAll(string(makefile), "\\\n", " "))
	checked := 0
	for _, p := range list(t, "./...") {
		for _, file := range p.GoFiles {
			code, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			folder := "./" + strings.TrimPrefix(p.ImportPath, module+"/")
			if !starts.Match(code) || len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
				continue
			}
			if checked++; !slices.Contains(raced, folder) {
				t.Errorf("%s of %s starts a goroutine: add %s to RACED in the Makefile", file, p.ImportPath, folder)
			}
		}
	}
	if checked == 0 {
		t.Error("no goroutine was found")
	}
}

func TestTokenizeCoreNeedsOnlyTheStandardLibraryAndText(t *testing.T) {
	for _, p := range list(t, "-deps", "./tokenize") {
		if p.Standard || strings.HasPrefix(p.ImportPath, module+"/tokenize") {
			continue
		}
		ok := false
		for _, prefix := range coreOutside {
			ok = ok || strings.HasPrefix(p.ImportPath, prefix)
		}
		if !ok {
			t.Errorf("tokenize depends on %s", p.ImportPath)
		}
	}
}

func within(path, place string) bool {
	return path == place || strings.HasPrefix(path, place+"/")
}

// mayImport reports whether the packages of a place may import a package.
func mayImport(home, to string) bool {
	if within(to, ownRoot(home)) {
		return true
	}
	for _, a := range allowed[home] {
		if only, alone := strings.CutSuffix(a, "!"); to == only || !alone && within(to, a) {
			return true
		}
	}
	return false
}

// ownRoot is the folder whose packages a place may use without being listed: outside loader and
// internal all that shares its top folder, within them itself and its children. The package loader
// is below its children, so it has none.
func ownRoot(home string) string {
	top, _, _ := strings.Cut(home, "/")
	switch {
	case home == "loader":
		return "loader/(no child)"
	case top == "loader" || top == "internal":
		return home
	}
	return top
}
