package feed

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/google/go-cmp/cmp"
)

// document is docs/feed.md, which users read.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/feed.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table is the cells of the only table below the heading.
func table(t *testing.T, document, heading string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(document, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/feed.md has no heading %q", heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) < 3 {
		t.Fatalf("no table under %q", heading)
	}
	return rows[2:] // the head, and the line under it
}

func TestDocumentedParameters(t *testing.T) {
	var want [][]string
	for _, p := range Parameters() {
		want = append(want, []string{"`" + p.Name + "`", p.Values, p.Default, p.Help})
	}
	if diff := cmp.Diff(want, table(t, document(t), "Parameters")); diff != "" {
		t.Errorf("docs/feed.md and the code differ in the parameters (-code +document)\n%s", diff)
	}
}

// TestDocumentedDefaults holds the defaults of the table against what an empty query means.
func TestDocumentedDefaults(t *testing.T) {
	empty, err := ParseQuery("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Parameters() {
		if p.Default == "" {
			continue
		}
		given, err := ParseQuery(p.Name + "=" + p.Default)
		if diff := cmp.Diff(empty, given); err != nil || diff != "" {
			t.Errorf("%s=%s is not what an empty query means: %v\n%s", p.Name, p.Default, err, diff)
		}
	}
	for _, p := range Parameters() {
		for value := range strings.SplitSeq(p.Values, ", ") {
			if value != strings.ToLower(value) {
				continue // N, NAME
			}
			if _, err := ParseQuery(p.Name + "=" + value); err != nil {
				t.Errorf("%s=%s stands in the documentation: %v", p.Name, value, err)
			}
		}
	}
}

func TestDocumentedColumns(t *testing.T) {
	schema := paddedSchema(t, &Opening{Sources: true, Collate: collate.Options{Packed: true}}, false)
	var want, got [][]string
	for _, f := range schema.Fields() {
		kind := strings.ReplaceAll(f.Type.String(), "item: ", "")
		want = append(want, []string{"`" + f.Name + "`", strings.ReplaceAll(kind, ", nullable", "")})
	}
	for _, row := range table(t, document(t), "The stream") {
		got = append(got, row[:2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/feed.md and the code differ in the columns (-code +document)\n%s", diff)
	}
}

// TestDocumentedErrors finds every RequestError and BadParam in the sources: the documentation has
// its status and its words.
func TestDocumentedErrors(t *testing.T) {
	doc := document(t)
	byStatus := map[string]string{}
	for _, row := range table(t, doc, "Errors") {
		byStatus[row[0]] += row[1] + "\n"
	}
	seen := map[string]bool{"500": true} // writeError's own, for errors of any words
	found := 0
	check := func(status string, reason ast.Expr, where token.Position) {
		seen[status] = true
		found++
		if words := longestWords(reason); words != "" && !strings.Contains(byStatus[status], words) {
			t.Errorf("%s: docs/feed.md has no error %s with %q", where, status, words)
		}
	}
	statusText := regexp.MustCompile(`^\d{3}$`)
	inspectSources(t, []string{"*.go", "../*.go"}, func(n ast.Node, where token.Position) {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if name, ok := n.Type.(*ast.Ident); ok && name.Name == "RequestError" && len(n.Elts) == 3 {
				if status, ok := n.Elts[0].(*ast.BasicLit); ok && statusText.MatchString(status.Value) {
					check(status.Value, n.Elts[1], where)
				}
			}
		case *ast.CallExpr:
			if name := calledName(n.Fun); name == "BadParam" && len(n.Args) == 3 {
				check("400", n.Args[1], where)
			}
		}
	})
	if found < 20 {
		t.Fatalf("only %d errors were found in the sources", found)
	}
	for status := range byStatus {
		if !seen[status] {
			t.Errorf("docs/feed.md describes status %s, which is never sent", status)
		}
	}
}

// longestWords is the longest run of fixed words in an expression that makes a message.
func longestWords(e ast.Expr) (words string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			for _, part := range regexp.MustCompile(`%[a-z]|[:;=]`).Split(text, -1) {
				if part = strings.TrimSpace(part); len(part) > len(words) {
					words = part
				}
			}
		}
		return true
	})
	return words
}

func calledName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// inspectSources visits the nodes of the sources that match the patterns, tests aside.
func inspectSources(t *testing.T, patterns []string, visit func(ast.Node, token.Position)) {
	t.Helper()
	files := token.NewFileSet()
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no sources match %s: %v", pattern, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if n != nil {
					visit(n, files.Position(n.Pos()))
				}
				return true
			})
		}
	}
}

// TestDocumentedRequestsAndHeaders finds the paths that are served and the headers that are set.
func TestDocumentedRequestsAndHeaders(t *testing.T) {
	doc := document(t)
	first := func(heading string) (cells []string) {
		for _, row := range table(t, doc, heading) {
			cells = append(cells, strings.Trim(row[0], "`"))
		}
		return cells
	}
	requests, headers := first("Requests"), first("Headers")
	if !slices.Contains(headers, SealHeader) {
		t.Errorf("docs/feed.md has no header %s", SealHeader)
	}
	// Headers that are for browsers and proxies, and mean nothing to a client of the feed.
	ignored := []string{"Server", "X-Content-Type-Options", "Content-Security-Policy", "Content-Length", "X-Frame-Options", "Referrer-Policy", "Cache-Control"}
	served := 0
	inspectSources(t, []string{"*.go"}, func(n ast.Node, where token.Position) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			return
		}
		value, _ := strconv.Unquote(lit.Value)
		switch calledName(call.Fun) {
		case "Handle", "HandleFunc":
			if path := strings.TrimSuffix(value, "{$}"); strings.HasPrefix(path, "GET ") {
				served++
				if !slices.Contains(requests, path) {
					t.Errorf("%s: docs/feed.md has no request %q", where, path)
				}
			}
		case "Set":
			if !slices.Contains(headers, value) && !slices.Contains(ignored, value) {
				t.Errorf("%s: docs/feed.md has no header %q", where, value)
			}
		}
	})
	if served != len(requests) {
		t.Errorf("docs/feed.md has %d requests, the code %d", len(requests), served)
	}
}
