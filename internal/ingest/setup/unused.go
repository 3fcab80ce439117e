package setup

import (
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// unusedTextField returns a sentence if the option TextField has no effect.
func (p *Prepared) unusedTextField() (none fault.Text) {
	field := p.Options.TextField
	switch {
	case field == "", p.Options.Inherits("text-field"):
		return none
	case p.Options.HasTemplate():
		return fault.Textf("{text-field} %s has no effect with a template, which names the fields itself", field)
	}
	formats, inputs, fieldless := p.Formats(), 0, 0
	for f, n := range formats {
		inputs += n
		if source.Format(f).Kind() == source.Texts {
			fieldless += n
		}
	}
	switch {
	case fieldless == inputs:
		return fault.Textf("{text-field} %s has no effect: the sources are read as text without fields; "+
			"give their {format}", field)
	case fieldless > 0:
		return fault.Textf("{text-field} %s has no effect on %d of %d inputs, which are read as text without fields",
			field, fieldless, inputs)
	}
	return none
}

// unusedRecords returns a sentence if the option Records has no effect.
func (p *Prepared) unusedRecords() (none fault.Text) {
	if p.Options.Records == "" {
		return none
	}
	for f := range p.Formats() {
		if format := source.Format(f); format == source.JSON || format.Kind() == source.Various {
			return none
		}
	}
	return fault.Textf("{records} %s has no effect: no source is read as JSON", p.Options.Records)
}

// unusedCSV returns a sentence if options of CSV have no effect.
func (p *Prepared) unusedCSV() (none fault.Text) {
	o := p.Options
	for f := range p.Formats() {
		if kind := source.Format(f).Kind(); kind == source.Rows || kind == source.Various {
			return none
		}
	}
	return noEffect("columns", "delimiter", len(o.Columns) > 0, o.Delimiter != "",
		fault.Textf("no source is read as CSV; give its {format}"))
}

// unusedGlobs returns a sentence if the options Include and Exclude have no effect.
func (p *Prepared) unusedGlobs() (none fault.Text) {
	if slices.ContainsFunc(p.Phases, func(phase Phase) bool { return phase.Set.ChoosesFiles() }) {
		return none
	}
	return noEffect("include", "exclude", len(p.Options.Include) > 0, len(p.Options.Exclude) > 0,
		fault.Textf("each source is a file that is named itself; name its folder"))
}

// noEffect returns a sentence about those of two options that were given.
func noEffect(a, b fault.Option, givenA, givenB bool, why fault.Text) (none fault.Text) {
	switch {
	case givenA && givenB:
		return fault.Textf("%v and %v have no effect: %v", a, b, why)
	case givenA:
		return fault.Textf("%v has no effect: %v", a, why)
	case givenB:
		return fault.Textf("%v has no effect: %v", b, why)
	}
	return none
}

// Warnings returns the tokenizer's warnings, options without effect, and a source of train that is
// also one of val.
func (p *Prepared) Warnings() (warnings []fault.Text) {
	for _, warning := range p.Tokenizer.Warnings() {
		warnings = append(warnings, fault.Plain(warning))
	}
	if cut := p.Tokenizer.Details().Truncation(); cut > 0 && cut < p.Options.MaxLength {
		warnings = append(warnings,
			fault.Textf("the tokenizer's file cuts texts at %d tokens, without effect here: by {max-length} "+
				"rows have up to %d", cut, p.Options.MaxLength))
	}
	for _, found := range []fault.Text{p.unusedTextField(), p.unusedRecords(), p.unusedCSV(), p.unusedGlobs(),
		p.unknownTokens()} {
		if !found.IsZero() {
			warnings = append(warnings, found)
		}
	}
	if len(p.Phases) < 2 {
		return warnings
	}
	known := map[string]bool{}
	for _, in := range p.Phases[0].Set.Known() {
		known[in.URI] = true
	}
	for _, in := range p.Phases[1].Set.Known() {
		if known[in.URI] || p.sameFile(uris.Path(in.URI)) {
			warnings = append(warnings, fault.Textf("%s is a source of train and of val: "+
				"the split val says nothing about text that was not trained on", in.URI))
			break
		}
	}
	return warnings
}
