package source

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/loader/build/source/remote"
)

// A rawFile reads an input: the file, and its text through the decompressor.
type rawFile struct {
	counted countingReader
	text    io.Reader
	stop    func() // ends the decompressor
	file    io.Closer
	c       Compression
	remote  *remote.File // the same file, where it is one
	window  int64        // of the decompressor, in bytes

	ahead    []byte // text that detection has read, and what ended its reading
	aheadErr error
}

// countingReader counts what is read of a file and remembers the error that ended it.
type countingReader struct {
	src   io.Reader
	n     int64
	err   error
	check func() error // called at the end: is the file still the one that was opened?
}

func (r *countingReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.src.Read(p)
	r.n += int64(n)
	if err == io.EOF && r.check != nil {
		if changed := r.check(); changed != nil {
			err = changed
		}
	}
	r.err = err
	return n, err
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
	r := &rawFile{c: in.Compression, window: in.windowOf(o), stop: func() {}}
	if in.once != nil {
		if in.once.taken.Swap(true) {
			return nil, problemf(ErrUsage, "it can be read only once")
		}
		if in.once.raw != nil {
			return in.once.raw, nil
		}
		r.counted.src = in.once.reader
		return r, nil
	}
	if in.store != nil {
		openRemote(in, r)
		return r, nil
	}
	file, err := os.Open(in.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &SourceChangedError{URI: in.URI, What: "existence", Was: "a file", Is: "gone"}
	}
	if err != nil {
		return nil, pathCause(err)
	}
	// what is written after it meanwhile is not part of the input
	r.file, r.counted.src = file, io.LimitReader(file, in.Size)
	r.counted.check = func() error {
		info, err := file.Stat()
		if err != nil {
			return pathCause(err)
		}
		return in.compare(Stat{URI: in.URI, Size: info.Size(), ModTime: info.ModTime()})
	}
	if err := r.counted.check(); err != nil {
		file.Close()
		return nil, err
	}
	return r, nil
}

// unchanged reports whether the file is still the one that was opened.
func (r *rawFile) unchanged() error {
	if r.counted.check == nil {
		return nil
	}
	return r.counted.check()
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
	if r.text == nil {
		text, stop, err := decompress(r.c, &r.counted, r.window)
		if err != nil {
			return 0, explain(r.c, err, &r.counted, r.window)
		}
		r.text, r.stop = text, stop
	}
	n, err := r.text.Read(p)
	if err != nil {
		err = pathCause(explain(r.c, err, &r.counted, r.window))
	}
	return n, err
}

func (r *rawFile) Close() {
	r.stop()
	if r.file != nil {
		r.file.Close() // it was only read
	}
}

// pathCause takes the path off an error that is going to be reported with the input's name.
func pathCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// compare returns how an input differs from what it was.
func (in *Input) compare(now Stat) error {
	changed := &SourceChangedError{URI: in.URI}
	switch {
	case in.ETag != "" && now.ETag != "" && !remote.SameETag(in.ETag, now.ETag):
		changed.What, changed.Was, changed.Is = "ETag", in.ETag, now.ETag
	case in.Size != now.Size:
		changed.What, changed.Was, changed.Is = "size", sizeText(in.Size), sizeText(now.Size)
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
	if z, ok := r.text.(*bzip2Reader); ok && z.trailing.Inputs > 0 {
		return &z.trailing
	}
	return nil
}

// sniff returns the first bytes of an input as they are stored, in the first half of look, and
// finds out how it is compressed and what kind of file it is. sniffText goes on from there.
func (in *Input) sniff(look []byte) (head []byte, err error) {
	if in.once != nil {
		head, err = in.once.reader.Peek(sniffBytes)
		if err != nil && err != io.EOF {
			return nil, err
		}
		return head, nil
	}
	if in.store != nil {
		head, in.head = in.head, nil
		return head, nil
	}
	file, err := os.Open(in.path)
	if err != nil {
		return nil, pathCause(err)
	}
	defer file.Close()
	n, err := io.ReadFull(file, look[:sniffBytes])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, pathCause(err)
	}
	return look[:n], nil
}

// sniffText decompresses the first sniffBytes of text into the second half of look, however much of
// the file that takes; whole is set where it is all. An error of the data is of no interest here:
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
	if failed := raw.counted.err; failed != nil && failed != io.EOF {
		return nil, false, pathCause(failed)
	}
	return text[:n], err == io.EOF, nil
}
