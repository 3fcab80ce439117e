package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
)

// An Input is one file, pipe or generator of a Set.
type Input struct {
	listing.File
	Format      Format // never Auto
	Compression decompress.Compression
	Records     string   // keys below which the records of JSON lie, with dots between them; "" for the top
	Lists       []string // keys of arrays of objects in JSON that may be one object, some at most

	archive Format // Tar or Zip where the input's files are its records' inputs, else ""
	once    *once
	sniffed int64  // bytes that detection has seen of a file
	kept    []byte // all of it, while it is opened
	// window is what its decompressor takes, in bytes, where it asks for more than Options.WindowBytes, or what
	// reading a file of columns takes; why says what takes so much of it.
	window    int64
	why       string
	textBytes int64    // estimate of what it holds after decompression, -1 if unknown
	columns   []string // with Options.Conditions, until the set has seen it; nil where they are not known
}

// OffsetsAreBytes reports whether the offsets of its records are those of the bytes in the file.
func (in *Input) OffsetsAreBytes() bool {
	return in.Compression == decompress.Plain && !in.Format.isColumnar()
}

// framed returns the format that the size of the window depends on.
func (in *Input) framed() Format {
	if in.archive != "" {
		return in.archive
	}
	return in.Format
}

// A Set is an ordered list of inputs. Close it.
type Set struct {
	opts   Options
	filter glob.Filter
	list   inputList
	lines  []sourceLine
	store  *remote.Store // of remote inputs; nil if there are none
	known  []Stat        // of the lines

	textBytes int64 // estimate of all that is known
	unknown   bool  // the size of one is not
	coded     bool  // one is compressed, or holds text in records
	total     int64 // bytes on disk, -1 if unknown
	needs     needs
	formats   map[Format]int
	schema    schema
	only      *Range // of a partition; nil for all
	notes     []fault.Text
	pruned    pruned
	below     map[string]*foundBelow // by Input.Records, where that was found
	counting  sync.Mutex             // guards the list for Count
	kept      keeper
}

// needs is what reading the inputs takes.
type needs struct {
	decompressor, window int64  // in bytes, the most of any
	why                  string // why the window is so large
	largest              int    // what the window of records grows to
	generated, once      bool
	remote               bool
}

// Open expands the arguments and looks at every input: does it exist, how large is it, how is it
// compressed, what is its format. Folders give their files in the order of their names. Of folders
// and globs, files that hold no text or that describe data rather than hold it are skipped, and
// Notes describes them.
//
// Errors: ErrNothingNew; *cause.InputError with fs.ErrNotExist, cause.Binary, cause.Unsupported, …; cause.Usage;
// cause.NoDocuments where everything is empty.
func Open(ctx context.Context, o Options) (_ *Set, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Set{opts: o, formats: map[Format]int{}, list: inputList{dir: o.ScratchDir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.filter, err = glob.NewFilter(o.Include, o.Exclude); err != nil {
		return nil, err
	}
	if o.Only != nil {
		return s, s.openRange(o.Only)
	}
	a := adder{set: s, look: make([]byte, 2*sniffBytes)}
	lister := s.lister(a.add)
	for i, arg := range o.Args { // all are looked at before the first is read
		if err := lister.Check(arg, o.Args[:i]); err != nil {
			return nil, err
		}
	}
	spans := make([]inputSpan, 0, len(o.Args))
	for _, arg := range o.Args {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first := s.list.len()
		a.looked = map[string]*looked{}
		many, err := lister.List(ctx, arg)
		if err != nil {
			if column := (*ColumnError)(nil); errors.As(err, &column) {
				column.Later = s.list.len() > 0
			}
			return nil, err
		}
		spans = append(spans, inputSpan{uri: uris.OfFile(uris.Redact(arg)), first: first, n: s.list.len() - first,
			many: many})
	}
	if s.list.len() == 0 && o.Has != nil {
		return nil, ErrNothingNew
	}
	if err := s.notePruned(); err != nil {
		return nil, err
	}
	s.noteFound()
	if err := s.makeLines(spans); err != nil {
		return nil, err
	}
	lister.NoteAnswers()
	lister.GivenTwice(o.Args)
	if !a.hasText {
		return nil, s.noDocuments(nil)
	}
	return s, nil
}

// lister returns what lists the set's arguments, and gives what it finds to add.
func (s *Set) lister(add func(*listing.File) (listing.Added, error)) *listing.Lister {
	o := &s.opts
	l := listing.Options{Filter: &s.filter, Stdin: o.Stdin, ScratchDir: o.ScratchDir, OutDir: o.OutDir,
		Built: o.Built, Marks: o.Marks, Store: s.remoteStore, HeadBytes: sniffBytes, Add: add, Note: s.note}
	if o.Format != Auto {
		l.Format = string(o.Format)
	}
	return listing.New(l)
}

// maxNotes bounds the notes about a call with many arguments.
const maxNotes = 50

func (s *Set) note(format string, args ...any) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, fault.Textf(format, args...))
	}
}

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

