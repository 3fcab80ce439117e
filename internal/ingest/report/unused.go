package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/units"
)

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
