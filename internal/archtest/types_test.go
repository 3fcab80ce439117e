package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

func TestMain(m *testing.M) {
	effort.Economize()
	os.Exit(m.Run())
}

// TestTypesOnEverySystem checks all packages and their tests, as the compiler does before it makes code, for every other
// system and processor that programs are released for, and for a big-endian one. It reads everything from source: go
// vet, which finds more, first compiles all that a package imports, for each system anew.
func TestTypesOnEverySystem(t *testing.T) {
	if effort.Of(true, false, false) {
		t.Skip("go test without -short checks types for other systems")
	}
	wheels, err := os.ReadFile("../../python/build_wheel.py")
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{"linux/s390x"}
	for _, m := range regexp.MustCompile(`(?m)^    \("(\w+)", "(\w+)"\): "`).FindAllStringSubmatch(string(wheels), -1) {
		if target := m[1] + "/" + m[2]; target != runtime.GOOS+"/"+runtime.GOARCH { // for which everything is compiled
			targets = append(targets, target)
		}
	}
	if len(targets) == 1 {
		t.Fatal("python/build_wheel.py names no platform")
	}
	sources := sources{fset: token.NewFileSet()}
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			for _, err := range sources.check(t, "../..", target, module+"/...") {
				t.Error(err)
			}
		})
	}
}

func TestTypesFindWhatDoesNotCompile(t *testing.T) {
	if effort.Of(true, false, false) {
		t.Skip("go test without -short checks types for other systems")
	}
	dir := t.TempDir()
	for name, code := range map[string]string{
		"go.mod":            "module " + module + "/planted\n\ngo 1.26\n",
		"both.go":           "package planted\n\nconst Wide int = 1 << 40\n",
		"call_windows.go":   "package planted\n\nfunc f() { missing() }\n",
		"own_windows.go":    "package planted\n\nfunc g() { inTests() }\n",
		"own_test.go":       "package planted\n\nfunc inTests() {}\n",
		"in_386_test.go":    "package planted\n\nfunc h() int { return Wide.None }\n",
		"out_s390x_test.go": "package planted_test\n\nimport \"" + module + "/planted\"\n\nvar _ = planted.None\n",
		"import_s390x.go":   "package planted\n\nimport \"unsafe\"\n",
		"body_arm64.go":     "package planted\n\nfunc inAssembly()\n",
		"syntax_arm64.go":   "package planted\n\nfunc {\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string][]string{
		"linux/amd64":   nil,
		"windows/amd64": {"call_windows.go:3:12: undefined: missing", "own_windows.go:3:12: undefined: inTests"},
		"linux/386":     {"both.go:3:18: cannot use 1 << 40 ", "in_386_test.go:3:28: Wide.None undefined"},
		"linux/s390x":   {"import_s390x.go:3:8: \"unsafe\" imported and not used", "out_s390x_test.go:5:17: undefined: planted.None"},
		"linux/arm64":   {"body_arm64.go:3:6: inAssembly has no body", "syntax_arm64.go:3:6: expected 'IDENT'"},
	} {
		sources := sources{fset: token.NewFileSet()}
		got := fmt.Sprint(errors.Join(sources.check(t, dir, target, "./...")...))
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: got %s, want %s among it", target, got, w)
			}
		}
		if want == nil && got != "<nil>" {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// sources keeps the files that several systems have in common.
type sources struct {
	fset  *token.FileSet
	files sync.Map // func() (*ast.File, error), by path
}

// source is what go list says of a package; those it imports come before it.
type source struct {
	Dir, ImportPath string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	Module          *struct{ GoVersion string }
	Error           *struct{ Err string }
}

// check returns what does not compile of packages and of their tests, for a system and processor. Of other modules
// it reads the declarations alone.
func (s *sources) check(t *testing.T, dir, target string, patterns ...string) (found []error) {
	system, processor, _ := strings.Cut(target, "/")
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-test", "-json=Dir,ImportPath,GoFiles,SFiles,ImportMap,Module,Error"}, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v", target, err)
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p source
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		if p.Error != nil {
			found = append(found, errors.New(p.Error.Err))
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			if !filepath.IsAbs(name) { // go list writes the main function of tests into the build cache
				name = filepath.Join(p.Dir, name)
			}
			file, err := s.parse(name, within(p.ImportPath, module))
			if err != nil {
				found = append(found, err)
				continue
			}
			files = append(files, file)
			if within(p.ImportPath, module) && len(p.SFiles) == 0 {
				found = append(found, s.bodiless(file)...)
			}
		}
		config := types.Config{
			Importer:         imports{p.ImportMap, checked},
			Sizes:            types.SizesFor("gc", processor),
			IgnoreFuncBodies: !within(p.ImportPath, module),
			Error:            func(err error) { found = append(found, err) },
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			config.GoVersion = "go" + p.Module.GoVersion
		}
		path, _, _ := strings.Cut(p.ImportPath, " ")
		checked[p.ImportPath], _ = config.Check(path, s.fset, files, nil)
	}
	return found
}

// bodiless returns an error for each function of a file that only assembly can give a body, which types do not show.
func (s *sources) bodiless(file *ast.File) (found []error) {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body == nil {
			found = append(found, fmt.Errorf("%s: %s has no body, and its package no assembly", s.fset.Position(f.Name.Pos()), f.Name))
		}
	}
	return found
}

// parse parses a file once. It leaves out what functions do unless they are wanted whole.
func (s *sources) parse(name string, whole bool) (*ast.File, error) {
	once, _ := s.files.LoadOrStore(name, sync.OnceValues(func() (*ast.File, error) {
		file, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
		if file == nil || whole {
			return file, err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				f.Body.List = nil
			}
		}
		return file, err
	}))
	return once.(func() (*ast.File, error))()
}

// imports finds what a package imports among what was checked before it.
type imports struct {
	renamed map[string]string
	checked map[string]*types.Package
}

func (i imports) Import(path string) (*types.Package, error) {
	if other, ok := i.renamed[path]; ok {
		path = other
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not among the packages that go list names", path)
}
