package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Names that flags have elsewhere lead to flags of build, and are none themselves.
func TestFlagSynonyms(t *testing.T) {
	build, _, err := newRootCommand().Find([]string{"build"})
	if err != nil {
		t.Fatal(err)
	}
	for name, meant := range flagSynonyms {
		if build.Flags().Lookup(meant) == nil || build.Flags().Lookup(name) != nil {
			t.Errorf("%s: %s", name, meant)
		}
	}
}

// TestNamedOptionsAreFlags looks at every option that a message of a package names.
func TestNamedOptionsAreFlags(t *testing.T) {
	known := map[fault.Option]bool{}
	for option := range otherNames {
		known[option] = true
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[fault.Option(f.Name)] = true })
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(newRootCommand())
	named := 0
	for _, root := range []string{"../../internal", "../../export", "."} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "sampler") { // whose options are parameters of the feed
				return err
			}
			for _, option := range namedOptions(t, path) {
				named++
				if !known[option] {
					t.Errorf("%s names %s, and there is no such flag", path, option)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if named < 100 {
		t.Errorf("only %d options were found", named)
	}
}

var inFormat = regexp.MustCompile(`\{([a-z]+(?:-[a-z]+)*)\}`)

// namedOptions returns the options that a file names in formats of package fault and as its arguments.
func namedOptions(t *testing.T, path string) (options []fault.Option) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		of, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		if pkg, ok := of.X.(*ast.Ident); !ok || pkg.Name != "fault" {
			return true
		}
		ast.Inspect(call, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				for _, match := range inFormat.FindAllStringSubmatch(strings.ReplaceAll(text, "{{", ""), -1) {
					options = append(options, fault.Option(match[1]))
				}
			}
			return true
		})
		first, isText := call.Args[0].(*ast.BasicLit)
		if isText && (of.Sel.Name == "BadOption" || of.Sel.Name == "Given" || of.Sel.Name == "Option") {
			name, _ := strconv.Unquote(first.Value)
			options = append(options, fault.Option(name))
		}
		return true
	})
	return options
}

func TestFlagNames(t *testing.T) {
	args := []string{"build", "--memory", "3M", "--max-bytes=1kB", "--", "--memory", "4M"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fault.Errorf("no room; raise {memory}, or choose another {out}"),
			"no room; raise --memory, or choose another --out"},
		{fault.BadOption("max-length", 0, "must be at least %d", 1), "--max-length 0: must be at least 1"},
		{fault.BadOption("source", "`memory`", "is a name"), "source `memory`: is a name"},
		{fault.Errorf("{eos}=TOKEN adds one"), "--eos=TOKEN adds one"},
		{fault.BadOption("memory", units.Size(3<<20), "is too small"), "--memory 3M: is too small"},
		{fault.BadOption("max-bytes", units.Size(1000), "is too small"), "--max-bytes 1kB: is too small"},
		{fault.BadOption("shard-bytes", units.Size(1<<20), "is too small"), "--shard-bytes 1MiB: is too small"},
	} {
		if got := errorLine(c.err, args...); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
