package option

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/units"
)

var update = flag.Bool("update", false, "write the types of package loader anew")

const (
	root      = "../../../"
	generated = "// Code generated from packages option, report and counts by go generate; DO NOT EDIT.\n\n" +
		"package loader\n\n"
)

// TestLoaderTypes holds the types of package loader to those that a build works with: fields, comments, defaults,
// limits and words. It is here because this package compiles while that one does not.
func TestLoaderTypes(t *testing.T) {
	p := &printer{t: t, structs: map[string]*ast.StructType{}, docs: map[string]string{}}
	for _, dir := range []string{"ingest/option", "ingest/filter", "ingest/report", "counts"} {
		p.parse(dir)
	}
	p.options()
	p.compare("options.go", "import (\n\"io\"\n\n"+strings.Join(p.imports(), "\n")+"\n)\n\n")
	for _, name := range []string{"report.Summary", "report.SplitSummary", "report.PackSummary", "report.Progress",
		"report.Totals", "counts.Counts", "counts.Numbers", "counts.Unread"} {
		p.mirror(name)
	}
	p.compare("summary.go", "import \"time\"\n\n")
}

// printer writes the source of this package from that of internal ones.
type printer struct {
	t       *testing.T
	out     bytes.Buffer
	structs map[string]*ast.StructType // by package and name
	docs    map[string]string
}

// parse reads the structs of a package.
func (p *printer) parse(dir string) {
	files, err := filepath.Glob(root + "internal/" + dir + "/*.go")
	if err != nil || len(files) == 0 {
		p.t.Fatal(dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok {
					if typ, ok := spec.Type.(*ast.StructType); ok {
						p.structs[file.Name.Name+"."+spec.Name.Name] = typ
						p.docs[file.Name.Name+"."+spec.Name.Name] = decl.Doc.Text()
					}
				}
			}
		}
	}
}

// compare holds a file to what was printed since the last call.
func (p *printer) compare(name, imports string) {
	want, err := format.Source([]byte(generated + imports + p.out.String()))
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", name, err, p.out.String())
	}
	p.out.Reset()
	name = root + "loader/" + name
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, want) {
		p.t.Errorf("%s differs from what packages option, report and counts say (%v); run go generate ./loader", name, err)
	}
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.out, format, args...) }

// comment prints sentences as a comment.
func (p *printer) comment(indent, text string) {
	line := indent + "//"
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 118 {
			p.printf("%s\n", line)
			line = indent + "//"
		}
		line += " " + word
	}
	p.printf("%s\n", line)
}

// options prints BuildOptions, the words that its fields take, and its method options.
func (p *printer) options() {
	p.comment("", "BuildOptions configures a build. The zero value of a field is its default. The dataset's bytes depend "+
		"on the content of the sources and on the fields that say so, and on nothing else.")
	p.printf("type BuildOptions struct {\n")
	var words []Row
	values := map[string][]string{} // by the type that has the field
	field := func(f reflect.StructField, facts string) {
		typ := f.Type.String()
		if p.isWord(f.Type) {
			typ = f.Name
			values[p.owner(f.Name)] = append(values[p.owner(f.Name)], fmt.Sprintf("%s: %s(o.%s)", f.Name, f.Type, f.Name))
		} else {
			if f.Type.Kind() == reflect.String {
				typ = "string"
			}
			value := "o." + f.Name
			if typ != f.Type.String() {
				value = fmt.Sprintf("%s(o.%s)", f.Type, f.Name)
			}
			values[p.owner(f.Name)] = append(values[p.owner(f.Name)], f.Name+": "+value)
		}
		p.comment("\t", p.doc(f.Name)+" "+facts)
		p.printf("\t%s %s\n", f.Name, typ)
	}
	sources, _ := reflect.TypeFor[Options]().FieldByName("Sources")
	field(sources, "Changes the bytes.")
	for _, row := range All() {
		f := fieldOf(row)
		field(f, factsOf(row, f))
		if row.Kind == Word {
			words = append(words, row)
		}
	}
	for _, name := range []string{"ExtraBytes", "Stdin"} {
		f, _ := reflect.TypeFor[Options]().FieldByName(name)
		field(f, "Changes no byte.")
	}
	p.printf(`
	// Progress, if set, is called a few times a second from one goroutine. Changes no byte.
	Progress func(Progress)
	// Notice, if set, is called with what a user wants to know while the build runs: the format that was
	// found, where an earlier run is resumed. Changes no byte.
	Notice func(string)
}

`)
	for _, row := range words {
		p.words(row)
	}
	p.comment("", "options returns what package ingest takes.")
	p.printf("func (o *BuildOptions) options() option.Options {\nreturn option.Options{\n"+
		"Settings: option.Settings{\n%s,\n"+
		"Filter: option.Filter{\n%s,\n},\n},\n%s,\nResources: option.Resources{\n%s,\n},\nHooks: o.hooks(),\n}\n}\n",
		lines(values["option.Settings"]), lines(values["filter.Options"]), lines(values["option.Options"]),
		lines(values["option.Resources"]))
}

