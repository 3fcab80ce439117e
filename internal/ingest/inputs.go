package ingest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// known returns what identifies the inputs of all phases without reading them, in the order of the
// manifest's list.
func (b *build) known() (stats []source.Stat) {
	for i := range b.phases {
		stats = append(stats, b.phases[i].set.Known()...)
	}
	return stats
}

// checkEnds returns an error for generated text without an end if no budget ends the build.
func (b *build) checkEnds() error {
	o := &b.opts
	if o.MaxBytes > 0 || o.MaxTokens > 0 {
		return nil
	}
	for i, budget := range []int64{phaseTrain: o.MaxExamples, phaseVal: o.MaxValExamples} {
		if budget > 0 || i >= len(b.phases) {
			continue
		}
		option := []fault.Option{phaseTrain: "max-examples", phaseVal: "max-val-examples"}[i]
		for _, in := range b.phases[i].set.Known() {
			if in.Size < 0 && strings.HasPrefix(in.URI, "synth://") {
				return fault.BadOption(option, 0,
					"%s has no end; set a number of examples, or another budget such as {max-bytes}", in.URI)
			}
		}
	}
	return nil
}

// formats counts the inputs of all phases by their format.
func (b *build) formats() map[string]int {
	formats := map[string]int{}
	for i := range b.phases {
		for format, n := range b.phases[i].set.Formats() {
			formats[string(format)] += n
		}
	}
	return formats
}

// describeInputs names the inputs and their formats.
func (b *build) describeInputs() string {
	n, set := 0, b.phases[0].set
	for i := range b.phases {
		if b.phases[i].set.Len() > 0 {
			set = b.phases[i].set
		}
		n += b.phases[i].set.Len()
	}
	if n == 0 {
		return "nothing: what is left for this partition is empty"
	}
	if n == 1 {
		if in, err := set.Input(0); err == nil {
			only := source.Shown(in.URI) + " as " + string(in.Format)
			if in.Compression != decompress.Plain && string(in.Compression) != string(in.Format) {
				only += ", " + string(in.Compression)
			}
			return only
		}
	}
	formats := b.formats()
	var parts []string
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		parts = append(parts, fmt.Sprintf("%d as %s", formats[format], format))
	}
	return fmt.Sprintf("%d inputs: %s", n, strings.Join(parts, ", "))
}

// warnings returns the tokenizer's warnings, options without effect, and a source of train that is
// also one of val.
func (b *build) warnings() (warnings []fault.Text) {
	for _, warning := range b.tokenizer.Warnings() {
		warnings = append(warnings, fault.Plain(warning))
	}
	if cut := b.tokenizer.Details().Truncation(); cut > 0 && cut < b.opts.MaxLength {
		warnings = append(warnings,
			fault.Textf("the tokenizer's file cuts texts at %d tokens, without effect here: by {max-length} "+
				"rows have up to %d", cut, b.opts.MaxLength))
	}
	for _, found := range []fault.Text{b.unusedTextField(), b.unusedRecords(), b.unusedCSV(), b.unknownTokens()} {
		if !found.IsZero() {
			warnings = append(warnings, found)
		}
	}
	if len(b.phases) < 2 {
		return warnings
	}
	known := map[string]bool{}
	for _, in := range b.phases[0].set.Known() {
		known[in.URI] = true
	}
	for _, in := range b.phases[1].set.Known() {
		if known[in.URI] || b.sameFile(source.PathOf(in.URI)) {
			warnings = append(warnings, fault.Textf("%s is a source of train and of val: "+
				"the split val says nothing about text that was not trained on", in.URI))
			break
		}
	}
	return warnings
}

// maxFilesCompared bounds the search for one file under two names.
const maxFilesCompared = 100

// sameFile reports whether a path leads to a file that is a source of train under another name.
func (b *build) sameFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false // generated text has no file
	}
	inputs := b.phases[0].set.Known()
	return slices.ContainsFunc(inputs[:min(len(inputs), maxFilesCompared)], func(in source.Stat) bool {
		other, err := os.Stat(source.PathOf(in.URI))
		return err == nil && os.SameFile(info, other)
	})
}
