// Package regex matches the regular expressions found in tokenizer files, with Oniguruma's syntax
// and semantics, because that is the engine behind Hugging Face's tokenizers: leftmost,
// alternatives in order, look-around, possessive and atomic groups, nested character classes, and
// Oniguruma's own character properties and case folds (package charclass, extracted from Oniguruma
// itself).
//
// # Data flow
//
//	pattern -> parse -> node tree -> compile -> program -> machine (one per Search, pooled) ->
//	matches
//
// A program is run by backtracking with an explicit stack. When a run has taken many more steps
// than it has consumed bytes, the machine starts to memoize the outcomes of (instruction,
// position), so that time stays linear in the text: without captures and back-references, an
// outcome depends on nothing else. Where a loop with an upper bound ends depends on where it began,
// so attempts share the run of characters and the ends that failed (counted.go). There is one
// exception: \X scans a cluster again from each position inside it where an attempt begins.
//
// # Invariants
//
//	I1  A Regex is immutable and safe for concurrent use; matching allocates nothing in steady state.
//	I2  The machine's memory is bounded: the stack by the length of the text, memoized outcomes by
//	    maxMemo.
//	I3  An unsupported construct is an error of Compile that names it and its offset; it is never
//	    given another meaning.
//	I4  Memoization changes the time of a match, never its result.
//
// Text is UTF-8. A byte that is not part of a well-formed sequence counts as one U+FFFD.
package regex

import (
	"fmt"
	"sync"
)

// Regex is a compiled regular expression.
type Regex struct {
	pattern string
	prog    *program
	pool    sync.Pool
}

// SyntaxError says why a pattern was refused.
type SyntaxError struct {
	Pattern  string
	Offset   int    // in bytes
	Reason   string // what is wrong or not supported
	TooLarge bool   // the pattern exceeds a limit; it is well formed as far as it was read
}

// tooLarge is the reason for refusing a pattern whose parts exceed a limit.
const tooLarge = "compiled form is too large"

// shownPattern is how much of a pattern an error shows, in bytes.
const shownPattern = 80

func (e *SyntaxError) Error() string {
	if len(e.Pattern) > shownPattern {
		return fmt.Sprintf("regular expression %.80q… of %d bytes at byte %d: %s", e.Pattern, len(e.Pattern),
			e.Offset, e.Reason)
	}
	return fmt.Sprintf("regular expression %q at byte %d: %s", e.Pattern, e.Offset, e.Reason)
}

// Compile parses and compiles a pattern. Errors are *SyntaxError, which travel inside as panics.
func Compile(pattern string) (re *Regex, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			re, err = nil, e
		}
	}()
	prog := compile(pattern, parse(pattern))
	re = &Regex{pattern: pattern, prog: prog}
	re.pool.New = func() any { return &Search{re: re, m: *newMachine(prog)} }
	return re, nil
}

// Bytes estimates the memory of the compiled form.
func (re *Regex) Bytes() int64 {
	return int64(len(re.prog.insts))*instBytes + int64(re.prog.setBytes) + int64(len(re.pattern))
}

const (
	memoBytes  = 8 << 20  // outcomes, while their table grows
	stackBytes = 20 << 20 // a stack that grows with a text of 128 KiB, while it grows
)

// SearchBytes estimates the most memory that a Search takes besides the compiled form, for a text
// of up to 128 KiB. A loop over more than a set of characters pushes something on the stack in each
// iteration.
func (re *Regex) SearchBytes() int64 {
	for i, in := range re.prog.insts {
		if in.op == opProgress || in.op == opJump && int(in.x) <= i {
			return memoBytes + stackBytes
		}
	}
	return memoBytes
}

// String returns the pattern.
func (re *Regex) String() string { return re.pattern }

// Search finds matches in one text, for one goroutine. It keeps state between calls, so that
// finding all matches in order is linear in the text, however far the pattern looks ahead.
type Search struct {
	re *Regex
	m  machine
}

// Search starts a search in text, which must not change before Close.
func (re *Regex) Search(text []byte) *Search {
	s := re.pool.Get().(*Search)
	s.m.begin(text)
	return s
}

// FindAt returns the first match that begins at or after from, as byte offsets, or -1, -1. from
// must not decrease between calls.
func (s *Search) FindAt(from int) (start, end int) { return s.m.search(from) }

// Close ends the search; s must not be used again.
func (s *Search) Close() {
	s.m.finish()
	s.re.pool.Put(s)
}
