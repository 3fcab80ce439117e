package source

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/synth"
	"github.com/dsload/dsload/internal/remote"
)

// A Set is an ordered list of inputs. Close it.
type Set struct {
	opts  Options
	list  inputList
	lines []sourceLine
	store *remote.Store // nil if no input is remote
	known []Stat        // what identifies each of lines

	textBytes int64 // estimate of all that is known
	unknown   bool  // the size of one is not
	coded     bool  // one is compressed, or holds text in records
	total     int64 // bytes on disk, -1 if unknown
	needs     needs
	formats   map[Format]int
	schema    schema
	only      *Range // what a partition reads; nil for all
	chooses   bool   // Options.Include and Options.Exclude choose among files: of a folder, a pattern or an archive
	notes     []fault.Text
	pruned    skip.Sample             // the files that conditions leave out by their folders
	oneLine   skip.Sample             // those whose lines end in carriage returns alone
	misnamed  skip.Sample             // those that are text, and named like what is none
	below     map[string]*skip.Sample // those whose records were found below a path, by Input.Records
	counting  sync.Mutex              // guards the list for Count
	kept      keeper
}

// needs is what reading the inputs takes.
type needs struct {
	decompressor, window int64  // in bytes, the most of any
	why                  string // why the window is so large
	largest              int    // what the window of records grows to
	generated, once      bool
	remote               bool
	streams, columns     bool // whether they may be decompressed ahead
}

// maxNotes bounds the notes about a call with many arguments.
const maxNotes = 50

func (s *Set) note(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, fault.Textf(format, args...))
	}
}

// ChoosesFiles reports whether Options.Include and Options.Exclude may have an effect: not on files that are named.
func (s *Set) ChoosesFiles() bool { return s.chooses || s.only != nil }

