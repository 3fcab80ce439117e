package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// Reached names a budget by its option and its value.
func Reached(option string, value int64) fault.Text {
	if option == "max-bytes" {
		return fault.Textf("%v", fault.Given(fault.Option(option), units.Size(value)))
	}
	return fault.Textf("%v", fault.Given(fault.Option(option), value))
}

// DescribeCut describes what budgets left of a dataset's sources, nothing if no budget ended the build.
func DescribeCut(m *shard.Manifest) (text fault.Text) {
	var settings map[string]json.RawMessage
	if json.Unmarshal(m.Settings, &settings) != nil {
		settings = nil // another program's; the counters are enough
	}
	c := counts.Of(m.Counters, m.Dropped)
	var cuts []fault.Text
	for _, option := range c.CutBy {
		cut := fault.Textf("%v", fault.Option(option))
		if value, err := strconv.ParseInt(string(settings[option]), 10, 64); err == nil {
			cut = Reached(option, value)
		}
		cuts = append(cuts, cut)
	}
	if cuts == nil {
		return text
	}
	text = fault.Textf("the dataset holds only part of its sources: cut by %v", fault.Join(cuts, ", "))
	if n := c.UnreadBytes; n != nil {
		text = fault.Textf("%v; %s bytes were left unread", text, units.Count(*n))
	}
	if n := c.UnreadInputs; n != nil && *n > 0 {
		text = fault.Textf("%v; inputs untouched: %s", text, units.Count(*n))
	}
	return text
}

// maxFieldsTold is how many fields UnusedFields names.
const maxFieldsTold = 12

// UnusedFields returns the sentence about the fields of records and messages that nothing used, the most frequent
// first.
func UnusedFields(c counts.Counts) []fault.Text {
	if len(c.Unused) == 0 {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(c.Unused), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Unused[b], c.Unused[a]), strings.Compare(a, b))
	})
	var told []string
	for _, name := range names[:min(len(names), maxFieldsTold)] {
		what, field := "record", name
		if of, ok := strings.CutPrefix(name, counts.OfMessages); ok {
			what, field = "message", of
			if strings.Contains(of, "[].") { // a field of its content
				what = "part"
			}
		}
		told = append(told, fmt.Sprintf("%s in %s", field, units.Plural(c.Unused[name], what)))
	}
	text := "fields with a value that nothing used: " + strings.Join(told, ", ")
	switch more := len(names) - len(told); {
	case c.MoreUnused > 0:
		text += " and many more"
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	return []fault.Text{fault.Plain(text)}
}
