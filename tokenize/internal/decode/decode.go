// Package decode implements the decoders of Hugging Face tokenizers: steps that rewrite a list of
// tokens, which is joined in the end.
package decode

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// Step rewrites a list of tokens. It may reuse the list; it never changes the bytes of a token in
// place.
type Step func(tokens [][]byte) [][]byte

// Sequence applies steps one after the other.
type Sequence []Step

// Append appends the text of tokens to dst. Without a decoder (ok is false) it joins tokens with
// spaces.
func (s Sequence) Append(dst []byte, tokens [][]byte, ok bool) []byte {
	if !ok {
		return append(dst, bytes.Join(tokens, []byte(" "))...)
	}
	for _, step := range s {
		tokens = step(tokens)
	}
	for _, t := range tokens {
		dst = append(dst, t...)
	}
	return dst
}

// each returns the step that rewrites tokens one by one.
func each(f func(i, n int, token []byte) []byte) Step {
	return func(tokens [][]byte) [][]byte {
		for i, t := range tokens {
			tokens[i] = f(i, len(tokens), t)
		}
		return tokens
	}
}

// ByteLevel turns characters of the byte-level alphabet into the bytes they stand for; it keeps a
// token with any other character.
func ByteLevel(tokens [][]byte) [][]byte {
	var raw []byte
	for _, t := range tokens {
		b, ok := charclass.AppendBytes(raw, t)
		if !ok {
			b = append(b, t...)
		}
		raw = b
	}
	if !utf8.Valid(raw) {
		raw, _ = wellformed.Append(nil, raw)
	}
	return append(tokens[:0], raw)
}

// BPE replaces the suffix that ends a word with a space, and removes it from the last token.
func BPE(suffix string) Step {
	return each(func(i, n int, token []byte) []byte {
		by := " "
		if i == n-1 {
			by = ""
		}
		return replaceAll(token, suffix, by)
	})
}

// cleanups are the replacements of wordpiece's clean-up, in order.
var cleanups = [][2]string{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"},
	{" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func cleanup(b []byte) []byte {
	for _, c := range cleanups {
		b = replaceAll(b, c[0], c[1])
	}
	return b
}

// WordPiece joins tokens that begin with prefix to the one before and puts a space before others.
func WordPiece(prefix string, clean bool) Step {
	return each(func(i, _ int, token []byte) []byte {
		if i > 0 {
			if rest, ok := bytes.CutPrefix(token, []byte(prefix)); ok {
				token = rest
			} else {
				token = append([]byte(" "), token...)
			}
		}
		if clean {
			token = cleanup(token)
		}
		return token
	})
}

// Metaspace turns replacement into a space; it drops it from the first token unless the prepend
// scheme is never.
func Metaspace(replacement rune, never bool) Step {
	return each(func(i, _ int, token []byte) []byte {
		by := " "
		if i == 0 && !never {
			by = ""
		}
		return replaceAll(token, string(replacement), by)
	})
}

// Replace replaces every match of find in a token with content.
func Replace(find normalize.Pattern, content string) Step {
	return each(func(_, _ int, token []byte) []byte {
		var out []byte
		done := 0
		normalize.Matches(find, token, func(start, end int) {
			out = append(append(out, token[done:start]...), content...)
			done = end
		})
		return append(out, token[done:]...)
	})
}

// Strip removes up to start characters equal to content from the beginning of each token, and up to
// stop from its end.
func Strip(content rune, start, stop int) Step {
	c := []byte(string(content))
	return each(func(_, _ int, token []byte) []byte {
		whole := token
		for i := 0; i < start && bytes.HasPrefix(token, c); i++ {
			token = token[len(c):]
		}
		head := len(whole) - len(token)
		end := len(whole)
		for i := 0; i < stop && bytes.HasSuffix(whole[:end], c); i++ {
			end -= len(c)
		}
		if end < head { // the original panics here
			return nil
		}
		return whole[head:end]
	})
}

// Fuse joins all tokens into one.
func Fuse(tokens [][]byte) [][]byte { return [][]byte{bytes.Join(tokens, nil)} }

// ByteFallback turns each run of tokens such as <0x61> into the text of their bytes, or into one
// U+FFFD per token if they are not UTF-8.
func ByteFallback(tokens [][]byte) [][]byte {
	var out [][]byte
	var run []byte
	flush := func() {
		switch {
		case !utf8.Valid(run):
			out = append(out, slices.Repeat([][]byte{[]byte("\uFFFD")}, len(run))...)
		case len(run) > 0:
			out = append(out, run)
		}
		run = nil
	}
	for _, t := range tokens {
		if b, ok := byteToken(t); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, t)
	}
	flush()
	return out
}

func byteToken(t []byte) (byte, bool) {
	if len(t) != 6 || !bytes.HasPrefix(t, []byte("<0x")) || t[5] != '>' {
		return 0, false
	}
	digits := string(t[3:5])
	if digits[0] == '+' { // Rust's parser takes a sign
		digits = digits[1:]
	}
	b, err := strconv.ParseUint(digits, 16, 8)
	return byte(b), err == nil
}

// CTC drops repeated tokens and padding, and turns the word delimiter into a space.
func CTC(pad, delimiter string, clean bool) Step {
	return func(tokens [][]byte) [][]byte {
		var out [][]byte
		for i, t := range tokens {
			if i > 0 && bytes.Equal(t, tokens[i-1]) {
				continue
			}
			t = replaceAll(t, pad, "")
			if clean {
				t = replaceAll(cleanup(t), delimiter, " ")
			}
			if len(t) > 0 {
				out = append(out, t)
			}
		}
		return out
	}
}

// replaceAll is Rust's str::replace.
func replaceAll(b []byte, from, to string) []byte {
	return bytes.ReplaceAll(b, []byte(from), []byte(to))
}