// Close releases the scratch files of a long list of inputs, and idle connections. It is not needed after an error of
// Open.
func (s *Set) Close() error {
	err := s.list.rest.Close()
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

// noDocuments returns the error that no input holds a document. skipped counts the members of
// archives that were skipped.
func (s *Set) noDocuments(skipped *Members) error {
	what := "it is empty or blank"
	in, err := s.list.at(0)
	switch n := s.Len(); {
	case n == 1 && skipped != nil:
		what = "none of its files is read: skipped " + skipped.Text
	case n == 1 && err == nil && in.Format == CSV && s.opts.Columns == nil:
		what = "it is empty, blank or a header alone"
	case n == 2:
		what = "it and 1 other are empty or blank"
	case n > 1:
		what = fmt.Sprintf("it and %d others are empty or blank", n-1)
	}
	if skipped != nil && s.Len() > 1 {
		what += fmt.Sprintf(", or archives whose files are not read: skipped %d", skipped.Count)
	}
	return &cause.InputError{URI: s.URI(0), Offset: -1, Hint: what, Err: cause.NoDocuments}
}

// Len returns the number of inputs.
func (s *Set) Len() int { return s.list.len() }

// Input returns the i-th input in reading order. An error is of the scratch file of a long list.
func (s *Set) Input(i int) (Input, error) { return s.list.at(i) }

// URI returns the name of the i-th input.
func (s *Set) URI(i int) string {
	in, err := s.list.at(i)
	if err != nil {
		return fmt.Sprintf("input %d", i)
	}
	return in.URI
}

// LineURI returns the name of the line of Known that has the i-th input.
func (s *Set) LineURI(i int) string { return s.lines[s.lineOf(i)].URI }

// Notes are sentences about what Open did that a user should know: files skipped, sources given
// twice.
func (s *Set) Notes() []fault.Text { return s.notes }

// Known returns what identifies the sources without reading them: a Stat for each input, or of a
// large set one for each folder and glob. It is shared and must not be changed.
func (s *Set) Known() []Stat { return s.known }

// Formats returns how many inputs have each format. It is shared and must not be changed.
func (s *Set) Formats() map[Format]int { return s.formats }

// TotalBytes returns the bytes of all inputs on disk, -1 if that is not known.
func (s *Set) TotalBytes() int64 { return s.total }

// compressedRatio is roughly how much text a byte of a compressed input holds, as is typical for
// prose.
var compressedRatio = map[decompress.Compression]int64{decompress.Plain: 1, decompress.Gzip: 3, decompress.Zstd: 3,
	decompress.Bzip2: 4, decompress.XZ: 4, decompress.LZ4: 2, decompress.Snappy: 2, decompress.Zipped: 3,
	decompress.UTF16: 1}

// EstimateBytes returns how many bytes of text the inputs hold together, after decompression: exact
// for plain files, a guess for others. It depends on the inputs alone. known is false if one of
// them has no known end.
func (s *Set) EstimateBytes() (textBytes int64, known bool) { return s.textBytes, !s.unknown }

// TextBytes returns how many bytes the inputs hold together, those without an end left out. plain is true if these
// bytes are text: the inputs are text files, not compressed, or generated.
func (s *Set) TextBytes() (n int64, plain bool) { return s.textBytes, !s.coded }

// Fieldless returns the first input whose records have no fields to meet Options.Conditions by.
func (s *Set) Fieldless() (in Input, ok bool) {
	if len(s.schema.texts) == 0 {
		return in, false
	}
	return s.schema.texts[0], true
}

// Lacking returns the first of Options.Conditions whose field no record can have, by its number, and the
// fields of the first input; ok is false if there is none, or if that shows only when records are read.
func (s *Set) Lacking() (condition int, fields []string, ok bool) {
	if s.schema.unknown {
		return 0, nil, false
	}
	i := slices.Index(s.schema.has, false)
	return i, s.schema.first, i >= 0
}

// A sourceLine is a line of the list of sources: one input, or all the files of a folder or glob.
type sourceLine struct {
	Stat
	first, n int // its inputs
}

// NeedsOf returns the most that reading an input takes besides the window of its records.
func (s *Set) NeedsOf(in *Input) int64 { return in.readerBytes(&s.opts) }

// KeptBytes returns how much was kept under Options.KeepBytes.
func (s *Set) KeptBytes() int64 { return s.kept.bytes }

// Forget drops what was kept: it is read again. It must not be called beside a Reader.
func (s *Set) Forget() { s.kept.files, s.kept.bytes = nil, 0 }

// MemoryBytes returns an upper bound of what a set and one Reader of it hold besides KeptBytes: the list of inputs,
// window, decompressor, bookkeeping.
func (s *Set) MemoryBytes() int64 {
	n := &s.needs
	total := n.decompressor + 64<<10 + s.list.bytes()
	if n.once {
		total += 2 * sniffBytes // what was read ahead
	}
	if n.largest > 0 {
		// the small window lives on for a moment while the large one is made
		total += int64(n.largest) + 2*int64(s.opts.chunkBytes)
	}
	if n.generated {
		total += synth.TableBytes
	}
	if n.remote {
		total += remote.StoreBytes + remote.FileBytes
	}
	return total
}

// Spend lets the readers to come decompress what they read next beside each other, where that is of use.
func (s *Set) Spend(spare Spare) {
	if s.opts.spare = spare; s.needs.streams && s.needs.columns {
		s.opts.spare.Bytes /= 2 // either may be read while the other one is decompressed ahead
	}
}

// Decodes reports whether Spend is of use.
func (s *Set) Decodes() bool { return s.needs.streams || s.needs.columns }

// LargestWindow returns the largest window that the first zstd frame of an input asks for, in bytes, 0
// where none asks for more than Options.WindowBytes.
func (s *Set) LargestWindow() int64 { return s.needs.window }

// WhyWindow returns what in a file of columns takes more memory than usual, "" if nothing does.
func (s *Set) WhyWindow() string { return s.needs.why }

// remoteStore returns the store of the set's remote inputs.
func (s *Set) remoteStore() *remote.Store {
	if s.store == nil {
		s.store = remote.NewStore(remote.Options{Done: s.opts.Done, Notice: s.opts.Notice, Revision: s.opts.Revision})
		s.list.store = s.store
	}
	return s.store
}

// Listed returns the i-th input if it is one of those that are kept in memory. Unlike Input it may
// be called while a Reader reads.
func (s *Set) Listed(i int) (Input, bool) {
	if i < 0 || i >= len(s.list.few) {
		return Input{}, false
	}
	return s.list.few[i], true
}

// BytesBefore returns the size on disk of the inputs before the i-th. It reports false if one of
// them has no known size, or is not kept in memory. It may be called while a Reader reads.
func (s *Set) BytesBefore(i int) (n int64, known bool) {
	if i > len(s.list.few) {
		return 0, false
	}
	for k := range i {
		if s.list.few[k].Size < 0 {
			return 0, false
		}
		n += s.list.few[k].Size
	}
	return n, true
}

// lineOf returns the index of the line that holds an input; of the input after the last one, the
// number of lines.
func (s *Set) lineOf(input int) int {
	return sort.Search(len(s.lines), func(i int) bool { return s.lines[i].first+s.lines[i].n > input })
}
