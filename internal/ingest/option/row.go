package option

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/spelling"
)

// A Row describes a field of Options for code that offers it: as a flag with its help and completion, or as
// a typed argument of another language. Its limits are checked only here.
type Row struct {
	Name    string // its name in a dataset's settings
	Short   string // one letter, or ""
	Group   Group
	Kind    Kind
	Value   string   // the word for the value, such as FILE, where its Kind has none
	Help    string   // one line without a full stop; names of other options are in backquotes
	Words   []string // all values of a Word, and usual ones of a Text
	Aliases []string // other spellings of Words
	Files   bool     // the value may be a path
	Min     int64    // for a Count or a Size
	Max     int64    // for a Count or a Size; 0 sets none
	field   func(*Options) any
}

// Group is the title under which help lists options.
type Group string

const (
	GroupSources Group = "Sources"
	GroupText    Group = "Text and tokens"
	GroupFilters Group = "Filters"
	GroupSplits  Group = "Splits and budgets"
	GroupPacking Group = "Packing"
	GroupOutput  Group = "Output"
	GroupLimits  Group = "Limits"
)

// Groups returns the groups in the order of help.
func Groups() []Group {
	return []Group{GroupSources, GroupText, GroupSplits, GroupFilters, GroupPacking, GroupOutput, GroupLimits}
}

// Kind is what an option takes.
type Kind uint8

const (
	Text   Kind = iota // *string
	Word               // *string: one of Words
	Ending             // *string: a token, or OwnToken where none is named
	List               // *[]string: a value each time that it is given
	Names              // *[]string: separated by commas
	Switch             // *bool
	Count              // *int or *int64
	Size               // *int64: bytes
	Share              // *float64: above 0 and at most 1
)

// All returns the options of a build in the order of its help.
func All() []Row { return slices.Clone(table) }

// Named returns the option of a name.
func Named(name string) (Row, bool) {
	i := slices.IndexFunc(table, func(o Row) bool { return o.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return table[i], true
}

// Field returns a pointer to the field of o that the option sets, of the type that its Kind has.
func (opt Row) Field(o *Options) any { return opt.field(o) }

// ChangesBytes reports whether the bytes of a dataset depend on the option: whether it is one of Settings.
func (opt Row) ChangesBytes() bool {
	var o Options
	settings := reflect.ValueOf(&o.Settings)
	return reflect.ValueOf(opt.field(&o)).Pointer()-settings.Pointer() < settings.Type().Elem().Size()
}

// HelpFor returns Help with the names of options as write spells them.
func (opt Row) HelpFor(write func(name string) string) string {
	var b strings.Builder
	for rest := opt.Help; ; {
		before, after, named := strings.Cut(rest, "`")
		b.WriteString(before)
		if !named {
			return b.String()
		}
		name, after, _ := strings.Cut(after, "`")
		b.WriteString(write(name))
		rest = after
	}
}

// Check returns an error if the value that o has for the option is out of its limits. Zero is a value
// like any other, though in Options it stands for the default.
func (opt Row) Check(o *Options) error {
	switch p := opt.field(o).(type) {
	case *string:
		if opt.Kind == Word && !slices.Contains(opt.Aliases, *p) && !slices.Contains(opt.Words, *p) {
			return fault.BadOption(fault.Option(opt.Name), *p, "%s", spelling.OneOf(*p, opt.Words, opt.Aliases...))
		}
	case *int:
		return opt.checkNumber(int64(*p))
	case *int64:
		return opt.checkNumber(*p)
	case *float64:
		if !(*p > 0 && *p <= 1) { // NaN too
			return fault.BadOption(fault.Option(opt.Name), *p,
				"must be above 0 and at most 1, as in 0.1")
		}
	}
	return nil
}

func (opt Row) checkNumber(n int64) error {
	unit := ""
	if opt.Kind == Size && opt.Min > 1 {
		unit = " bytes"
	}
	switch {
	case n < opt.Min:
		return fault.BadOption(fault.Option(opt.Name), n, "must be at least %d%s", opt.Min, unit)
	case opt.Max > 0 && n > opt.Max:
		return fault.BadOption(fault.Option(opt.Name), n, "must be at most %d%s", opt.Max, unit)
	}
	return nil
}

// words returns the values of an option as strings.
func words[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// alternatives writes values as in "a, b or c".
func alternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
