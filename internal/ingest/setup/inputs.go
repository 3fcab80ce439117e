package setup

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// Known returns what identifies the inputs of all phases without reading them, in the order of the
// manifest's list.
func (p *Prepared) Known() (stats []source.Stat) {
	for i := range p.Phases {
		stats = append(stats, p.Phases[i].Set.Known()...)
	}
	return stats
}

// CheckEnds returns an error for generated text without an end if no budget ends the build.
func (p *Prepared) CheckEnds() error {
	o := p.Options
	if o.MaxBytes > 0 || o.MaxTokens > 0 {
		return nil
	}
	for i, budget := range []int64{Train: o.MaxExamples, Val: o.MaxValExamples} {
		if budget > 0 || i >= len(p.Phases) {
			continue
		}
		option := []fault.Option{Train: "max-examples", Val: "max-val-examples"}[i]
		for _, in := range p.Phases[i].Set.Known() {
			if in.Size < 0 && strings.HasPrefix(in.URI, "synth://") {
				return fault.BadOption(option, 0,
					"%s has no end; set a number of examples, or another budget such as {max-bytes}", in.URI)
			}
		}
	}
	return nil
}

// Formats counts the inputs of all phases by their format.
func (p *Prepared) Formats() map[string]int {
	formats := map[string]int{}
	for i := range p.Phases {
		for format, n := range p.Phases[i].Set.Formats() {
			formats[string(format)] += n
		}
	}
	return formats
}

// DescribeInputs names the inputs and their formats.
func (p *Prepared) DescribeInputs() string {
	n, set := 0, p.Phases[0].Set
	for i := range p.Phases {
		if p.Phases[i].Set.Len() > 0 {
			set = p.Phases[i].Set
		}
		n += p.Phases[i].Set.Len()
	}
	if n == 0 {
		return "nothing: what is left for this partition is empty"
	}
	if n == 1 {
		if in, err := set.Input(0); err == nil {
			only := uris.Shown(in.URI) + " as " + string(in.Format)
			if in.Compression != decompress.Plain && string(in.Compression) != string(in.Format) {
				only += ", " + string(in.Compression)
			}
			return only
		}
	}
	formats := p.Formats()
	var parts []string
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		parts = append(parts, fmt.Sprintf("%d as %s", formats[format], format))
	}
	return fmt.Sprintf("%d inputs: %s", n, strings.Join(parts, ", "))
}

// maxFilesCompared bounds the search for one file under two names.
const maxFilesCompared = 100

// sameFile reports whether a path leads to a file that is a source of train under another name.
func (p *Prepared) sameFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false // generated text has no file
	}
	inputs := p.Phases[0].Set.Known()
	return slices.ContainsFunc(inputs[:min(len(inputs), maxFilesCompared)], func(in source.Stat) bool {
		other, err := os.Stat(uris.Path(in.URI))
		return err == nil && os.SameFile(info, other)
	})
}
