// Package filter decides which documents stay in a dataset.
//
// A Filter judges documents one by one: their fields (Where), their text (Match, NoMatch), their
// length, and a sample by content hash. It is pure: it always judges the same document alike. A
// Seen remembers the documents that stayed and recognizes exact or near copies of them. It depends
// on order, and so belongs to the stage that sees documents in the order of the sources.
//
//	record -> Filter.Fields -> text -> Filter.Text, Sketcher -> Seen -> dataset
//
// Invariants:
//
//	I1  The decisions of a Filter and a Seen depend only on their options and the documents, never
//	    on memory, workers or interruptions.
//	I2  Memory is fixed: a Seen keeps its hashes in a file and a fixed number of its entries in
//	    memory, so it works for any number of documents.
//	I3  After Restore, a Seen holds exactly what it held at the Mark.
package filter

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/zeebo/xxh3"
)

// A Reason is why a document was dropped: the name of the option.
type Reason string

// The reasons, in the order in which they are checked. A document counts only for the first.
const (
	Kept     Reason = ""
	ByMap    Reason = "map" // answered with null, and judged by no filter
	ByWhere  Reason = "where"
	TooShort Reason = "min-chars"
	TooLong  Reason = "max-chars"
	NoMatch  Reason = "match"
	Matched  Reason = "no-match"
	Unpicked Reason = "sample"
	Copied   Reason = "dedup"     // a copy of an earlier document
	ValCopy  Reason = "dedup-val" // a document of the val sources, a copy of an earlier one in any split
)

// Reasons lists all reasons, in the order of reports.
var Reasons = []Reason{ByMap, ByWhere, TooShort, TooLong, NoMatch, Matched, Unpicked, Copied, ValCopy}

// Options are the conditions that a document must meet. The zero Options keeps all.
type Options struct {
	// Where are conditions on fields: FIELD, one of =, !=, >=, <=, > and <, and VALUE. A document stays
	// if, for every FIELD named, its value equals one of the VALUEs given with =, and meets all other
	// conditions. Numbers are compared as numbers, else texts. A record without the FIELD meets none.
	Where []string `json:"where,omitempty"`
	// Match lists regular expressions (RE2 syntax) of which all must match the text.
	Match []string `json:"match,omitempty"`
	// NoMatch lists regular expressions of which none may match the text.
	NoMatch []string `json:"no-match,omitempty"`
	// MinChars is the least length of a document in characters (code points); 0 sets none.
	MinChars int64 `json:"min-chars,omitempty"`
	// MaxChars is the greatest length of a document in characters (code points); 0 sets none.
	MaxChars int64 `json:"max-chars,omitempty"`
	// Sample is the share of all texts that stays, chosen by their content.
	Sample float64 `json:"sample,omitempty"`
}

// Active reports whether any condition is set.
func (o *Options) Active() bool {
	return len(o.Where)+len(o.Match)+len(o.NoMatch) > 0 || o.MinChars > 0 || o.MaxChars > 0 ||
		o.Sample > 0 && o.Sample < 1
}

// A Filter judges documents. It is immutable and safe for concurrent use.
type Filter struct {
	opts           Options
	where          []condition
	fields         []example.FieldPath // the fields of where
	match, noMatch []*regexp.Regexp
	below          uint64 // documents with a sample hash up to this stay
	instructions   int64  // the total of all expressions
}

// NewFilter parses the conditions. An error is one of fault.BadOption.
func NewFilter(o Options) (*Filter, error) {
	f := &Filter{opts: o, below: math.MaxUint64}
	bad := func(option fault.Option, value any, format string, args ...any) (*Filter, error) {
		return nil, fault.BadOption(option, value, format, args...)
	}
	var err error
	if f.where, err = parseWhere(o.Where); err != nil {
		return nil, err
	}
	for _, c := range f.where {
		f.fields = append(f.fields, c.path)
	}
	for _, list := range []struct {
		option fault.Option
		source []string
		to     *[]*regexp.Regexp
	}{{"match", o.Match, &f.match}, {"no-match", o.NoMatch, &f.noMatch}} {
		for _, expr := range list.source {
			re, n, err := compile(expr)
			if err != nil {
				return bad(list.option, fmt.Sprintf("%q", expr),
					"%v; write a regular expression in the syntax of RE2", err)
			}
			*list.to, f.instructions = append(*list.to, re), f.instructions+n
		}
	}
	if o.MaxChars > 0 && o.MinChars > o.MaxChars {
		return bad("min-chars", o.MinChars, "is more than {max-chars} %d: no document has such a length", o.MaxChars)
	}
	if o.Sample > 0 && o.Sample < 1 {
		f.below = uint64(o.Sample * (1 << 63) * 2)
	}
	return f, nil
}

// compile parses an expression and counts its instructions.
func compile(expr string) (*regexp.Regexp, int64, error) {
	if expr == "" {
		return nil, 0, fmt.Errorf("the expression is empty")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, 0, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, err
	}
	return re, int64(len(prog.Inst)), nil
}

// instructionBytes bounds the memory of an expression's instruction, compiled and in the state of
// one match, doubled for garbage from compiling.
const instructionBytes = 400

// MemoryBytes bounds the memory of the filter while n goroutines use it.
func (f *Filter) MemoryBytes(n int) int64 {
	bytes := f.instructions * instructionBytes * int64(1+n)
	for _, text := range f.opts.Where {
		bytes += 8 * int64(len(text))
	}
	return bytes
}

// sampleSeed makes the choice of a sample independent of other uses of a text's hash.
const sampleSeed = 0x5a4d_504c_4531_0001

// Text judges a document by its text. A pair of prompt and target counts as one text in two parts:
// a match may be in either, and their lengths are added.
func (f *Filter) Text(prompt, target []byte) Reason {
	o := &f.opts
	if o.MinChars > 0 || o.MaxChars > 0 {
		n := int64(utf8.RuneCount(prompt) + utf8.RuneCount(target))
		if n < o.MinChars {
			return TooShort
		}
		if o.MaxChars > 0 && n > o.MaxChars {
			return TooLong
		}
	}
	found := func(re *regexp.Regexp) bool { return re.Match(prompt) || len(target) > 0 && re.Match(target) }
	for _, re := range f.match {
		if !found(re) {
			return NoMatch
		}
	}
	for _, re := range f.noMatch {
		if found(re) {
			return Matched
		}
	}
	if f.below != math.MaxUint64 && sampleHash(prompt, target) >= f.below {
		return Unpicked
	}
	return Kept
}

// sampleHash is uniform over texts. A smaller sample is part of a larger one.
func sampleHash(prompt, target []byte) uint64 {
	h := xxh3.HashSeed(prompt, sampleSeed)
	if len(target) > 0 {
		h = xxh3.HashSeed(target, h)
	}
	return h
}
