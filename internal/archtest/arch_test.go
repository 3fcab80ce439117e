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
// children. The longest matching place governs a package.
var allowed = map[string][]string{
	"cmd/dsload": {"internal", "loader", "shard", "export", "stats", "tokenize"},
	"loader":     {"internal/arrowipc", "internal/counts", "internal/fault", "internal/ingest", "internal/pack", "internal/serve"},
	"export":     {"internal/arrowipc", "internal/counts", "internal/fault", "internal/shardfile", "shard"},
	"stats": {"internal/counts", "internal/marked", "internal/markup", "internal/pack", "internal/serve/sampler", "internal/units", "internal/visible",
		"shard", "tokenize"},
	"shard":    {"internal/shardfile"},
	"tokenize": {},
	"bench":    {"internal", "loader", "shard", "tokenize"},

	// The line that builds.
	"internal/ingest": {"internal/budget", "internal/counts", "internal/cputime", "internal/dataset", "internal/fault",
		"internal/jsonscan", "internal/lazy", "internal/origins", "internal/pack", "internal/remote",
		"internal/resident", "internal/shardfile", "internal/shell", "internal/spelling", "internal/store",
		"internal/tokenizers", "internal/units", "shard", "tokenize"},
	"internal/ingest/source": {"internal/fault", "internal/jsonscan", "internal/lazy", "internal/remote",
		"internal/shell", "internal/units"},
	"internal/ingest/source/frame": {"internal/csvscan", "internal/fault", "internal/ingest/source/cause",
		"internal/ingest/source/checksum", "internal/jsonscan", "internal/units"},
	"internal/ingest/source/listing": {"internal/fault", "internal/ingest/source/cause", "internal/ingest/source/glob",
		"internal/ingest/source/scratch", "internal/ingest/source/skip", "internal/ingest/source/synth",
		"internal/ingest/source/uris", "internal/lazy", "internal/remote", "internal/units"},
	"internal/ingest/source/scratch": {"internal/fault"},
	"internal/ingest/source/skip":    {},
	"internal/ingest/source/synth":   {"internal/units"},
	"internal/ingest/source/uris":    {"internal/lazy", "internal/remote"},
	"internal/ingest/source/columnar": {"internal/cputime", "internal/fault", "internal/flatbuf", "internal/ingest/source/decompress", "internal/jsonscan",
		"internal/units"},
	"internal/ingest/source/decompress": {"internal/cputime", "internal/fault", "internal/ingest/source/cause", "internal/units"},
	"internal/ingest/source/zipfile": {"internal/fault", "internal/ingest/source/cause",
		"internal/ingest/source/decompress"},
	"internal/ingest/source/glob":     {"internal/fault", "internal/ingest/source/cause"},
	"internal/ingest/source/checksum": {"internal/fault", "internal/ingest/source/cause"},
	"internal/ingest/source/cause":    {"internal/fault"},
	"internal/ingest/example": {"internal/counts", "internal/csvscan", "internal/fault", "internal/ingest/jinja",
		"internal/jsonscan", "internal/lazy", "internal/spelling", "tokenize"},
	"internal/ingest/example/chat": {"internal/fault", "internal/ingest/example", "internal/ingest/jinja",
		"internal/jsonscan", "internal/lazy", "internal/shell", "internal/spelling", "tokenize"},
	"internal/ingest/jinja": {"internal/lazy"},
	"internal/ingest/filter": {"internal/cputime", "internal/fault", "internal/ingest/example", "internal/jsonscan", "internal/lazy",
		"internal/shardfile", "shard"},
	"internal/ingest/command": {"internal/procgroup"},
	"internal/ingest/advice": {"internal/dataset", "internal/fault", "internal/ingest/example",
		"internal/ingest/option", "internal/ingest/read", "internal/ingest/source", "internal/shardfile",
		"internal/shell", "internal/spelling", "shard"},
	"internal/ingest/setup": {"internal/budget", "internal/dataset", "internal/fault", "internal/ingest/advice",
		"internal/ingest/command", "internal/ingest/earlier", "internal/ingest/example", "internal/ingest/filter",
		"internal/ingest/heldout",
		"internal/ingest/job", "internal/ingest/option", "internal/ingest/read", "internal/ingest/rows",
		"internal/ingest/source", "internal/ingest/work", "internal/origins", "internal/pack", "internal/remote",
		"internal/shardfile", "internal/shell", "internal/spelling", "internal/store", "internal/tokenizers",
		"internal/units", "shard", "tokenize"},
	"internal/ingest/preview": {"internal/counts", "internal/fault", "internal/ingest/example", "internal/ingest/filter",
		"internal/ingest/job", "internal/ingest/option", "internal/ingest/report", "internal/ingest/setup",
		"internal/ingest/source", "tokenize"},
	"internal/ingest/survey": {"internal/counts", "internal/dataset", "internal/fault", "internal/ingest/advice", "internal/ingest/example",
		"internal/ingest/job", "internal/ingest/report", "internal/ingest/setup", "internal/ingest/source",
		"internal/ingest/work", "internal/jsonscan", "internal/shardfile", "internal/shell", "internal/units", "shard", "tokenize"},
	"internal/ingest/heldout": {"internal/shardfile", "shard"},
	"internal/ingest/job": {"internal/budget", "internal/ingest/example", "internal/ingest/filter",
		"internal/ingest/source"},
	"internal/ingest/read": {"internal/budget", "internal/cputime", "internal/fault", "internal/ingest/command", "internal/ingest/example",
		"internal/ingest/job", "internal/ingest/source", "internal/jsonscan", "internal/units", "tokenize"},
	"internal/ingest/rows": {"internal/counts", "internal/dataset", "internal/ingest/example", "internal/pack",
		"shard"},
	"internal/ingest/work": {"internal/budget", "internal/fault", "internal/ingest/example", "internal/ingest/filter", "internal/lazy",
		"internal/ingest/job", "internal/ingest/source", "internal/units", "tokenize"},
	"internal/ingest/merge": {"internal/counts", "internal/dataset", "internal/fault", "internal/ingest/heldout",
		"internal/ingest/plan", "internal/ingest/report", "internal/ingest/source", "internal/origins",
		"internal/remote", "internal/resident", "internal/shardfile", "internal/shell", "internal/store", "shard"},
	"internal/ingest/option": {"internal/fault", "internal/ingest/example", "internal/ingest/filter",
		"internal/ingest/report", "internal/ingest/source", "internal/pack", "internal/remote", "internal/resident",
		"internal/shardfile", "internal/spelling", "shard", "tokenize"},
	"internal/ingest/plan": {"internal/budget", "internal/counts", "internal/dataset", "internal/fault",
		"internal/ingest/filter", "internal/ingest/heldout", "internal/ingest/job", "internal/ingest/option",
		"internal/ingest/read", "internal/ingest/report", "internal/ingest/source", "internal/remote",
		"internal/shardfile", "internal/store", "shard"},
	"internal/ingest/earlier": {"internal/counts", "internal/dataset", "internal/fault", "internal/ingest/filter",
		"internal/ingest/heldout", "internal/ingest/option", "internal/ingest/source", "internal/shardfile",
		"internal/shell", "internal/spelling", "internal/units", "shard"},
	"internal/ingest/report": {"internal/budget", "internal/counts", "internal/fault", "internal/ingest/filter", "internal/lazy",
		"internal/ingest/source",
		"internal/pack", "internal/units", "shard"},
	"internal/textcache": {"internal/dataset", "internal/fault", "internal/ingest", "internal/private",
		"internal/shardfile", "internal/units", "shard"},

	// The line that serves.
	"internal/serve": {"internal/budget", "internal/fault", "internal/pack", "internal/radix",
		"internal/shardfile", "internal/spelling", "internal/store", "internal/tokenizers", "internal/units",
		"shard"},
	"internal/serve/sampler": {"internal/fault", "internal/pack", "internal/radix"},
	"internal/serve/collate": {},
	"internal/serve/feed": {"internal/arrowipc", "internal/budget", "internal/cputime", "internal/fault", "internal/pack",
		"internal/page", "internal/resident",
		"internal/serve/collate", "internal/serve/sampler", "internal/spelling", "internal/units"},

	// What the command shows of both lines, and of the machine.
	"internal/help": {"internal/ingest/option", "internal/serve/feed"},
	"internal/bench": {"internal/cputime", "internal/dataset", "internal/fault", "internal/ingest/report",
		"internal/resident", "internal/serve/feed", "internal/shardfile", "shard", "tokenize"},
	"internal/doctor": {"internal/fault", "internal/ingest", "internal/procgroup", "internal/resident", "internal/serve", "internal/units",
		"tokenize"},

	"internal/marked": {"internal/markup", "internal/units", "internal/visible", "tokenize"},
	"internal/view": {"internal/fault", "internal/lazy", "internal/marked", "internal/markup", "internal/origins", "internal/serve",
		"internal/shardfile", "internal/tokenizers", "internal/units", "internal/visible", "shard", "tokenize"},

	// What both use.
	"internal/arrowipc":  {"internal/flatbuf"},
	"internal/budget":    {"internal/units"},
	"internal/counts":    {},
	"internal/cputime":   {},
	"internal/csvscan":   {},
	"internal/fault":     {},
	"internal/flatbuf":   {},
	"internal/jsonscan":  {},
	"internal/lazy":      {},
	"internal/markup":    {"internal/visible"},
	"internal/memrecord": {"internal/markup", "internal/units"},
	"internal/notify":    {},
	"internal/dataset":   {"internal/cputime", "internal/shardfile", "shard"},
	"internal/shardfile": {"internal/flatbuf"},
	"internal/origins":   {"internal/shardfile", "shard"},
	"internal/pack":      {"internal/radix"},
	"internal/page":      {},
	"internal/private":   {"internal/fault"},
	"internal/procgroup": {},
	"internal/radix":     {},
	"internal/remote":    {"internal/fault", "internal/lazy", "internal/units"},
	"internal/resident":  {},
	"internal/shell":     {},
	"internal/spelling":  {},
	"internal/store": {"internal/dataset", "internal/fault", "internal/lazy", "internal/private",
		"internal/remote", "internal/shardfile", "shard"},
	"internal/tokenizers": {"internal/fault", "internal/remote", "internal/shardfile", "internal/spelling",
		"shard", "tokenize"},
	"internal/units":   {},
	"internal/visible": {},

	// For tests alone: imports of tests are not looked at.
	"internal/archtest": {},
	"internal/effort":   {},
	"internal/refdata":  {},

	"tokenize/builtin":        {"tokenize"},
	"tokenize/internal":       {"tokenize/wellformed"},
	"tokenize/internal/regex": {},
	"tokenize/train":          {"tokenize"},
	"tokenize/wellformed":     {"tokenize/internal/cpu"},
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
	for _, p := range list(t, module+"/...") {
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
	for _, p := range list(t, module+"/...") {
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
	for _, p := range list(t, "-deps", module+"/tokenize") {
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

// TestTokenizeRequiresFewModules: whoever imports tokenize has these in the graph of modules, too.
func TestTokenizeRequiresFewModules(t *testing.T) {
	mod, err := os.ReadFile("../../tokenize/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\s*(?:require )?(\S+) v\d`).FindAllStringSubmatch(string(mod), -1) {
		got = append(got, m[1])
	}
	// The vocabularies of builtin are compressed, and compared with the published ones by a test.
	want := []string{"github.com/klauspost/compress", "github.com/pkoukk/tiktoken-go-loader", "golang.org/x/text"}
	if !slices.Equal(got, want) {
		t.Errorf("tokenize/go.mod requires %q, want %q", got, want)
	}
}

// TestProgramLinksNothingLarge keeps out what a small change may bring in again: 4 MB for arrow-go, and 2 for
// Prometheus' client. Templates of the standard library call methods by name, so that with them the linker
// keeps every exported method of the program: 3 MB.
func TestProgramLinksNothingLarge(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/dsload") {
		for _, large := range []string{"github.com/apache/arrow-go", "github.com/prometheus"} {
			if within(p.ImportPath, large) {
				t.Errorf("the program depends on %s", p.ImportPath)
			}
		}
		for _, templates := range []string{"text/template", "html/template"} {
			if within(p.ImportPath, module) && slices.Contains(p.Imports, templates) {
				t.Errorf("%s imports %s: write pages with internal/markup", p.ImportPath, templates)
			}
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
		if within(to, a) {
			return true
		}
	}
	return false
}

// ownRoot is the folder whose packages a place may use without being listed: outside internal all
// that shares its top folder, within it itself and its children.
func ownRoot(home string) string {
	top, _, _ := strings.Cut(home, "/")
	if top == "internal" {
		return home
	}
	return top
}
