package report

import (
	"encoding/json"
	"strconv"

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
