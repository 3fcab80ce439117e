package source

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is how an input is stored.
type Compression string

// The compressions.
const (
	Plain Compression = ""
	Gzip  Compression = "gzip"
	Zstd  Compression = "zstd"
	Bzip2 Compression = "bzip2"
)

// magics begin files of known kinds.
var magics = []struct {
	magic       string
	compression Compression
	refusal     string // what to do with a kind that is not read
}{
	{"\x1f\x8b\x08", Gzip, ""},
	{"\x28\xb5\x2f\xfd", Zstd, ""},
	{"BZh", Bzip2, ""},
	{"\xfd7zXZ\x00", Plain, "an xz archive; decompress it with `xz -d`, or pipe `xz -dc FILE` to the source -"},
	{"PK\x03\x04", Plain, "a zip archive; unpack it and name the folder"},
	{"\x04\x22\x4d\x18", Plain, "an lz4 file; decompress it with `lz4 -d`, or pipe it to the source -"},
	{"PAR1", Plain, "a parquet file"},
	{"ARROW1\x00\x00", Plain, "an Arrow file"},
	{"\xff\xfe", Plain, "text in UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`"},
	{"\xfe\xff", Plain, "text in UTF-16; convert it with `iconv -f UTF-16 -t UTF-8`"},
}

// detectCompression looks at the first bytes of an input.
func detectCompression(head []byte) (Compression, error) {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			if m.refusal != "" {
				return Plain, problemf(ErrUnsupported, "this is %s", m.refusal)
			}
			if m.compression == Bzip2 && (len(head) < 4 || head[3] < '1' || head[3] > '9') {
				continue // a text that begins with BZh
			}
			return m.compression, nil
		}
	}
	if len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18" {
		return Zstd, nil // a skippable frame, as pzstd writes first
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return Plain, problemf(ErrUnsupported, "this is a tar archive; unpack it and name the folder")
	}
	return Plain, nil
}

// zstdWindow is the window that the first frame behind skippable ones asks for, in bytes, 0 if head does not tell. The decoder refuses what is no frame.
func zstdWindow(head []byte) int64 {
	for {
		var h zstd.Header
		if h.Decode(head) != nil {
			return 0
		}
		if !h.Skippable {
			window := h.WindowSize
			if h.SingleSegment {
				window = h.FrameContentSize
			}
			return int64(min(window, math.MaxInt64))
		}
		skip := uint64(h.HeaderSize) + uint64(h.SkippableSize)
		if skip >= uint64(len(head)) {
			return 0
		}
		head = head[skip:]
	}
}

// windowOf is the window that the input's decompressor may take.
func (in *Input) windowOf(o *Options) int64 { return max(o.WindowBytes, in.window) }

// memoryBytes is the most that a decompressor with such a window holds.
func (c Compression) memoryBytes(window int64) int64 {
	switch c {
	case Gzip:
		return 256 << 10 // window, tables, input buffer
	case Zstd:
		return window + 2<<20 // window, two blocks and their tables
	case Bzip2:
		return 6 << 20 // 4 bytes a byte of a block of 900 kB, tables, input buffer
	}
	return 0
}

// decompress reads c from src, whose own errors it passes on.
func decompress(c Compression, src *countingReader, window int64) (io.Reader, func(), error) {
	nothing := func() {}
	switch c {
	case Gzip:
		z, err := gzip.NewReader(src)
		return z, nothing, err
	case Zstd:
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(uint64(window)), zstd.WithDecoderMaxMemory(uint64(window)))
		if err != nil {
			return nil, nothing, err
		}
		return z, z.Close, nil
	case Bzip2:
		return bzip2.NewReader(src), nothing, nil
	}
	return src, nothing, nil
}

// explain turns a decompressor's error into ours. Errors of the file below it pass unchanged.
func explain(c Compression, err error, src *countingReader, window int64) error {
	switch {
	case err == nil || err == io.EOF || c == Plain:
		return err
	case src.err != nil && src.err != io.EOF:
		return src.err
	}
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return problemf(ErrUnsupported, "a later zstd frame has a window larger than %s, which the first does not tell; put that frame first, or pipe `zstd -dc --long=31 FILE` to the source -", mebibytes(window))
	case errors.Is(err, io.ErrUnexpectedEOF), src.err == io.EOF && src.n == 0:
		return problemf(ErrTruncated, "the %s data ends before its end mark; copy the file again", c)
	}
	return problemf(ErrCorrupt, "the %s data is damaged (%v); copy the file again", c, err)
}

func mebibytes(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
