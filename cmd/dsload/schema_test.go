package main

import (
	"encoding"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/survey"
	"github.com/dsload/dsload/internal/view"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/stats"
)

// schemasDir has the JSON schemas of what other programs read. They follow from the types that are encoded: go test
// ./cmd/dsload -run TestSchemas -update writes them anew. tests_clients/test_schemas.py holds what commands print
// against them.
const schemasDir = "../../docs/schemas"

// planned and verified are what plan and verify encode, which have no types of their own.
type planned struct {
	// Plan is the file of the plan.
	Plan string `json:"plan"`
	// Partitions is how many parts can be built.
	Partitions int `json:"partitions"`
	// Inputs counts the files that were planned.
	Inputs int `json:"inputs"`
	// Documents counts the documents in them.
	Documents int64 `json:"documents"`
	// LargestBytes is the text of the largest partition.
	LargestBytes int64 `json:"largest_bytes"`
	// SmallestBytes is the text of the smallest partition.
	SmallestBytes int64 `json:"smallest_bytes"`
	// Seal identifies the plan.
	Seal string `json:"seal"`
}

type verified struct {
	// Dataset is its folder, as given.
	Dataset string `json:"dataset"`
	// Intact reports whether nothing is damaged.
	Intact bool `json:"intact"`
	// Damage lists what is.
	Damage []damaged `json:"damage"`
	// More counts damaged files that are not listed.
	More int64 `json:"more,omitempty"`
}

type damaged struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// sealed is a manifest as it is stored and served.
type sealed struct {
	shard.Manifest
	// Seal identifies the dataset: the BLAKE3 of the manifest without this member, in hex.
	Seal string `json:"blake3"`
}

func TestSchemas(t *testing.T) {
	effort.OneGoroutine(t)
	t.Parallel()
	titles := map[string]struct {
		title string
		of    any
	}{
		"manifest": {"manifest.json of a dataset, which is also what /v1/dataset answers", sealed{}},
		"build":    {"dsload build --json", report.Summary{}},
		"inspect":  {"dsload inspect --json", inspection{}},
		"stats":    {"dsload stats --json of one dataset; of several, an object whose datasets are these", stats.Report{}},
		"verify":   {"dsload verify --json", verified{}},
		"plan":     {"dsload plan --json", planned{}},
		"export":   {"dsload export --json", export.Summary{}},
		"survey":   {"dsload survey --json", survey.Report{}},
		"view":     {"a line of dsload view --json", view.Row{}},
		"which":    {"a line of dsload which --json", view.Row{}},
	}
	for name, s := range titles {
		w := schemaWriter{comments: map[reflect.Type]map[string]string{}}
		schema := w.schema(reflect.TypeOf(s.of))
		schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		schema["$id"] = "https://github.com/dsload/dsload/blob/main/docs/schemas/" + name + ".json"
		schema["title"] = s.title
		want, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		file := filepath.Join(schemasDir, name+".json")
		if flag.Lookup("update").Value.String() == "true" {
			if err := os.MkdirAll(schemasDir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is not the schema of its type (%v): go test ./cmd/dsload -run TestSchemas -update", file, err)
		}
	}
}

// schemaWriter makes schemas of types. comments are those of the fields of structs.
type schemaWriter struct {
	comments map[reflect.Type]map[string]string
}

var (
	textual = reflect.TypeFor[encoding.TextMarshaler]()
	encoded = reflect.TypeFor[json.Marshaler]()
	raw     = reflect.TypeFor[json.RawMessage]()
	goNil   = regexp.MustCompile(`\bnil\b`)
)

func (w *schemaWriter) schema(t reflect.Type) map[string]any {
	switch {
	case t == raw:
		return map[string]any{"type": "object"}
	case t.Implements(textual), t.Implements(encoded):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.schema(t.Elem())
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		w.fields(t, properties, &required)
		return map[string]any{"type": "object", "properties": properties, "required": required}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": w.schema(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": w.schema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": w.schema(t.Elem())}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	default:
		return map[string]any{"type": "integer"}
	}
}

// fields adds the members of a struct, and of those that it embeds. Members may be added in later versions, so that
// others are not refused.
func (w *schemaWriter) fields(t reflect.Type, properties map[string]any, required *[]string) {
	comments := w.of(t)
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			w.fields(f.Type, properties, required)
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		schema := w.schema(f.Type)
		if options == "" {
			*required = append(*required, name)
			if f.Type.Kind() == reflect.Pointer {
				schema["type"] = []any{schema["type"], "null"}
			}
		}
		if comment := comments[f.Name]; comment != "" {
			if rest, ok := strings.CutPrefix(comment, f.Name+" "); ok {
				comment = name + " " + rest
			}
			schema["description"] = goNil.ReplaceAllString(comment, "null")
		}
		properties[name] = schema
	}
}

// of returns the comments of a struct's fields, from its source.
func (w *schemaWriter) of(t reflect.Type) map[string]string {
	if found, ok := w.comments[t]; ok || t.Name() == "" {
		return found
	}
	found := map[string]string{}
	w.comments[t] = found
	dir := "."
	if path, ok := strings.CutPrefix(t.PkgPath(), "github.com/dsload/dsload/"); ok && t.PkgPath() != "main" {
		dir = filepath.Join("../..", path)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			continue
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != t.Name() {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				text := field.Doc.Text()
				if text == "" {
					text = field.Comment.Text()
				}
				for _, name := range field.Names {
					found[name.Name] = strings.Join(strings.Fields(text), " ")
				}
			}
			return false
		})
	}
	return found
}
