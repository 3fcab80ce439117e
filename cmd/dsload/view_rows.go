package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/view"
	"github.com/spf13/cobra"
)

// A rowPrinter prints rows for people, or for programs, or onto a page.
type rowPrinter struct {
	out    io.Writer
	asJSON bool
	page   *strings.Builder // nil for none
	screen marked.Screen
	n      int // rows that were printed
}

// printAll prints the rows of a list from one on, at most limit unless that is 0. The error is io.EOF if there is none.
func (p *rowPrinter) printAll(ctx context.Context, l *view.List, at, limit int64) error {
	for ; limit == 0 || int64(p.n) < limit; at++ {
		row, i, err := l.Next(at, 1, p.screen.Tokens, ctx.Err)
		if err == io.EOF && p.n > 0 {
			return nil
		}
		if err == nil {
			err = p.print(row)
		}
		if err != nil {
			return err
		}
		at = i
		p.n++
	}
	return nil
}

func (p *rowPrinter) print(row *view.Row) error {
	switch {
	case p.page != nil:
		p.page.WriteString(string(marked.HTML(row.Head(""), p.screen.Tokens, row.Texts()...)))
		return nil
	case p.asJSON:
		e := json.NewEncoder(p.out)
		e.SetEscapeHTML(false)
		return e.Encode(row)
	}
	text := oneLine(row.Head(p.screen.Legend())) + "\n\n" + strings.Join(row.Lines(p.screen), "\n") + "\n"
	if p.n > 0 {
		text = "\n" + text
	}
	_, err := io.WriteString(unguarded(p.out), text) // colours are ours, and what they surround is harmless
	return err
}

// printGiven prints the rows of a batch, which stdin has as JSON, as {"html": …, "text": …}.
func printGiven(cmd *cobra.Command, run *view.Run) error {
	var rows []view.Given
	if err := json.NewDecoder(cmd.InOrStdin()).Decode(&rows); err != nil {
		return fault.Kindf(fault.Corrupt, "view --given: read the rows on stdin: %w", err)
	}
	s, err := run.Of(0)
	if err != nil {
		return err
	}
	var html, text strings.Builder
	for _, p := range []rowPrinter{{page: &html}, {out: &text}} {
		if err := p.printAll(cmd.Context(), s.Given(rows), 0, 0); err != nil && err != io.EOF {
			return err
		}
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
		"html": "<style>" + marked.Style + "</style>" + html.String(), "text": text.String()})
}
