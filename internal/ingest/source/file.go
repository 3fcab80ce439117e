package source

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/zipfile"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/units"
)

// A rawFile reads an input: the file, and its text through the decompressor.
type rawFile struct {
	counted    decompress.Counted
	check      *rawCheck // of a file whose server announced a hash
	text       io.Reader // of the decompressor
	out        io.Reader // the text in UTF-8
	background *decompress.ReadAhead
	stop       func() // ends the decompressor
	file       io.Closer
	size       int64
	inZip      func(*zipfile.Entry) bool // the members of a zip archive that are read
	concurrent bool                      // decompress on a goroutine
	binary     bool                      // the text is an archive, and never in UTF-16
	c          decompress.Compression
	remote     *remote.File  // the same file, where it is one
	copy       *scratch.File // of it, where it must be copied before it can be read at many places
	dir        string        // for the copy
	window     int64         // of the decompressor, in bytes

	ahead    []byte // text that detection has read, and what ended its reading
	aheadErr error
}

// once is an input that can be read once only: stdin, a pipe. What detection has read is kept:
// bytes in reader, text in raw.
type once struct {
	reader *bufio.Reader
	raw    *rawFile // made by detection where the input is compressed
	file   io.Closer
	taken  atomic.Bool
}

func newOnce(src io.Reader) *once {
	o := &once{reader: bufio.NewReaderSize(src, sniffBytes)}
	o.file, _ = src.(io.Closer)
	return o
}

// openRaw opens an input and makes sure that it is the one that Open saw.
func openRaw(in *Input, o *Options) (*rawFile, error) {
	r := &rawFile{c: in.Compression, window: in.windowOf(o), size: in.Size, binary: in.archive != "", stop: func() {},
		dir: o.ScratchDir}
	if in.Compression == decompress.Zipped {
		f, err := glob.NewFilter(o.Include, o.Exclude)
		if err != nil {
			return nil, err
		}
		r.inZip = membersOf(in, &f).inZip
	}
	if in.once != nil {
		if in.once.taken.Swap(true) {
			return nil, fault.Of(cause.Usage, "it can be read only once")
		}
		if in.once.raw != nil {
			return in.once.raw, nil
		}
		r.counted.Source = in.once.reader
		return r, nil
	}
	if in.Store != nil {
		openRemote(in, r)
		return r, nil
	}
	if in.kept != nil {
		return r, r.openKept(in, in.kept)
	}
	file, err := os.Open(in.Path)
	if err != nil {
		return nil, in.compareFile(nil, err)
	}
	// what is written after it meanwhile is not part of the input
	r.file, r.counted.Source = file, io.LimitReader(file, in.Size)
	r.counted.Check = func() error { return in.compareFile(file.Stat()) }
	if err := r.counted.Check(); err != nil {
		file.Close()
		return nil, err
	}
	return r, nil
}

// leaveCheck leaves the hash that a server announced unchecked.
func (r *rawFile) leaveCheck() { r.check, r.counted.Watch = nil, nil }

// unchanged reports whether the file is still the one that was opened.
func (r *rawFile) unchanged() error {
	if r.check != nil {
		return r.check.finish(r)
	}
	if r.counted.Check == nil {
		return nil
	}
	return r.counted.Check()
}

func (r *rawFile) Read(p []byte) (int, error) {
	if len(r.ahead) > 0 {
		n := copy(p, r.ahead)
		if r.ahead = r.ahead[n:]; len(r.ahead) == 0 {
			r.ahead = nil
		}
		return n, nil
	}
	if r.aheadErr != nil {
		return 0, r.aheadErr
	}
	if r.out == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	return r.out.Read(p)
}

// open makes the readers between the file and its text.
func (r *rawFile) open() (err error) {
	if r.text == nil && r.c == decompress.Zipped {
		r.text, err = r.openZip()
	} else if r.text == nil {
		r.text, r.stop, err = decompress.Open(r.c, &r.counted, r.window)
	}
	if err != nil {
		r.text = nil
		return decompress.Explain(r.c, err, &r.counted, r.window)
	}
	r.out = explained{r}
	if r.concurrent && r.c != decompress.Plain && r.c != decompress.UTF16 && !(r.c == decompress.Zipped && r.binary) {
		r.background = decompress.NewReadAhead(r.out, func() int64 { return r.counted.N })
		r.out = r.background
	}
	if !r.binary && r.c != decompress.Plain {
		r.out = &decompress.UTF16Reader{Source: r.out}
	}
	return nil
}

func (r *rawFile) openZip() (io.Reader, error) {
	at, size, err := r.random()
	if err != nil {
		return nil, err
	}
	z, err := zipfile.NewReader(at, size, &r.counted, r.inZip)
	if err != nil {
		return nil, err
	}
	r.stop = z.Close
	return z, nil
}

// random returns the file for reading at any place, and its size.
func (r *rawFile) random() (io.ReaderAt, int64, error) {
	if r.remote != nil {
		if o := r.remote.Object(); needsCopy(&o) {
			return r.copied()
		}
	}
	if at, ok := r.file.(io.ReaderAt); ok && r.size >= 0 {
		r.leaveCheck() // a hash is over bytes in their order, and reading them twice would cost too much
		return &countedAt{at, &r.counted}, r.size, nil
	}
	return nil, 0, fault.Of(cause.Unsupported,
		"this kind of file is read from its end, and a pipe has none yet; save it to a file and name that")
}

