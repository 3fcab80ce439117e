package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codecs by their numbers in parquet.
const (
	codecNone = iota
	codecSnappy
	codecGzip
	codecLZO
	codecBrotli
	codecLZ4
	codecZstd
	codecLZ4Raw
)

// A codec decompresses pages. Its decoders are made once.
type codec struct {
	zstd   *zstd.Decoder
	gzip   *gzip.Reader
	brotli *brotli.Reader
	src    bytes.Reader
}

// codecBytes is what a codec holds at most besides the pages: the tables of its decoder, and the
// window of a stream, which is at most as large as a page.
const codecBytes = 1 << 20

func (c *codec) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}

// decompress fills dst, whose length is what the page's header says.
func (c *codec) decompress(kind int, dst, src []byte) error {
	switch kind {
	case codecNone:
		if len(src) != len(dst) {
			return corrupt("a page that is not compressed has two sizes")
		}
		copy(dst, src)
		return nil
	case codecSnappy:
		n, err := snappy.DecodedLen(src)
		if err == nil && n == len(dst) {
			if _, err = snappy.Decode(dst, src); err == nil {
				return nil
			}
		}
		return damaged("snappy", err)
	case codecLZ4Raw:
		return unLZ4(dst, src)
	case codecLZ4:
		return hadoopLZ4(dst, src)
	case codecZstd:
		return c.unzstd(dst, src)
	case codecGzip:
		c.src.Reset(src)
		if c.gzip == nil {
			c.gzip = new(gzip.Reader)
		}
		return readPage("gzip", c.gzip, dst, c.gzip.Reset(&c.src))
	case codecBrotli:
		c.src.Reset(src)
		if c.brotli == nil {
			c.brotli = new(brotli.Reader)
		}
		return readPage("brotli", c.brotli, dst, c.brotli.Reset(&c.src))
	}
	return unsupported("its pages are compressed by codec %d", kind)
}

func (c *codec) unzstd(dst, src []byte) (err error) {
	if c.zstd == nil {
		c.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return err
		}
	}
	out, err := c.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err != nil || len(out) != len(dst) {
		return damaged("zstd", err)
	}
	return nil
}

// readPage fills dst from a decompressor, which must end there. err is that of opening it.
func readPage(codec string, r io.Reader, dst []byte, err error) error {
	if err != nil {
		return damaged(codec, err)
	}
	if _, err := io.ReadFull(r, dst); err != nil {
		return damaged(codec, err)
	}
	var more [1]byte
	if n, err := io.ReadFull(r, more[:]); n > 0 || err != io.EOF {
		return damaged(codec, err)
	}
	return nil
}

// hadoopLZ4 decodes what older writers call LZ4: blocks, each after its two sizes, or a block alone.
func hadoopLZ4(dst, src []byte) error {
	out, in := dst, src
	for len(in) >= 8 && len(out) > 0 {
		n, stored := binary.BigEndian.Uint32(in), binary.BigEndian.Uint32(in[4:])
		if uint64(n) > uint64(len(out)) || uint64(stored) > uint64(len(in)-8) {
			break
		}
		m, err := lz4.UncompressBlock(in[8:8+stored], out[:n])
		if err != nil || m != int(n) {
			break
		}
		out, in = out[n:], in[8+stored:]
	}
	if len(out) == 0 && len(in) == 0 {
		return nil
	}
	return unLZ4(dst, src)
}

func unLZ4(dst, src []byte) error {
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil || n != len(dst) {
		return damaged("lz4", err)
	}
	return nil
}

func damaged(codec string, err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("the %s data of a page has another length than its header says", codec)
	}
	return corrupt("the %s data of a page is damaged (%v)", codec, err)
}
