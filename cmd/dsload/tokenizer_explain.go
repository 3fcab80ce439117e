package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

// An explainer shows where the tokens of a text begin and end: by colours on a terminal, else by a
// mark between them.
type explainer struct {
	tokenizer *tokenize.Tokenizer
	special   bool // show the tokens that the tokenizer puts around a text
	colours   bool
	ids       []uint32
	offsets   []tokenize.Offset
}

const endColours = "\x1b[0m"

// colourful reports whether to write colours to w: it is a terminal that has some, and the user did
// not turn them off.
func colourful(w io.Writer) bool {
	return isTerminal(unguarded(w)) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// segment is a stretch of the text with the tokens that begin in it, none if it became no token.
type segment struct {
	text    string
	ids     []uint32
	special bool
}

// segments returns the text in order, cut where tokens begin. Tokens that share a character share a
// segment.
func (e *explainer) segments(text []byte) (out []segment, err error) {
	t := e.tokenizer
	around := func(ids []uint32) {
		for _, id := range ids {
			name, _ := t.Token(id)
			out = append(out, segment{name, []uint32{id}, true})
		}
	}
	if e.special {
		around(t.Prefix())
	}
	e.ids, e.offsets, err = t.AppendTokensOffsets(e.ids[:0], e.offsets[:0], text)
	switch {
	case errors.Is(err, tokenize.ErrUnsupported): // a SentencePiece model has no offsets: its pieces are shown
		err = nil
		for _, id := range t.NewEncoder(tokenize.EncoderOptions{}).AppendTokens(e.ids[:0], text) {
			name, _ := t.Token(id)
			out = append(out, segment{strings.ReplaceAll(name, "▁", " "), []uint32{id}, false})
		}
	case err != nil:
		return nil, err
	default:
		out = append(out, e.cut(text)...)
	}
	if e.special {
		around(t.Suffix())
	}
	return out, nil
}

// cut cuts the text at the offsets of its tokens.
func (e *explainer) cut(text []byte) (out []segment) {
	done := 0
	for i := 0; i < len(e.ids); {
		start, end := e.offsets[i].Start, e.offsets[i].End
		next := i + 1
		for next < len(e.ids) && (e.offsets[next].Start < end ||
			!utf8.Valid(text[start:end]) && end-start < utf8.UTFMax*2) {
			end = max(end, e.offsets[next].End)
			next++
		}
		start = max(start, done)
		if start > done {
			out = append(out, segment{text: string(text[done:start])})
		}
		end = max(end, start)
		out = append(out, segment{text: string(text[start:end]), ids: slices.Clone(e.ids[i:next])})
		done, i = end, next
	}
	if done < len(text) {
		out = append(out, segment{text: string(text[done:])})
	}
	return out
}

// write writes one text: its tokens, then how many there are and their ids.
func (e *explainer) write(out io.Writer, text []byte) error {
	segments, err := e.segments(text)
	if err != nil {
		return err
	}
	var ids []string
	n := 0
	for _, s := range segments {
		if n += len(s.ids); len(s.ids) > 0 {
			ids = append(ids, string(appendIDs(nil, s.ids, '+')))
		}
	}
	_, err = fmt.Fprintf(out, "%s\n  %s: %s", renderSegments(segments, e.colours), plural(n, "token"),
		strings.Join(ids, " "))
	return err
}

// renderSegments returns the text of segments on one line, with the borders between them.
func renderSegments(segments []segment, colours bool) string {
	var pieces []marked.Piece
	for _, s := range segments {
		pieces = append(pieces, marked.Piece{Text: s.text, Tokens: len(s.ids), Loss: true, Special: s.special})
	}
	return strings.Join(marked.Screen{Colour: colours, Tokens: true}.Lines(pieces), "")
}

// shownToken is a token's text on one line, without anything that a terminal would act on.
func shownToken(text string) string {
	return strings.NewReplacer("\n", "⏎", "\t", "⇥").Replace(printable(text))
}

// runExplain shows each line of stdin with the borders of its tokens.
func runExplain(cmd *cobra.Command, f *codecFlags) error {
	if f.asJSON {
		return usagef("%s--explain is for people and --json for programs; give one of them", label(cmd))
	}
	t, err := openTokenizer(&f.tokenizer, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	e := &explainer{tokenizer: t, special: !f.noSpecial, colours: colourful(stdout)}
	cmd.SetOut(unguarded(stdout)) // colours are ours, and what they surround is made printable
	return eachLine(cmd, func(n int, line []byte, out *bufio.Writer) error {
		if err := e.write(out, line); err != nil {
			return fmt.Errorf("encode: stdin line %d: %w", n, err)
		}
		return nil
	})
}
