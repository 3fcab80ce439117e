// Package frame finds the records in the text of an input: lines, articles, files, JSON values, CSV
// records.
//
//	text -> Window -> Framer -> Record
//
// A Window holds the part of the text that is in memory and a checksum over what was consumed of it. A
// Framer looks at the window, appends a record, or a piece of a long one, to a buffer of its caller, and
// consumes its bytes. Where it stands is a few numbers: the window's offset, a Place and a State.
//
// Concurrency: a Window and its Framer belong to one goroutine at a time.
//
// Invariants:
//
//	I1  Records and pieces depend on the text and on Options alone, never on how many bytes a read
//	    returns or on the size of the window.
//	I2  A Framer that is restored at an offset, Place and State yields what the first one yields after
//	    them.
//	I3  A window grows to the largest size that it was given, and holds no more.
package frame

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/units"
)

// Options are what framers are told. "Output" marks the fields that may change the records, the defaults are those of
// package source: all sizes must be set here.
type Options struct {
	// PieceBytes is the longest record of a cuttable format that comes whole, and the usual length
	// of a piece. Output. Default 256 KiB, at least 16.
	PieceBytes int
	// MaxPieceBytes is the longest piece where Cut finds no earlier cut; there the text is cut at
	// a character. Output. Default 4 x PieceBytes.
	MaxPieceBytes int
	// MaxRecordBytes is the longest record of a format that cannot be cut, and the longest CSV
	// header. Output. Default 4 MiB.
	MaxRecordBytes int
	// Cut returns the length of the largest prefix of text whose processing does not depend on what
	// follows, 0 if there is none. Output. Default: any character.
	Cut func(text []byte) int
	// Whole asks for whole records in every format, as a template needs them: what is longer than
	// MaxRecordBytes is an error. Output.
	Whole bool
	// TextField is the JSON field whose string is streamed where a JSON line is longer than
	// MaxPieceBytes. Output. Default "": such lines come whole.
	TextField string
	// Fields are the names of the fields that anything wants of a record: those of columnar formats
	// that are read at all, and the column by which CSV is recognised. Output. Default: TextField,
	// all where there is none.
	Fields []string
	// AnyOf are those of Fields of which a record needs only one. Output. Default: it needs all.
	AnyOf []string
	// Records is where the records of JSON files lie: the keys that lead to an array of them, with dots
	// between, or TopRecords. Output. Default: at the top, or below the one key that is found, which Found is
	// set for.
	Records string
	Found   bool
	// Columns are the names of the columns of CSV without a header. Output. Default: the first line
	// of every CSV input is its header.
	Columns []string
	// Delimiter separates the fields of CSV, an ASCII character. Output. Default 0: the comma,
	// semicolon, tab or bar that the first line has most of.
	Delimiter byte
}

// A Record is what a framer finds out about a record, or about a piece of one. Its bytes were appended to
// the buffer given to Next.
type Record struct {
	// Offset is that of its first byte in the input, after decompression.
	Offset int64
	// First and Last are set on the first and last piece of a document.
	First, Last bool
	// Decoded is set where the bytes are the text already: of a format without fields, or of the field
	// Options.TextField.
	Decoded bool
	// Typed is set on a JSON object made of a row of columns: its numbers have their types, decimals among them.
	Typed bool
	// Forced is set on a piece that was cut where Options.Cut had found no safe cut.
	Forced bool
	// Columns are the names of the columns of CSV, and Comma separates its fields. Columns is shared.
	Columns []string
	Comma   byte
	// Unread are the names of the fields that were passed over, nil for none: columns that are not wanted, and
	// what is before or after a text that is streamed. Shared.
	Unread *[]string
	// Err says what is wrong with a bad record; its bytes are then missing, or end early where pieces went
	// before. Framing continues after it.
	Err error
}

// A Framer finds the records of one input. Any error but io.EOF ends the input.
type Framer interface {
	// Next appends the bytes of the next record to dst and describes it in rec, which is zero before. It
	// returns io.EOF after the last record.
	Next(dst []byte, rec *Record) ([]byte, error)
	// At returns the framer's place, which its owner may set.
	At() *Place
	// State returns what a position needs besides the place, for Restore.
	State() uint32
	Restore(state uint32)
}

// A Runner is a Framer that also finds records many at a time.
type Runner interface {
	// Run appends the bytes of records that lie in the window as a whole, until dst has full bytes, and the lengths
	// of dst at the end of each, up to the capacity of ends. Between two of them is a line end. A row before one of
	// them that is no record has the complement of its length. rec becomes that of the first row. Other records need
	// Next.
	Run(dst []byte, full int, ends []int32, rec *Record) ([]byte, []int32)
}

// A Place is the part of a position that every framer has.
type Place struct {
	Row    int64 // rows that are complete
	Inside bool  // the next record is a further piece of a document
}

