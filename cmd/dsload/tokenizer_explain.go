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

// cut returns the text in order, cut where tokens begin, and their ids. Tokens that share a character share a piece.
func (e *explainer) cut(text []byte) (out []marked.Piece, ids []uint32, err error) {
	t := e.tokenizer
	around := func(special []uint32) {
		for _, id := range special {
			name, _ := t.Token(id)
			out = append(out, marked.Piece{Text: name, Tokens: 1, Special: true})
		}
		ids = append(ids, special...)
	}
	if e.special {
		around(t.Prefix())
	}
	e.ids, e.offsets, err = t.AppendTokensOffsets(e.ids[:0], e.offsets[:0], text)
	switch {
	case errors.Is(err, tokenize.ErrUnsupported): // a SentencePiece model has no offsets: its pieces are shown
		err = nil
		e.ids = t.NewEncoder(tokenize.EncoderOptions{}).AppendTokens(e.ids[:0], text)
		for _, id := range e.ids {
			name, _ := t.Token(id)
			out = append(out, marked.Piece{Text: strings.ReplaceAll(name, "▁", " "), Tokens: 1})
		}
	case err != nil:
		return nil, nil, err
	default:
		out = e.cutAtOffsets(out, text)
	}
	ids = append(ids, e.ids...)
	if e.special {
		around(t.Suffix())
	}
	return out, ids, nil
}

func (e *explainer) cutAtOffsets(out []marked.Piece, text []byte) []marked.Piece {
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
			out = append(out, marked.Piece{Text: string(text[done:start])})
		}
		end = max(end, start)
		out = append(out, marked.Piece{Text: string(text[start:end]), Tokens: next - i})
		done, i = end, next
	}
	if done < len(text) {
		out = append(out, marked.Piece{Text: string(text[done:])})
	}
	return out
}

// write writes one text: its tokens, then how many there are and their ids.
func (e *explainer) write(out io.Writer, text []byte) error {
	pieces, ids, err := e.cut(text)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "%s\n  %s:", tokenLine(pieces, e.colours), plural(len(ids), "token")); err != nil {
		return err
	}
	for _, p := range pieces {
		if p.Tokens > 0 {
			if _, err = fmt.Fprintf(out, " %s", appendIDs(nil, ids[:p.Tokens], '+')); err != nil {
				return err
			}
			ids = ids[p.Tokens:]
		}
	}
	return nil
}

// tokenLine returns tokens on one line, with the borders between them.
func tokenLine(tokens []marked.Piece, colours bool) string {
	alike := slices.Clone(tokens) // no loss is told apart
	for i := range alike {
		alike[i].Loss = true
	}
	return strings.Join(marked.Screen{Colour: colours, Tokens: true}.Lines(alike), "")
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
