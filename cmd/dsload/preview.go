package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/preview"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

const (
	// previewWhole is how many tokens an example may have to be shown whole. Of a longer one previewHead are shown at
	// the beginning, previewTail at the end, and previewAround on each side of where loss begins or ends, of the first
	// and the last previewBorders such places.
	previewWhole   = 256
	previewHead    = 64
	previewTail    = 32
	previewAround  = 24
	previewBorders = 4
)

// runPreview shows how a build would begin. What was found before an error is shown, too.
func (f *buildFlags) runPreview(cmd *cobra.Command, o option.Options) error {
	p, err := ingest.Preview(cmd.Context(), o, f.preview)
	if p == nil {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("preview: %w", ingest.ErrInterrupted)
	}
	for k := range p.Inputs {
		in := &p.Inputs[k]
		for i := range in.Documents {
			if d := &in.Documents[i]; !d.LeftOut.IsZero() {
				inFlags(&d.LeftOut)
			}
		}
		if !in.Error.IsZero() {
			inFlags(&in.Error)
		}
	}
	notesInFlags(p.Notes)
	out := cmd.OutOrStdout()
	if f.asJSON {
		return errors.Join(err, json.NewEncoder(out).Encode(p))
	}
	s := &previewScreen{tokenizer: p.Tokenizer, colours: colourful(out), explain: f.explain}
	s.write(p, err == nil)
	_, writeErr := io.WriteString(unguarded(out), s.b.String()) // colours are ours, and what they surround is printable
	return errors.Join(err, writeErr)
}

// A previewScreen writes a preview for people.
type previewScreen struct {
	b         strings.Builder
	tokenizer *tokenize.Tokenizer
	colours   bool
	explain   bool // the memory plan is shown
}

func (s *previewScreen) printf(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }

func (s *previewScreen) write(p *preview.Preview, whole bool) {
	for i := range p.Inputs {
		s.input(&p.Inputs[i], &p.Options)
	}
	if p.MoreInputs > 0 {
		more := oneLine(strings.Join(p.More, ", "))
		if len(p.More) < p.MoreInputs {
			more += ", …"
		}
		s.printf("and %s that this preview does not look at: %s\n\n", plural(p.MoreInputs, "input"), more)
	}
	for _, note := range p.Notes {
		s.printf("note: %s\n", oneLine(note.String()))
	}
	if !whole {
		return
	}
	s.examples(p)
	s.estimate(p)
	if !s.explain {
		s.printf("memory: within the cap of %s; --explain-memory shows how it is divided\n", formatSize(p.Memory.Cap))
	} else {
		s.printf("memory, as the cap of %s would be divided:\n", formatSize(p.Memory.Cap))
		_ = printMemory(&s.b, p.Memory, false) // a Builder takes everything
	}
	s.printf("nothing was written\n")
}

// input writes an input with its documents.
func (s *previewScreen) input(in *preview.Input, o *option.Options) {
	if in.Format == "" {
		s.printf("%s: it ends the build: %s\n\n", oneLine(in.URI), oneLine(in.Error.String()))
		return
	}
	s.printf("%s: read as %s", oneLine(in.URI), in.Format)
	if in.Compression != decompress.Plain {
		s.printf(" in %s", in.Compression)
	}
	s.b.WriteString(howRead(in, o))
	if in.Bytes >= 0 {
		s.printf(", %s", formatSize(in.Bytes))
	}
	if in.Val {
		s.printf(", for the split val")
	}
	s.printf("\n")
	for i := range in.Documents {
		s.document(&in.Documents[i])
	}
	if in.Ended && len(in.Documents) == 0 {
		s.printf("  it contains no documents\n")
	}
	if !in.Error.IsZero() {
		s.printf("\n  it ends the build: %s\n", oneLine(in.Error.String()))
	}
	s.printf("\n")
}

// howRead returns where the text of a record comes from, or "" if the record is text.
func howRead(in *preview.Input, o *option.Options) string {
	switch {
	case in.Format.HoldsChat() || o.Format == source.Chat:
		return ", by the chat template"
	case in.Format.Kind() == source.Texts, in.Format.Kind() == source.Various:
		return ""
	case o.Template != "":
		return ", template " + oneLine(o.Template)
	case o.HasTemplate():
		return ", templates of prompt and target"
	case o.TextField != "":
		return ", field " + oneLine(o.TextField)
	case in.Format == source.Recipes:
		return ""
	}
	return ", field text"
}

// document writes how a document is cut and tokenized, or why it is left out.
func (s *previewScreen) document(d *preview.Document) {
	if d.Unread > 1 {
		s.printf("\n  records %s to %s, unread", formatCount(d.Record), formatCount(d.Record+d.Unread-1))
	} else {
		s.printf("\n  record %s", formatCount(d.Record))
	}
	if d.Member != "" {
		s.printf(" of %s", oneLine(d.Member))
	}
	if d.Shape != "" {
		s.printf(", %s", d.Shape)
	}
	if !d.LeftOut.IsZero() {
		s.printf(": left out: %s\n", oneLine(d.LeftOut.String()))
		if d.Text != "" {
			s.printf("    %s\n", tokenLine([]marked.Piece{{Text: d.Text}}, false))
		}
		return
	}
	more := ""
	if d.Partial {
		more = " and more"
	}
	s.printf(": %s of text%s, %s", formatSize(d.Bytes), more, plural(d.Tokens, "token"))
	switch {
	case d.NumExamples > 1:
		s.printf(", cut into %s", plural(d.NumExamples, "example"))
	case d.Cut:
		s.printf(", cut to --max-length: the rest is left out")
	}
	if d.Split != "" && d.Split != "train" {
		s.printf(", for the split %s", d.Split)
	}
	if d.Replaced > 0 {
		s.printf(", %s replaced by U+FFFD", plural(d.Replaced, "ill-formed UTF-8 sequence"))
	}
	s.printf("\n")
	for i := range d.Examples {
		if d.NumExamples > 1 {
			s.printf("    part %d, %s\n", i, plural(len(d.Examples[i].InputIDs), "token"))
		}
		s.example(&d.Examples[i])
	}
	if hidden := d.NumExamples - len(d.Examples); hidden > 0 {
		s.printf("    and %s\n", plural(hidden, "more example"))
	}
}