// At returns the place itself, for the framers that embed it.
func (p *Place) At() *Place { return p }

// Stateless is what a framer embeds that needs no more than its place.
type Stateless struct{}

// State returns 0.
func (Stateless) State() uint32 { return 0 }

// Restore does nothing.
func (Stateless) Restore(uint32) {}

// framing is what every framer of this package has.
type framing struct {
	Place
	w *Window
	o *Options
}

// line finds the end of the line that goes on at an offset in the window, looking no further than the limit.
// n is where its "\n" is; found reports whether there is one, ended whether the input ends after the n bytes.
func (f *framing) line(scanned, limit int) (n int, found, ended bool, err error) {
	for {
		data := f.w.Unread()
		data = data[:min(len(data), limit)]
		if i := bytes.IndexByte(data[scanned:], '\n'); i >= 0 {
			return scanned + i, true, false, nil
		}
		scanned = len(data)
		if scanned == limit {
			return scanned, false, false, nil
		}
		if !f.w.fill() {
			return scanned, false, true, f.w.Failed()
		}
	}
}

// run is Runner.Run for lines of at most limit bytes, which keep their "\r" or not.
func (f *framing) run(dst []byte, full int, ends []int32, limit int, keep bool) ([]byte, []int32) {
	data, base, records := f.w.Unread(), len(dst), len(ends)
	begin := max(0, min(len(data), full-base)) // the last place for a line's beginning
	ends = LineEnds(ends, data[:begin])
	if begin > 0 && data[begin-1] != '\n' && len(ends) < cap(ends) {
		if i := bytes.IndexByte(data[begin:], '\n'); i >= 0 {
			ends = append(ends, int32(begin+i))
		}
	}
	n := 0 // up to the last record
	for k, start := records, 0; k < len(ends); k++ {
		end := int(ends[k])
		line, next := data[start:end], end+1
		if len(line) > limit {
			break
		}
		if start = next; !keep && len(line) > 0 && line[len(line)-1] == '\r' {
			end--
		}
		if ends[k] = int32(base + end); IsBlank(line) {
			ends[k] = ^ends[k]
		} else {
			records, n = k+1, next
		}
	}
	f.w.Consume(n)
	return append(dst, data[:n]...), ends[:records]
}

// LineEnds appends to ends where each "\n" of a text is, as far as ends has room.
func LineEnds(ends []int32, text []byte) []int32 {
	ends, at := endsWide(ends, text)
	for len(ends) < cap(ends) {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		ends = append(ends, int32(at+i))
		at += i + 1
	}
	return ends
}

// skipLine consumes everything up to and including the next "\n".
func (f *framing) skipLine() error {
	for {
		data := f.w.Unread()
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			f.w.Consume(i + 1)
			return nil
		}
		f.w.Consume(len(data))
		if !f.w.fill() {
			return f.w.Failed()
		}
	}
}

// CutPiece returns the length of the piece that a long document begins with. text is its beginning, for
// which n bytes were looked at: 0 asks for more, up to MaxPieceBytes. forced reports that no cut there is safe.
func (o *Options) CutPiece(text []byte, n int) (length int, forced bool) {
	if c := characterAligned(o.Cut, text); c > 0 || n < o.MaxPieceBytes {
		return c, false
	}
	if c := CharacterCut(text); c > 0 {
		return c, true
	}
	return len(text), true
}

// characterAligned cuts text where cut says, but never within a character: ill-formed text may hide
// one from a tokenizer.
func characterAligned(cut func([]byte) int, text []byte) int {
	for {
		c := cut(text)
		if c <= 0 {
			return 0
		}
		c = min(c, len(text))
		whole := CharacterCut(text[:c])
		if whole == c {
			return c
		}
		text = text[:whole]
	}
}

// CharacterCut returns the length of text without an unfinished character at its end.
func CharacterCut(text []byte) int { return len(text) - Unfinished(text) }

// Unfinished returns the number of bytes at the end of text that may be the beginning of a character.
func Unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// TooLarge is the error of a record that is longer than the limit.
func TooLarge(limit int) error {
	return fault.Of(cause.TooLarge, "record is longer than the %s that a record of this kind may have",
		units.Size(limit))
}

// IsBlank reports whether text is white space only, as Python's str.isspace sees it, or empty.
func IsBlank(text []byte) bool {
	return (len(text) == 0 || text[0] <= ' ' || text[0] >= utf8.RuneSelf) && isSpace(text)
}

func isSpace(text []byte) bool {
	for len(text) > 0 {
		c := text[0]
		if c < utf8.RuneSelf {
			if c > ' ' || !IsASCIISpace(c) {
				return false
			}
			text = text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if !unicode.IsSpace(r) {
			return false
		}
		text = text[size:]
	}
	return true
}

func IsASCIISpace(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' || 0x1c <= c && c <= 0x1f
}
