// Package tiktoken reads ranks, in a .tiktoken file or in memory, into a spec.Spec: byte-level BPE
// whose ids are its priorities.
package tiktoken

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// Ranks lists tokens by rank, which is also their id. A token is nil if its rank is not used.
type Ranks struct {
	Name    string
	Pattern string // a name or a regular expression; if empty, found by the number of ranks
	Tokens  [][]byte
	Special map[string]uint32 // if nil, those of a known vocabulary
}

// New returns the Spec of ranks. It keeps neither the tokens nor the map.
func New(r Ranks, mem *spec.Meter) (*spec.Spec, error) {
	n := 0
	text := 0
	for _, t := range r.Tokens {
		if t != nil {
			n++
		}
		text += len(t)
	}
	warning := r.complete(n)
	split, err := findPattern(r.Pattern, n)
	if err != nil {
		return nil, err
	}
	if len(r.Tokens) > spec.MaxID {
		return nil, spec.Formatf("rank %d", len(r.Tokens)-1)
	}
	sum := spec.Concurrently(func() string { return fingerprint(&r) })
	s, err := r.spec(split, text, mem)
	if fp := sum(); err == nil {
		s.Fingerprint = fp
		if warning != "" {
			s.Warnings = append(s.Warnings, warning)
		}
	}
	return s, err
}

// complete fills in missing fields from the known vocabulary with n ranks. It returns a warning if
// that is a guess.
func (r *Ranks) complete(n int) (warning string) {
	var v *known.Vocabulary
	if r.Pattern != "" {
		v = known.ByPattern(r.Pattern, n)
	} else if v = known.BySize(n); v != nil {
		r.Pattern = v.Pattern
		r.Name = cmp.Or(r.Name, v.Name)
		if v.Guess {
			warning = fmt.Sprintf("%d ranks: assumed to be %s, with pattern %s and its special tokens; "+
				"name a pattern if it is another vocabulary", n, v.Name, v.Pattern)
		}
	}
	if v != nil && r.Special == nil {
		r.Special = v.Special(len(r.Tokens))
	}
	return warning
}

// spec is New after the pattern is found, without the fingerprint.
func (r *Ranks) spec(split normalize.Pattern, textBytes int, mem *spec.Meter) (*spec.Spec, error) {
	if err := mem.Take(int64(len(r.Tokens))*spec.ListedTokenBytes+int64(textBytes), "the ranks"); err != nil {
		return nil, err
	}
	table := vocab.New(r.Tokens)
	if first, again, ok := table.Twice(); ok {
		return nil, spec.Formatf("token %q has ranks %d and %d", r.Tokens[first], first, again)
	}
	return r.describe(split, &spec.Ranks{Vocab: table})
}

// Prepared returns the Spec of ranks whose tables stand already. r.Tokens is not used, and
// r.Pattern is a name.
func Prepared(r Ranks, model *spec.Ranks, fingerprint string) (*spec.Spec, error) {
	split, err := findPattern(r.Pattern, model.Vocab.Len())
	if err != nil {
		return nil, err
	}
	s, err := r.describe(split, model)
	if err == nil {
		s.Fingerprint = fingerprint
	}
	return s, err
}

// describe returns the Spec of a model, without a fingerprint.
func (r *Ranks) describe(split normalize.Pattern, model *spec.Ranks) (*spec.Spec, error) {
	shown := r.Pattern
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "\u2026"
	}
	s := &spec.Spec{
		Name: r.Name, FileName: "tokenizer.tiktoken", Decoder: spec.JoinBytes{}, Around: spec.Around{CLS: -1, SEP: -1},
		Names:        spec.Names{PreTokenizer: shown, Model: "ranks", Decoder: "bytes"},
		PreTokenizer: []pretokenize.Component{pretokenize.Split{Pattern: split, Behavior: pretokenize.Isolated}},
		Model:        model,
	}
	for _, token := range slices.Sorted(maps.Keys(r.Special)) {
		id := r.Special[token]
		if id > spec.MaxID {
			return nil, spec.Formatf("special token %q has id %d", token, id)
		}
		s.Added = append(s.Added, spec.Added{Content: token, ID: id, Special: true, Decoded: token})
		s.Raw = append(s.Raw, added.Token{Content: []byte(token), ID: id})
	}
	return s, nil
}

