package option

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/tokenize"
)

// notGiven are the fields of Settings that no option sets: sources are arguments, a build finds the
// fingerprint and the template for tools, and a window of packing is for tests.
var notGiven = []string{"sources", "tokenizer-fingerprint", "chat-tool-template", "pack-window"}

// TestOptionsAreSettings compares the table with the tags of Settings, and each option with the field that it
// sets.
func TestOptionsAreSettings(t *testing.T) {
	var o Options
	fields := map[string]any{"out": &o.Out, "overwrite": &o.Overwrite, "append": &o.Append, "memory": &o.Memory,
		"workers": &o.Workers, "checkpoint-every": &o.CheckpointEvery}
	others := len(fields)
	var add func(reflect.Value)
	add = func(s reflect.Value) {
		for i := range s.NumField() {
			if s.Type().Field(i).Anonymous {
				add(s.Field(i))
				continue
			}
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			fields[name] = s.Field(i).Addr().Interface()
		}
	}
	add(reflect.ValueOf(&o.Settings).Elem())
	changing := 0
	for _, opt := range All() {
		field, ok := fields[opt.Name]
		delete(fields, opt.Name)
		if !ok || reflect.ValueOf(field).Pointer() != reflect.ValueOf(opt.Field(&o)).Pointer() {
			t.Errorf("option %s sets no field of this name", opt.Name)
		}
		if opt.ChangesBytes() {
			changing++
		}
		ownWord := opt.Kind == Text || opt.Kind == Ending || opt.Kind == List || opt.Kind == Names
		if opt.Help == "" || !slices.Contains(Groups(), opt.Group) || ownWord != (opt.Value != "") {
			t.Errorf("option %s has an incomplete help, or a word for its value that its kind has already", opt.Name)
		}
	}
	for name := range fields {
		if !slices.Contains(notGiven, name) {
			t.Errorf("the setting %s has no option", name)
		}
	}
	if want := len(All()) - others; changing != want {
		t.Errorf("%d options change bytes, want %d", changing, want)
	}
}

// TestPatterns: the words for the option are those that tokenize knows, which its error names.
func TestPatterns(t *testing.T) {
	_, err := tokenize.FromRanks(tokenize.Ranks{Pattern: "unknown", Tokens: [][]byte{{0}}})
	if err == nil || !strings.Contains(err.Error(), "want "+strings.Join(patterns, ", ")+", or") {
		t.Error(err)
	}
}

func TestOptionLimits(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		r    Resources
		want string
	}{
		{s: Settings{Filter: filter.Options{MinChars: -1}}, want: "`min-chars` -1: must be at least 0"},
		{s: Settings{Filter: filter.Options{MaxChars: -1}}, want: "`max-chars` -1: must be at least 0"},
		{s: Settings{Filter: filter.Options{Sample: 1.5}}, want: "`sample` 1.5: must be above 0 and at most 1"},
		{s: Settings{Filter: filter.Options{Sample: -0.1}}, want: "above 0 and at most 1"},
		{s: Settings{Filter: filter.Options{Sample: math.NaN()}}, want: "above 0 and at most 1"},
		{s: Settings{MaxLength: maxMaxLength + 1}, want: "`max-length` 16777217: must be at most 16777216"},
		{s: Settings{MaxLength: -1}, want: "`max-length` -1: must be at least 1"},
		{s: Settings{Pack: "wraped"}, want: "did you mean wrapped?"},
		{s: Settings{PackWindow: -1}, want: "PackWindow -1: must be at least 0"},
		{s: Settings{Dedup: "some"}, want: "`dedup` some: must be one of none, exact, near"},
		{r: Resources{Workers: maxWorkers + 1}, want: "`workers` 1025: must be at most 1024"},
	} {
		err := Options{Settings: c.s, Resources: c.r}.WithDefaults().Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	o := Defaults()
	if err := o.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for _, opt := range All() {
		if err := opt.Check(&o); err != nil {
			t.Errorf("the default of %s: %v", opt.Name, err)
		}
	}
	o.Pack = "concat" // as typed
	if opt, _ := Named("pack"); opt.Check(&o) != nil {
		t.Error("an alias is refused")
	}
}