// A LineRead is what a reader has made of a line of Known up to a position.
type LineRead struct {
	Stat
	Inputs int   // of the whole set, up to and with its last
	Read   int64 // bytes after decompression
	// "xxh3-128:hex" of an input's text, "sha256:hex" of a list; "" for generated text and for a
	// list that was not read to its end
	Checksum string
}

// LinesRead returns how much of each line of Known was read up to a position. The checksum of an
// input is the XXH3-128 of what was read, as xxhsum prints it; that of a list of files is the
// SHA-256 of the lines that "xxhsum -H2" prints for them: the sum of a file's text, two spaces, its
// name.
func (s *Set) LinesRead(p Position) []LineRead {
	out := make([]LineRead, len(s.lines))
	reading := s.lineOf(p.Input)
	for i := range s.lines {
		line := &s.lines[i]
		out[i] = LineRead{Stat: line.Stat, Inputs: line.first + line.n}
		switch {
		case i < len(p.Done):
			done := &p.Done[i]
			out[i].Read = done.Bytes
			if line.Files > 0 {
				out[i].Checksum = "sha256:" + done.List
			} else {
				out[i].Checksum = done.Sum.Tagged()
			}
		case i == reading:
			if out[i].Read = p.Offset; line.Files == 0 {
				out[i].Checksum = p.Sum.Tagged()
			} else if p.List != nil {
				out[i].Read += p.List.Bytes
			}
		}
		if out[i].Read == 0 || strings.HasPrefix(line.URI, "synth://") {
			out[i].Checksum = ""
		}
	}
	return out
}

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

// compare reports how the list of inputs differs from that of an earlier run.
func (s *Set) compare(at *Position) error {
	for i := range max(len(at.Known), len(s.known)) {
		switch {
		case i >= len(s.known):
			return &cause.ChangedError{URI: at.Known[i].URI, What: "place in the list of inputs",
				Was: fmt.Sprint("number ", i+1), Is: "missing"}
		case i >= len(at.Known):
			return &cause.ChangedError{URI: s.known[i].URI, What: "place in the list of inputs", Was: "missing",
				Is: fmt.Sprint("number ", i+1)}
		case at.Known[i].URI != s.known[i].URI:
			return &cause.ChangedError{URI: at.Known[i].URI,
				What: fmt.Sprintf("place as number %d in the list of inputs", i+1), Was: at.Known[i].URI,
				Is: s.known[i].URI}
		}
		was, is := at.Known[i], s.known[i]
		switch {
		case was.Files != is.Files:
			return &cause.ChangedError{URI: is.URI, What: "number of files", Was: fmt.Sprint(was.Files),
				Is: fmt.Sprint(is.Files)}
		case was.Names != is.Names:
			return &cause.ChangedError{URI: is.URI, What: "list of files"}
		}
	}
	return nil
}

// compareList compares the files of lists that an earlier run had read to their end.
func (s *Set) compareList(at *Position) error {
	for i := range s.lines {
		p := &s.lines[i]
		var seen checksum.Sum
		read := p.n
		switch {
		case p.Files == 0:
			continue
		case i < len(at.Done):
			seen = at.Done[i].Seen
		case at.List != nil && i == len(at.Done):
			seen, read = at.List.Seen, at.Input-p.first
		default:
			continue
		}
		var is checksum.Sum
		var newest Input
		for j := range read {
			in, err := s.list.at(p.first + j)
			if err != nil {
				return err
			}
			if is = chainStat(is, &in); in.ModTime.After(newest.ModTime) {
				newest = in
			}
		}
		if is != seen {
			return &cause.ChangedError{URI: p.URI,
				What: fmt.Sprintf("content: size or time of one of its first %d files", read),
				Was:  seen.String(), Is: fmt.Sprintf("%s, the newest of them being %s of %s", is, newest.URI,
					newest.ModTime.Format(time.RFC3339))}
		}
	}
	return nil
}
