package source

import (
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/zipfile"
	"github.com/dsload/dsload/internal/remote"
)

// A rawFile reads an input: the file, and its text through the decompressor.
type rawFile struct {
	counted    decompress.Counted
	check      *rawCheck // nil where no server announced a hash
	text       io.Reader // what the decompressor gives
	out        io.Reader // the text in UTF-8
	background *decompress.ReadAhead
	stop       func() // ends the decompressor
	file       io.Closer
	size       int64
	inZip      func(*zipfile.Entry) bool // the members of a zip archive that are read
	concurrent bool                      // decompress on a goroutine
	aheadBytes int64                     // how far ahead
	label      string                    // the goroutine's
	frames     *decompress.Frames        // what is decompressed beside each other, nil for nothing
	lanes      int                       // how many of them
	binary     bool                      // the text is an archive, and never in UTF-16
	c          decompress.Compression
	remote     *remote.File  // the same file, where it is one
	copy       *scratch.File // what copied made
	dir        string        // where the copy goes
	window     int64         // what the decompressor may take, in bytes

	ahead    []byte // text that detection has read, and what ended its reading
	aheadErr error
}

// leaveCheck leaves the hash that a server announced unchecked.
func (r *rawFile) leaveCheck() { r.check, r.counted.Watch = nil, nil }

// unchanged reports whether the file is still the one that was opened.
func (r *rawFile) unchanged() error {
	if r == nil { // generated text
		return nil
	}
	if r.check != nil {
		return r.check.finish(&r.counted)
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
	if !r.binary && r.c != decompress.Plain {
		u := &decompress.UTF16Reader{Source: r.out}
		if r.frames != nil && u.Marked() {
			r.frames = nil
		}
		r.out = u
	}
	if r.concurrent && !(r.c == decompress.Zipped && r.binary) {
		r.background = r.readAhead()
		r.out = r.background
	}
	return nil
}

// readAhead begins to read on goroutines.
func (r *rawFile) readAhead() *decompress.ReadAhead {
	blocks := decompress.Blocks(r.aheadBytes)
	if r.frames != nil {
		r.stop()
		r.text = nil
		var sources []decompress.Source
		sources, r.stop = r.frames.Sources(r.lanes)
		return decompress.NewReadAhead(blocks, "", sources...)
	}
	if file, local := r.file.(*os.File); local && r.c == decompress.Plain {
		return decompress.NewReadAhead(1, r.label, decompress.Stripes(file, r.counted.N, r.size, r.counted.Check)...)
	}
	return decompress.NewReadAhead(blocks, r.label, decompress.Source{Reader: r.out, Consumed: func() int64 { return r.counted.N }})
}

// findFrames returns the parts of a compressed file that can be decompressed beside each other, nil where it is one.
func (r *rawFile) findFrames() *decompress.Frames {
	if file, local := r.file.(*os.File); local {
		return decompress.FindFrames(r.c, file, r.size, r.window, r.counted.Check)
	}
	return nil
}

// Keeps implements frame.Blocks once the file is read on a goroutine.
func (r *rawFile) Keeps(n int) bool { return r.background.Keeps(n) }

// Next implements frame.Blocks.
func (r *rawFile) Next(keep []byte) ([]byte, error) { return r.background.Next(keep) }

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

// Shared returns the file for several goroutines, without notes.
func (r *countedAt) Shared() io.ReaderAt { return r.at }

var _ columnar.Expecter = (*remote.File)(nil)

// Expect implements columnar.Expecter.
func (r *countedAt) Expect(spans []columnar.Span, inTurns bool) {
	if e, ok := r.at.(columnar.Expecter); ok {
		e.Expect(spans, inTurns)
	}
}

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

// halt ends reading ahead, before the file is read from another place.
func (r *rawFile) halt() {
	if r.background != nil {
		r.background.Stop()
	}
	r.background, r.out = nil, nil
}

func (r *rawFile) Close() {
	r.halt()
	r.stop()
	if r.file != nil {
		r.file.Close() // it was only read
	}
	_ = r.copy.Close() // nobody needs it any more
}

// trailing describes bytes after compressed data that were ignored, nil if there were none.
func (r *rawFile) trailing() *Trailing {
	if offset, n := decompress.Trailing(r.text); n > 0 {
		return &Trailing{Inputs: 1, Offset: offset, Bytes: n}
	}
	return nil
}

// needsCopy reports whether a remote file must be copied before it can be read at many places: each
// read is an answer of its own, and nothing shows that all are of one version, or how long it is.
func needsCopy(o *remote.Object) bool { return o.Size < 0 || !o.Identified() }

// copied returns a copy of a remote file in a temporary file that has no name, read from its
// beginning to its end, and its size.
func (r *rawFile) copied() (io.ReaderAt, int64, error) {
	if r.copy != nil {
		return r.copy, r.copy.Size(), nil
	}
	file, err := scratch.New(r.dir)
	if err != nil {
		return nil, 0, err
	}
	r.copy = file
	r.leaveCheck()
	buf := make([]byte, sniffBytes)
	for {
		n, err := r.remote.Read(buf)
		if _, failed := file.Write(buf[:n]); failed != nil {
			return nil, 0, &os.PathError{Op: "copy to a temporary file", Path: file.Name(), Err: failed}
		}
		if err == io.EOF {
			return file, file.Size(), nil
		}
		if err != nil {
			r.counted.Err = err
			return nil, 0, err
		}
	}
}

// A rawCheck compares the bytes of a file, as stored, with the hash that its server announced. What
// is read again after a jump back is not hashed twice, so it may be ahead of the position that its
// state is kept with.
type rawCheck struct {
	name string // what the hash is called
	want string // in hexadecimal
	hash hash.Hash
	at   int64 // bytes that were hashed
}

// add takes bytes in that begin at an offset.
func (c *rawCheck) add(p []byte, offset int64) {
	if skip := c.at - offset; skip > 0 {
		p = p[min(skip, int64(len(p))):]
	}
	c.hash.Write(p) // never fails
	c.at += int64(len(p))
}

// finish reads what follows the text, if anything does, and compares.
func (c *rawCheck) finish(r *decompress.Counted) error {
	buf := make([]byte, 4<<10)
	for r.Err == nil {
		r.Read(buf) // the error is kept
	}
	if err := r.Err; err != io.EOF {
		return err
	}
	if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
		return &remote.Error{Kind: remote.ErrMismatch,
			Text: fmt.Sprintf("its %s is %s, and its server announced %s: the download or the file on the server is damaged",
				c.name, got, c.want),
			Hint: "start the build afresh"}
	}
	return nil
}

// state returns what restore needs.
func (c *rawCheck) state() []byte {
	state, _ := c.hash.(encoding.BinaryMarshaler).MarshalBinary() // the standard library's hashes never fail
	return state
}

func (c *rawCheck) restore(state []byte, at int64) bool {
	c.at = at
	return c.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(state) == nil
}
