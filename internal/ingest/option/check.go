package option

import (
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
)

// checkChat refuses options that contradict Format "chat", and an invalid date or roles.
func (o *Options) checkChat() error {
	if o.Date != "" {
		if _, err := time.Parse(time.DateOnly, o.Date); err != nil {
			return fault.BadOption("date", o.Date, "must be a day written as 2006-01-02")
		}
	}
	if _, err := chat.ParseRoles(o.Roles); err != nil {
		return fault.BadOption("roles", strings.Join(o.Roles, ","), "%v", err)
	}
	if o.Reasoning == chat.MaskReasoning && o.TrainOn == chat.TrainAll {
		return fault.BadOption("reasoning", string(o.Reasoning),
			"{train-on} all puts loss on every token; leave one of the two out")
	}
	if o.SplitTurns && o.TrainOn == chat.TrainAll {
		return fault.BadOption("split-turns", nil, "it puts loss on one turn a row, and {train-on} all on every token; "+
			"leave one of the two out")
	}
	if o.Format != source.Chat {
		return nil
	}
	for _, other := range []struct {
		option fault.Option
		value  string
		given  bool
	}{
		{"template", "", o.Template != ""}, {"prompt", "", o.Prompt != ""}, {"target", "", o.Target != ""}, {"text-field", o.TextField, o.TextField != ""},
		{"causal-pairs", "", o.CausalPairs}, {"special-tokens", string(o.SpecialTokens),
			o.SpecialTokens == SpecialOfChunk},
	} {
		if other.given {
			return fault.BadOption(other.option, other.value,
				"a conversation is written by its chat template; leave the option out, or give another {format}")
		}
	}
	return nil
}

// Validate returns an error for the first option whose value is out of its limits, or contradicts another.
func (o Options) Validate() error {
	for _, opt := range table {
		if err := opt.Check(&o); err != nil {
			return err
		}
	}
	for _, check := range []func() error{o.checkChat, o.checkOut, o.checkSources, o.checkFields, o.checkCSV,
		o.checkPack} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkOut returns an error for an address that cannot be written.
func (o *Options) checkOut() error {
	out := o.Out
	scheme, isAddress := remote.AnyScheme(out)
	if !isAddress {
		return nil
	}
	if err := remote.CheckSigned(out); err != nil {
		return fault.BadOption("out", nil, "%v", err)
	}
	if remote.Writable(out) {
		if err := remote.CheckFolder(out); err != nil {
			return fault.BadOption("out", out, "%v", err)
		}
		return nil
	}
	return fault.BadOption("out", out, "addresses of kind %s:// cannot be written; "+
		"name a folder, s3://, gs:// or az://", scheme)
}

// checkSources returns an error for sources that cannot be read together.
func (o *Options) checkSources() error {
	switch {
	case slices.Contains(o.Sources, "-") && slices.Contains(o.ValSources, "-"):
		return fault.BadOption("val", "-", "standard input is a source already; it can be read only once")
	case !o.Append:
		return nil
	case len(o.ValSources) > 0:
		return fault.BadOption("val", uris.Redact(o.ValSources[0]),
			"an addition with {append} adds to train alone; the split val stays as it is")
	case len(o.Sources) == 0:
		return fault.BadOption("append", nil, "name the sources to add")
	}
	return nil
}

// checkPack checks the options that concern packing.
func (o *Options) checkPack() error {
	if o.PackWindow < 0 {
		return fault.Kindf(fault.Usage, "PackWindow %d: must be at least 0", o.PackWindow)
	}
	if o.Pack == pack.None {
		return nil
	}
	if o.Overflow != overflowOf(o.Pack) && !o.Inherits("overflow") { // else another policy than the dataset's is refused
		does := map[pack.Policy]fault.Text{
			pack.Wrapped:  fault.Textf("cuts documents wherever a row ends"),
			pack.BFD:      fault.Textf("truncates longer documents; {pack} bfd_split splits them"),
			pack.BFDSplit: fault.Textf("splits longer documents; {pack} bfd truncates them"),
		}[o.Pack]
		return fault.BadOption("overflow", string(o.Overflow), "{pack} %s %v; leave {overflow} out",
			o.Pack, does)
	}
	if o.Pack == pack.Wrapped && o.SpecialTokens == SpecialOfChunk {
		return fault.BadOption("special-tokens", string(o.SpecialTokens),
			"{pack} wrapped cuts documents wherever a row ends, so that they have no chunks; "+
				"leave {special-tokens} out")
	}
	if o.MaxLength > pack.MaxLength {
		return fault.BadOption("max-length", o.MaxLength, "must be at most %d", pack.MaxLength)
	}
	return nil
}

// checkCSV returns an error for options of CSV that are invalid or do not fit the format.
func (o *Options) checkCSV() error {
	if d := o.Delimiter; d != "" && d != `\t` && (len(d) != 1 || d[0] >= 0x80 || d[0] < ' ' && d[0] != '\t' ||
		d[0] == '"') {
		return fault.BadOption("delimiter", d, `must be one ASCII character, such as ; or |, or \t for a tab`)
	}
	kind := o.Format.Kind()
	csv := kind == source.Rows || kind == source.Various || o.Format == source.Chat
	for _, option := range []struct {
		name  fault.Option
		value string
		set   bool
	}{{"columns", strings.Join(o.Columns, ","), len(o.Columns) > 0}, {"delimiter", o.Delimiter, o.Delimiter != ""}} {
		if option.set && !csv {
			return fault.BadOption(option.name, option.value, "{format} %s has no columns; it is for CSV", o.Format)
		}
	}
	for i, name := range o.Columns {
		switch {
		case name == "":
			return fault.BadOption("columns", strings.Join(o.Columns, ","), "a name is empty")
		case slices.Contains(o.Columns[:i], name):
			return fault.BadOption("columns", strings.Join(o.Columns, ","), "%s is named twice", name)
		}
	}
	return nil
}

// checkFields returns an error for fields and paths that cannot be parsed, and for a path with a format that has none.
func (o *Options) checkFields() error {
	if o.TextField != "" {
		if _, err := example.ParseFieldPaths(o.TextField); err != nil {
			return fault.BadOption("text-field", o.TextField, "%v", err)
		}
	}
	if o.Records == "" {
		return nil
	}
	if _, err := frame.ParseRecords(o.Records); err != nil {
		return fault.BadOption("records", o.Records, "%v", err)
	}
	if !slices.Contains([]source.Format{source.Auto, source.JSON, source.Chat, source.Tar}, o.Format) {
		return fault.BadOption("records", o.Records, "{format} %s has no arrays of records; it is for JSON files", o.Format)
	}
	return nil
}
