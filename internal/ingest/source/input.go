package source

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/ingest/source/zipfile"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/units"
)

// An Input is one file, pipe or generator of a Set.
type Input struct {
	listing.File
	Format      Format // never Auto
	Compression decompress.Compression
	Records     string   // keys below which the records of JSON lie, with dots between them; "" for the top
	Lists       []string // keys of arrays of objects in JSON that may be one object, some at most

	archive Format // Tar or Zip where the input's files are its records' inputs, else ""
	once    *singleUse
	sniffed int64  // bytes that detection has seen of a file
	kept    []byte // all of it, while it is opened
	// window is what its decompressor takes, in bytes, where it asks for more than Options.WindowBytes, or what
	// reading a file of columns takes; why says what takes so much of it.
	window    int64
	why       string
	oneLine   bool     // it is text whose lines end in carriage returns alone, as far as detection has seen
	textBytes int64    // estimate of what it holds after decompression, -1 if unknown
	columns   []string // with Options.Conditions, until the set has seen it; nil where they are not known
}

// OffsetsAreBytes reports whether the offsets of its records are those of the bytes in the file.
func (in *Input) OffsetsAreBytes() bool {
	return in.Compression == decompress.Plain && !in.Format.IsColumnar()
}

// framed returns the format that the size of the window depends on.
func (in *Input) framed() Format {
	if in.archive != "" {
		return in.archive
	}
	return in.Format
}

// Rereadable reports whether an input can be read more than once: a pipe cannot.
func (in *Input) Rereadable() bool { return in.once == nil }

// IsPlainFile reports whether the input is a local file of text that is stored as it is.
func (in *Input) IsPlainFile() bool {
	return in.Path != "" && in.once == nil && in.Compression == decompress.Plain && in.archive == "" &&
		!in.Format.IsColumnar()
}

// windowOf returns the window that the input's decompressor may take.
func (in *Input) windowOf(o *Options) int64 {
	if in.Compression == decompress.LZ4 {
		return in.window
	}
	return max(o.WindowBytes, in.window)
}

// readerBytes returns the most that reading the input takes besides the window of its records.
func (in *Input) readerBytes(o *Options) int64 {
	if in.Format.IsColumnar() {
		return in.window
	}
	n := in.Compression.MemoryBytes(in.windowOf(o))
	if in.Compression == decompress.Zipped {
		n = zipfile.ReaderBytes
	}
	if in.Compression != decompress.Plain {
		n += decompress.UTF16Bytes
	}
	return n + decompress.ReadAheadBytes
}

// A singleUse is an input that can be read once only: stdin, a pipe. What detection has read is kept:
// bytes in reader, text in raw.
type singleUse struct {
	reader *bufio.Reader
	raw    *rawFile // made by detection where the input is compressed
	taken  atomic.Bool
}

// compareFile returns how a file differs from what it was, by what the system says of it now.
func (in *Input) compareFile(info fs.FileInfo, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &cause.ChangedError{URI: in.URI, What: cause.Existence}
	case err != nil:
		return cause.OfPath(err)
	}
	return in.compare(Stat{URI: in.URI, Size: info.Size(), ModTime: info.ModTime()})
}

// compare returns how an input differs from what it was.
func (in *Input) compare(now Stat) error {
	switch {
	case in.ETag != "" && now.ETag != "" && !remote.SameETag(in.ETag, now.ETag):
		return cause.Changed(in.URI, "ETag", in.ETag, now.ETag)
	case in.Size != now.Size:
		return cause.Changed(in.URI, "size", units.Bytes(in.Size), units.Bytes(now.Size))
	case !in.ModTime.Equal(now.ModTime) && (in.ETag == "" || now.ETag == ""):
		return cause.Changed(in.URI, "modification time", in.ModTime.Format(time.RFC3339Nano),
			now.ModTime.Format(time.RFC3339Nano))
	}
	return nil
}

// appendRow writes down a file, local or remote.
func (in *Input) appendRow(row []byte) []byte {
	return in.AppendRow(scratch.AppendRow(row, []int64{in.textBytes, in.window}, string(in.Format),
		string(in.Compression), string(in.archive), in.Records))
}

// parseRow reads what appendRow wrote.
func (in *Input) parseRow(row []byte) error {
	rest, err := scratch.ParseRow(row, []*int64{&in.textBytes, &in.window}, (*string)(&in.Format),
		(*string)(&in.Compression), (*string)(&in.archive), &in.Records)
	if err != nil {
		return err
	}
	return in.ParseRow(rest)
}

// chainStat adds what identifies a file without reading it.
func chainStat(s checksum.Sum, in *Input) checksum.Sum {
	row := binary.AppendVarint(make([]byte, 0, 256), in.Size)
	row = binary.AppendVarint(row, in.ModTime.Unix())
	row = binary.AppendVarint(row, int64(in.ModTime.Nanosecond()))
	if row = append(row, in.URI...); in.ETag != "" {
		row = append(append(row, 0), in.ETag...)
	}
	return s.Chain(row)
}