// example writes the tokens of an example: a line for each stretch with the same loss.
func (s *previewScreen) example(r *preview.Example) {
	if r.Labels == nil {
		s.tokens("", r.InputIDs, r.LossMask)
		return
	}
	s.tokens("prompt  ", r.InputIDs, nil)
	s.tokens("target  ", r.Labels, nil)
}

// tokens writes an example with the borders of its tokens: all of it, or its ends and where loss begins and ends.
func (s *previewScreen) tokens(label string, ids []uint32, mask []bool) {
	shown := make([]bool, len(ids))
	show := func(from, to int) {
		for i := max(from, 0); i < min(to, len(ids)); i++ {
			shown[i] = true
		}
	}
	if show(len(ids)-previewTail, len(ids)); len(ids) <= previewWhole {
		show(0, len(ids))
	}
	show(0, previewHead)
	var borders []int
	for i := 1; i < len(mask); i++ {
		if mask[i] != mask[i-1] {
			borders = append(borders, i)
		}
	}
	for i, at := range borders {
		if i < previewBorders || i >= len(borders)-previewBorders {
			show(at-previewAround, at+previewAround)
		}
	}
	for from := 0; from < len(ids); {
		to := from
		for to < len(ids) && shown[to] == shown[from] {
			to++
		}
		if shown[from] {
			s.stretches(label, marked.Cut(s.tokenizer, ids[from:to], mask[min(from, len(mask)):min(to, len(mask))], nil, true),
				mask != nil)
		} else {
			s.printf("    %s… %s …\n", label, plural(to-from, "more token"))
		}
		from = to
	}
}

// stretches writes tokens, on a line for each stretch with the same loss if loss is said.
func (s *previewScreen) stretches(label string, tokens []marked.Piece, sayLoss bool) {
	for n := 1; len(tokens) > 0; tokens, n = tokens[n:], 1 {
		for n < len(tokens) && (!sayLoss || tokens[n].Loss == tokens[0].Loss) {
			n++
		}
		if sayLoss {
			label = map[bool]string{true: "loss on   ", false: "loss off  "}[tokens[0].Loss]
		}
		s.printf("    %s%s\n", label, tokenLine(tokens[:n], s.colours))
	}
}

// examples writes what all examples have in common.
func (s *previewScreen) examples(p *preview.Preview) {
	o := &p.Options
	s.printf("examples: tokenizer %s, at most %s, %s", oneLine(p.Tokenizer.Name()), plural(o.MaxLength, "token"),
		loss(p))
	if o.Pack != pack.None {
		s.printf("; packed by %s, which fills each row with several documents\n", o.Pack)
		return
	}
	s.printf("; longer documents: %s\n", o.Overflow)
}

// loss returns which tokens of the examples are trained on.
func loss(p *preview.Preview) string {
	for _, in := range p.Inputs {
		for _, d := range in.Documents {
			for _, x := range d.Examples {
				switch {
				case x.Labels != nil:
					return "loss on the target"
				case x.LossMask != nil:
					return "loss on part of the tokens"
				}
			}
		}
	}
	return "loss on every token"
}

// estimate writes what the build would make.
func (s *previewScreen) estimate(p *preview.Preview) {
	e := &p.Estimate
	if !e.Known {
		s.printf("estimate: none, since the size of the sources is not known\n")
		return
	}
	about, figure := "about ", roughly
	if e.Exact {
		about, figure = "", func(n int64) int64 { return n }
	}
	s.printf("estimate: %s%s", about, plural(figure(e.Documents), "document"))
	switch {
	case e.Kept == 0:
		s.printf(", of which none that was looked at would stay")
	case e.Kept < e.Documents:
		s.printf(", of which %s%s would stay", about, formatCount(figure(e.Kept)))
	}
	s.printf(", %s in %s", plural(figure(e.Tokens), "token"), plural(figure(e.Examples), "example"))
	if p.Options.Pack != pack.None {
		s.printf(" before packing")
	}
	if e.LimitedBy != "" {
		s.printf(", where --%s ends the build", e.LimitedBy)
	}
	s.printf("; a dataset of about %s, in about %s with %s\n", formatSize(e.Bytes), formatSeconds(e.Seconds),
		plural(p.Options.Workers, "worker"))
	if e.Exact || e.LimitedBy != "" {
		return
	}
	s.printf("          if the rest is like the first %s of the inputs above; where documents are sorted or mixed, "+
		"it can be 10 times off\n", formatSize(preview.SampleBytes))
	if slices.ContainsFunc(p.Inputs, func(in preview.Input) bool { return in.Compression != decompress.Plain }) {
		s.printf("          the size of compressed text is a guess too, from that of its file\n")
	}
}

// roughly returns n with two digits.
func roughly(n int64) int64 {
	unit := units.SecondDigit(n)
	return (n + unit/2) / unit * unit
}

// formatSeconds writes a duration roughly, such as "0.4 s" or "12 min".
func formatSeconds(seconds float64) string {
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 120:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