// countedAt notes the failure of a file that is read at any place, so that it is not taken for
// damage.
type countedAt struct {
	at    io.ReaderAt
	count *decompress.Counted
}

func (r *countedAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.at.ReadAt(p, off)
	if err != nil && err != io.EOF {
		r.count.Err = err
	}
	return n, err
}

var _ columnar.Expecter = (*remote.File)(nil)

// Expect implements columnar.Expecter.
func (r *countedAt) Expect(spans []columnar.Span, inTurns bool) {
	if e, ok := r.at.(columnar.Expecter); ok {
		e.Expect(spans, inTurns)
	}
}

// inBackground has a large file decompressed on a goroutine of its own. It must be called before
// the first read, and not for an archive whose members are opened one by one.
func (r *rawFile) inBackground() { r.concurrent = r.size < 0 || r.size >= decompress.AheadFrom }

// consumed returns how much of the file was read for the text that was handed out.
func (r *rawFile) consumed() int64 {
	if r.background != nil {
		return r.background.Consumed()
	}
	return r.counted.N
}

// explained reads the decompressor, with errors in our words.
type explained struct{ r *rawFile }

func (e explained) Read(p []byte) (int, error) {
	n, err := e.r.text.Read(p)
	if err != nil {
		err = cause.OfPath(decompress.Explain(e.r.c, err, &e.r.counted, e.r.window))
	}
	return n, err
}

func (r *rawFile) Close() {
	if r.background != nil {
		r.background.Stop()
	}
	r.stop()
	if r.file != nil {
		r.file.Close() // it was only read
	}
	_ = r.copy.Close() // nobody needs it any more
}

// compareFile returns how a file differs from what it was, by what the system says of it now.
func (in *Input) compareFile(info fs.FileInfo, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &cause.ChangedError{URI: in.URI, What: "existence", Was: "a file", Is: "gone"}
	case err != nil:
		return cause.OfPath(err)
	}
	return in.compare(Stat{URI: in.URI, Size: info.Size(), ModTime: info.ModTime()})
}

// compare returns how an input differs from what it was.
func (in *Input) compare(now Stat) error {
	changed := &cause.ChangedError{URI: in.URI}
	switch {
	case in.ETag != "" && now.ETag != "" && !remote.SameETag(in.ETag, now.ETag):
		changed.What, changed.Was, changed.Is = "ETag", in.ETag, now.ETag
	case in.Size != now.Size:
		changed.What, changed.Was, changed.Is = "size", units.Bytes(in.Size), units.Bytes(now.Size)
	case !in.ModTime.Equal(now.ModTime) && (in.ETag == "" || now.ETag == ""):
		changed.What, changed.Was, changed.Is = "modification time", in.ModTime.Format(time.RFC3339Nano),
			now.ModTime.Format(time.RFC3339Nano)
	default:
		return nil
	}
	return changed
}

// trailing describes bytes after compressed data that were ignored, nil if there were none.
func (r *rawFile) trailing() *Trailing {
	if offset, n := decompress.Trailing(r.text); n > 0 {
		return &Trailing{Inputs: 1, Offset: offset, Bytes: n}
	}
	return nil
}

// sniff returns the first bytes of an input as they are stored, in the first half of look, and
// finds out how it is compressed and what kind of file it is. sniffText continues from there.
func (in *Input) sniff(look []byte) (head []byte, err error) {
	if in.once != nil {
		head, err = in.once.reader.Peek(sniffBytes)
		if err != nil && err != io.EOF {
			return nil, err
		}
		return head, nil
	}
	if in.Store != nil {
		if head, in.Head = in.Head, nil; head != nil {
			return head, nil
		}
		n, err := in.Store.Head(context.Background(), in.Object(), look[:sniffBytes])
		return look[:n], err
	}
	file, err := os.Open(in.Path)
	if err != nil {
		return nil, cause.OfPath(err)
	}
	defer file.Close()
	n, err := io.ReadFull(file, look[:sniffBytes])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, cause.OfPath(err)
	}
	in.sniffed = int64(n)
	return look[:n], nil
}

// sniffText decompresses the first sniffBytes of text into the second half of look, however much of
// the file that takes; whole is set where it is all. An error of the data is ignored here:
// reading meets it again. Of an input that can be read once only, the text and the error are kept
// for it.
func (in *Input) sniffText(o *Options, look []byte) (text []byte, whole bool, err error) {
	raw, err := openRaw(in, o)
	if err != nil {
		return nil, false, err
	}
	text = look[sniffBytes:][:sniffBytes]
	if in.once != nil {
		in.once.taken.Store(false)
		in.once.raw, text = raw, make([]byte, sniffBytes)
	} else {
		defer raw.Close()
	}
	n := 0
	for n < len(text) && err == nil {
		var m int
		m, err = raw.Read(text[n:])
		n += m
	}
	if in.once != nil {
		raw.ahead, raw.aheadErr = text[:n], err
	}
	if failed := raw.counted.Err; failed != nil && failed != io.EOF {
		return nil, false, cause.OfPath(failed)
	}
	return text[:n], err == io.EOF, nil
}