// maxShown is the length of the longest regular expression shown as a name.
const maxShown = 40

// findPattern returns the pattern that text names, or text as a regular expression. n is the number
// of ranks, for errors.
func findPattern(text string, n int) (normalize.Pattern, error) {
	names := strings.Join(known.PatternNames(), ", ")
	if text == "" {
		return normalize.Pattern{}, fmt.Errorf("%w: %d ranks are none of the known vocabularies; "+
			"name the pattern that splits their text: %s, or a regular expression",
			spec.ErrPattern, n, names)
	}
	if expression, ok := known.Pattern(text); ok {
		return normalize.Uncompiled(expression), nil
	}
	if !known.IsExpression(text) {
		return normalize.Pattern{}, fmt.Errorf("%w %q is not known: want %s, or a regular expression",
			spec.ErrPattern, text, names)
	}
	p, err := spec.Compile(text)
	if err != nil {
		return p, fmt.Errorf("%w %.80q: %w", spec.ErrPattern, text, err)
	}
	return p, nil
}

func fingerprint(r *Ranks) string {
	h := spec.NewHasher("ranks")
	fmt.Fprintf(h, "%s\n", r.Pattern)
	for _, s := range slices.Sorted(maps.Keys(r.Special)) {
		fmt.Fprintf(h, "%q %d\n", s, r.Special[s])
	}
	var size [binary.MaxVarintLen64]byte
	for _, t := range r.Tokens {
		h.Write(size[:binary.PutUvarint(size[:], uint64(len(t)))])
		h.Write(t)
	}
	return h.String()
}

// Recognize reports whether a file begins with a base64 word, a space and a number.
func Recognize(data []byte) bool {
	line, _, _ := bytes.Cut(data[:min(len(data), 4096)], []byte("\n"))
	_, _, problem := parseRank(line)
	return problem == ""
}

// parseRank reads a line. problem says what is wrong with it.
func parseRank(line []byte) (token []byte, rank uint64, problem string) {
	word, number, ok := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
	if !ok {
		return nil, 0, "expected a token and its rank"
	}
	token, err := base64.StdEncoding.AppendDecode(nil, word)
	if err != nil || len(token) == 0 {
		return nil, 0, fmt.Sprintf("%.80q is not the base64 of a token", word)
	}
	rank, err = strconv.ParseUint(string(number), 10, 32)
	if err != nil || rank > spec.MaxID {
		return nil, 0, fmt.Sprintf("%.80q is not a rank", number)
	}
	return token, rank, ""
}

// Read reads a .tiktoken file: lines of a base64 token, a space and its rank. It uses only Pattern
// and Special of r. Errors wrap those of package spec, or are *jsonx.Error with a byte offset.
func Read(data []byte, r Ranks, mem *spec.Meter) (*spec.Spec, error) {
	if err := mem.Take(spec.RankLineBytes*int64(1+bytes.Count(data, []byte("\n"))), "the ranks"); err != nil {
		return nil, err
	}
	var list [][]byte
	var ranks []uint64
	top, offset := uint64(0), 0
	for line := range bytes.Lines(data) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		if len(text) > 0 {
			token, rank, problem := parseRank(text)
			if problem != "" {
				return nil, &jsonx.Error{Offset: offset, Msg: problem}
			}
			list, ranks = append(list, token), append(ranks, rank)
			top = max(top, rank)
		}
		offset += len(line)
	}
	if len(list) == 0 || top > uint64(4*len(list)+1<<16) {
		return nil, spec.Formatf("%d tokens with ranks up to %d", len(list), top)
	}
	if err := mem.Take(24*int64(top), "the ranks"); err != nil {
		return nil, err
	}
	tokens := make([][]byte, top+1)
	for i, t := range list {
		if tokens[ranks[i]] != nil {
			return nil, spec.Formatf("rank %d is given twice", ranks[i])
		}
		tokens[ranks[i]] = t
	}
	r.Tokens = tokens
	return New(r, mem)
}
