package example

import (
	"slices"
	"sync"
)

// A builtin is a built-in template. Of the columns that it reads, lists hold a JSON list of strings.
type builtin struct {
	name, body string
	lists      []string
}

// recipeLists are the lists of RecipeNLG.
var recipeLists = []string{"ingredients", "directions", "NER"}

var builtins = []builtin{
	{"recipe", `{{ title | trim }}

Ingredients:
{% for ingredient in ingredients %}
- {{ ingredient }}
{% endfor %}

Directions:
{% for step in directions %}
{{ loop.index }}. {{ step }}
{% endfor %}
`, recipeLists},
	{"recipe-seq2seq", `{% block prompt %}
Ingredients:
{% for ingredient in ingredients %}
- {{ ingredient }}
{% endfor %}
{% endblock %}
{% block target %}
{{ title | trim }}

Directions:
{% for step in directions %}
{{ loop.index }}. {{ step }}
{% endfor %}
{% endblock %}
`, recipeLists},
}

// defaultRecipe is the template of recipes where none is given.
var defaultRecipe = sync.OnceValue(func() *template {
	t, err := parseText("recipe", "")
	if err != nil {
		panic(err)
	}
	return t
})

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
