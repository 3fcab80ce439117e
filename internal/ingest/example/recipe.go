package example

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
)

// A builtin is a built-in template over rows of CSV. body defines it; hand-written code produces the
// same text faster. Of the columns, lists hold a JSON list of strings.
type builtin struct {
	name, body string
	lists      []string
}

// recipeLists are the lists of RecipeNLG.
var recipeLists = []string{"ingredients", "directions", "NER"}

var builtins = []builtin{
	{"recipe", `{{trim .title}}

Ingredients:
{{range .ingredients}}- {{.}}
{{end}}
Directions:
{{range $i, $step := .directions}}{{inc $i}}. {{$step}}
{{end}}`, recipeLists},
	{"recipe-seq2seq", `{{define "prompt"}}Ingredients:
{{range .ingredients}}- {{.}}
{{end}}{{end}}{{define "target"}}{{trim .title}}

Directions:
{{range $i, $step := .directions}}{{inc $i}}. {{$step}}
{{end}}{{end}}`, recipeLists},
}

// recipeColumns lists the columns of RecipeNLG that make a recipe, in the order of
// columnIndex.known.
var recipeColumns = [3]string{"title", "ingredients", "directions"}

// IsBuiltin reports whether there is a built-in template of that name.
func IsBuiltin(name string) bool { return findBuiltin(name) != nil }

// Builtins returns the names of the built-in templates.
func Builtins() []string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.name
	}
	return names
}

func findBuiltin(name string) *builtin {
	i := slices.IndexFunc(builtins, func(b builtin) bool { return b.name == name })
	if i < 0 {
		return nil
	}
	return &builtins[i]
}

// recipe renders a RecipeNLG record with a built-in template.
func (w *Worker) recipe(dst *Formatted) error {
	for i, column := range w.columns.known {
		if column < 0 {
			return fault.Of(ErrUnknownField, "no column %q; the columns are %s", recipeColumns[i],
				strings.Join(w.columns.of, ", "))
		}
		if i == 0 {
			continue
		}
		var err error
		if w.lists[i], w.ends[i], err = appendStrings(w.lists[i][:0], w.ends[i][:0], w.fields.at(column)); err != nil {
			return fault.Of(ErrMalformed, "column %s: %v, as recipes have; plain texts are read with {format} csv and "+
				"{template} or {text-field}", recipeColumns[i], err)
		}
	}
	title := bytes.TrimSpace(w.fields.at(w.columns.known[0]))
	if !w.f.HasTarget() {
		p := append(append(dst.Prompt[:0], title...), "\n\n"...)
		p = append(w.ingredients(p), '\n')
		dst.Prompt = w.directions(p)
		return nil
	}
	dst.Prompt = w.ingredients(dst.Prompt[:0])
	t := append(append(dst.Target[:0], title...), "\n\n"...)
	dst.Target, dst.HasTarget = w.directions(t), true
	return nil
}

func (w *Worker) ingredients(dst []byte) []byte {
	dst = append(dst, "Ingredients:\n"...)
	start := 0
	for _, end := range w.ends[1] {
		dst = append(append(append(dst, "- "...), w.lists[1][start:end]...), '\n')
		start = end
	}
	return dst
}

func (w *Worker) directions(dst []byte) []byte {
	dst = append(dst, "Directions:\n"...)
	start := 0
	for i, end := range w.ends[2] {
		dst = append(strconv.AppendInt(dst, int64(i+1), 10), ". "...)
		dst = append(append(dst, w.lists[2][start:end]...), '\n')
		start = end
	}
	return dst
}