// lines puts values into lines of moderate length.
func lines(values []string) string {
	var b strings.Builder
	length := 0
	for i, v := range values {
		if length += len(v) + 2; length > 100 {
			b.WriteString(",\n")
			length = len(v)
		} else if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(v)
	}
	return b.String()
}

// imports lists the packages that options.go names.
func (p *printer) imports() (list []string) {
	const module = "github.com/dsload/dsload/internal/"
	for _, path := range []string{module + "ingest/example", module + "ingest/example/chat", module + "ingest/filter",
		module + "ingest/option", module + "ingest/source", module + "pack"} {
		if strings.Contains(p.out.String(), filepath.Base(path)+".") {
			list = append(list, fmt.Sprintf("%q", path))
		}
	}
	return list
}

// isWord reports whether a type has a fixed set of values.
func (p *printer) isWord(typ reflect.Type) bool {
	return typ.Kind() == reflect.String && typ.PkgPath() != "" && typ != reflect.TypeFor[Token]()
}

// owner returns the struct that has a field, by package and name.
func (p *printer) owner(name string) string {
	for _, owner := range []string{"option.Settings", "filter.Options", "option.Options", "option.Resources"} {
		if p.fieldOf(owner, name) != nil {
			return owner
		}
	}
	p.t.Fatalf("no struct has the field %s", name)
	return ""
}

func (p *printer) fieldOf(owner, name string) *ast.Field {
	for _, f := range p.structs[owner].Fields.List {
		if len(f.Names) > 0 && f.Names[0].Name == name {
			return f
		}
	}
	return nil
}

// doc returns the comment of a field of a build's options.
func (p *printer) doc(name string) string {
	doc := p.fieldOf(p.owner(name), name).Doc.Text()
	if doc == "" {
		p.t.Errorf("the option %s has no comment", name)
	}
	return doc
}

// fieldOf returns the field that an option sets.
func fieldOf(row Row) reflect.StructField {
	var o Options
	v := reflect.ValueOf(&o).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if at := v.FieldByIndex(f.Index); !f.Anonymous && at.Addr().Pointer() == reflect.ValueOf(row.Field(&o)).Pointer() {
			return f
		}
	}
	panic(row.Name + " has no field")
}

// factsOf returns sentences on the default of an option, its limits, and whether bytes depend on it.
func factsOf(row Row, f reflect.StructField) string {
	var facts []string
	d := Defaults()
	value := reflect.ValueOf(row.Field(&d)).Elem()
	switch {
	case value.IsZero() || row.Name == "memory" || row.Name == "workers" || row.Kind == Share && value.Float() == 1:
	case row.Kind == Word:
		facts = append(facts, "Default "+wordName(f.Name, value.String())+".")
	case row.Kind == Size:
		facts = append(facts, fmt.Sprintf("Default %v.", units.Size(value.Int())))
	case value.Kind() == reflect.String:
		facts = append(facts, fmt.Sprintf("Default %q.", value.String()))
	default:
		facts = append(facts, fmt.Sprintf("Default %v.", value.Interface()))
	}
	write := func(n int64) string {
		if row.Kind == Size {
			return units.Size(n).String()
		}
		return fmt.Sprint(n)
	}
	switch {
	case row.Kind == Share:
		facts = append(facts, "Above 0 and at most 1, which is the default.")
	case row.Max > 0 && row.Min > 0:
		facts = append(facts, fmt.Sprintf("From %s to %s.", write(row.Min), write(row.Max)))
	case row.Max > 0:
		facts = append(facts, fmt.Sprintf("At most %s.", write(row.Max)))
	}
	switch {
	case row.ChangesBytes():
		facts = append(facts, "Changes the bytes.")
	case row.Name != "append":
		facts = append(facts, "Changes no byte.")
	}
	return strings.Join(facts, " ")
}

