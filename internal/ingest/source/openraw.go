package source

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// openRaw opens an input and makes sure that it is the one that Open saw.
func openRaw(in *Input, o *Options) (*rawFile, error) {
	r := &rawFile{label: "file", c: in.Compression, window: in.windowOf(o), size: in.Size, binary: in.archive != "", stop: func() {},
		dir: o.ScratchDir}
	if in.Compression == decompress.Zipped {
		r.inZip = o.membersOf(in.URI).inZip
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
		o := in.Object()
		file := in.Store.Open(context.Background(), o) // the store ends with the build
		r.file, r.counted.Source, r.remote = file, file, file
		if h, want := o.NewHash(); h != nil { // the server announced one
			name, _, _ := strings.Cut(o.Hash, ":")
			r.check = &rawCheck{name: name, want: want, hash: h}
			r.counted.Watch = r.check.add
		}
		return r, nil
	}
	if in.kept != nil {
		r.counted.Source = bytes.NewReader(in.kept)
		r.counted.Check = func() error { return in.compareFile(os.Stat(in.Path)) }
		return r, r.counted.Check()
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