// wordName returns the name of the constant for a word that a field takes.
func wordName(field, word string) string {
	parts := strings.Split(word, "_")
	for i, part := range parts {
		if slices.Contains([]string{"bfd", "csv", "json", "jsonl"}, part) {
			parts[i] = strings.ToUpper(part)
		} else {
			parts[i] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return field + strings.Join(parts, "")
}

// words prints the type of an option that takes one of some words, with a constant for each. Their comments are
// those of the package that has the type.
func (p *printer) words(row Row) {
	f := fieldOf(row)
	_, dir, _ := strings.Cut(f.Type.PkgPath(), "/internal/")
	comments := map[string]string{}
	files, _ := filepath.Glob(root + "internal/" + dir + "/*.go")
	doc := ""
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				switch spec := s.(type) {
				case *ast.TypeSpec:
					if spec.Name.Name == f.Type.Name() {
						doc = decl.Doc.Text()
					}
				case *ast.ValueSpec:
					if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == f.Type.Name() && len(spec.Values) == 1 {
						value := spec.Values[0].(*ast.BasicLit).Value
						comments[value] = strings.TrimSpace(spec.Comment.Text())
					}
				}
			}
		}
	}
	_, doc, _ = strings.Cut(doc, " ")
	p.comment("", f.Name+" "+doc)
	p.printf("type %s string\n\n", f.Name)
	p.printf("// The values of %s.\nconst (\n", f.Name)
	for _, word := range row.Words {
		p.printf("%s %s = %q", wordName(f.Name, word), f.Name, word)
		if c := comments[fmt.Sprintf("%q", word)]; c != "" {
			p.printf(" // %s", c)
		}
		p.printf("\n")
	}
	p.printf(")\n\n")
}

// mirror prints a struct with the same fields as one of another package, whose types are those of this package.
func (p *printer) mirror(name string) {
	_, short, _ := strings.Cut(name, ".")
	p.comment("", firstSentence(p.docs[name]))
	p.printf("type %s struct {\n", short)
	for _, f := range p.structs[name].Fields.List {
		typ := p.typeOf(f.Type)
		if typ == "[]SourceCounts" { // of shard, which loader does not import: it is in the manifest
			continue
		}
		doc := f.Doc.Text()
		if len(f.Names) == 0 {
			doc = p.docs[name[:strings.Index(name, ".")+1]+typ]
			if doc == "" {
				doc = p.docs["counts."+typ]
			}
			doc = firstSentence(doc)
		}
		if doc == "" {
			p.t.Errorf("a field of %s has no comment: %v", name, f.Names)
		}
		p.comment("\t", doc)
		if len(f.Names) > 0 {
			p.printf("\t%s", f.Names[0].Name)
		}
		p.printf(" %s\n", typ)
	}
	p.printf("}\n\n")
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ".")
	return first + "."
}

// typeOf writes the type of a field as this package has it.
func (p *printer) typeOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return "*" + p.typeOf(x.X)
	case *ast.ArrayType:
		return "[]" + p.typeOf(x.Elt)
	case *ast.MapType:
		return "map[" + p.typeOf(x.Key) + "]" + p.typeOf(x.Value)
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		switch name := x.X.(*ast.Ident).Name + "." + x.Sel.Name; name {
		case "fault.Text":
			return "string"
		case "pack.Policy":
			return "Pack"
		case "time.Duration":
			return name
		}
		return x.Sel.Name
	}
	p.t.Fatalf("unknown type %T", x)
	return ""
}
