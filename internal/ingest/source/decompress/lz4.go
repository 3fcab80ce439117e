package decompress

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/units"
	"github.com/pierrec/lz4/v4"
)

// This file reads LZ4 frames itself and leaves only their blocks to a library: a frame that is cut
// off anywhere must be an error, and no frame may take more memory than its blocks.

const (
	lz4Magic       = 0x184d2204
	lz4LegacyMagic = 0x184c2102
	// lz4BlockBytes is the largest block of a frame, that of the old format.
	lz4BlockBytes = 8 << 20
	lz4History    = 64 << 10
	lz4Stored     = 1 << 31 // in a block's size: it is not compressed
)

// LZ4Block returns the largest block of the frame that begins here, 0 if head does not say.
func LZ4Block(head []byte) int64 {
	if len(head) < 6 || binary.LittleEndian.Uint32(head) != lz4Magic {
		return lz4BlockBytes
	}
	return 1 << (2*(head[5]>>4&7) + 8)
}

var errLZ4 = errors.New("not an lz4 frame")

// An lz4Reader reads frames one after another, the old format's too. Zero bytes after a frame are
// padding, as after gzip data.
type lz4Reader struct {
	src     *bufio.Reader
	counted *Counted

	inFrame, legacy, linked bool
	blockSums, contentSum   bool
	blockBytes, limit       int
	left                    int64 // bytes of content to come, -1 where the frame does not say how many
	sum                     xxh32

	in   []byte // a block as it is stored
	out  []byte // history, then the block
	from int    // where in out the block begins
	rest []byte // what of it was not handed out yet
	err  error
}

func (r *lz4Reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err == nil {
			r.err = r.advance()
		}
		if r.err != nil && len(r.rest) == 0 {
			return 0, r.err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// advance reads the next header or block.
func (r *lz4Reader) advance() error {
	if !r.inFrame {
		return r.header()
	}
	if _, err := r.src.Peek(1); r.legacy && err == io.EOF {
		r.inFrame = false // the old format has no end mark
		return io.EOF
	}
	size, err := r.uint32()
	switch {
	case err != nil:
		return err
	case r.legacy && (size == lz4Magic || size == lz4LegacyMagic):
		r.inFrame = false
		return r.begin(size)
	case size == 0 && !r.legacy:
		return r.end()
	}
	return r.block(size)
}

// header goes to the next frame.
func (r *lz4Reader) header() error {
	if r.counted.N > 0 { // not the first
		if err := skipZeros(r.src); err != nil {
			return err
		}
	}
	magic, err := r.uint32()
	if err != nil {
		return err
	}
	return r.begin(magic)
}

// begin reads what follows a frame's magic number.
func (r *lz4Reader) begin(magic uint32) error {
	switch {
	case magic == lz4LegacyMagic:
		r.inFrame, r.legacy, r.linked, r.blockSums, r.contentSum = true, true, false, false, false
		r.blockBytes, r.left = lz4BlockBytes, -1
		return r.grow()
	case magic&^0xf == 0x184d2a50: // a skippable frame
		n, err := r.uint32()
		if err == nil {
			_, err = io.CopyN(io.Discard, r.src, int64(n))
		}
		return unexpected(err)
	case magic != lz4Magic:
		return foreign(LZ4, r.counted.N-int64(r.src.Buffered())-4)
	}
	head := make([]byte, 2, 16)
	if _, err := io.ReadFull(r.src, head); err != nil {
		return unexpected(err)
	}
	flags, size := head[0], head[1]>>4&7
	if flags>>6 != 1 || size < 4 || flags&2 != 0 || head[1]&0x8f != 0 {
		return errLZ4
	}
	n := 1 // the header's checksum
	if flags&8 != 0 {
		n += 8
	}
	if flags&1 != 0 {
		return fault.Of(cause.Unsupported,
			"this lz4 frame needs a dictionary that is not in it; decompress it with `lz4 -d -D`")
	}
	head = head[:2+n]
	if _, err := io.ReadFull(r.src, head[2:]); err != nil {
		return unexpected(err)
	}
	var sum xxh32
	sum.write(head[:len(head)-1])
	if byte(sum.sum()>>8) != head[len(head)-1] {
		return errors.New("the checksum of a frame's header differs")
	}
	r.left = -1
	if flags&8 != 0 {
		r.left = int64(binary.LittleEndian.Uint64(head[2:]) & (1<<63 - 1))
	}
	r.inFrame, r.legacy, r.linked = true, false, flags&0x20 == 0
	r.blockSums, r.contentSum, r.blockBytes = flags&0x10 != 0, flags&4 != 0, 1<<(2*int(size)+8)
	r.sum = xxh32{}
	return r.grow()
}

// grow makes room for the frame's blocks.
func (r *lz4Reader) grow() error {
	if r.blockBytes > r.limit {
		return fault.Of(cause.Unsupported,
			"a later lz4 frame has blocks larger than %s, which the first does not declare; "+
				"pipe `lz4 -dc FILE` to the source -", units.Size(r.limit))
	}
	if len(r.in) < r.blockBytes {
		r.in, r.out = make([]byte, lz4.CompressBlockBound(r.blockBytes)), make([]byte, lz4History+r.blockBytes)
	}
	r.from = 0
	return nil
}

// block reads and checks one block.
func (r *lz4Reader) block(size uint32) error {
	stored := size&lz4Stored != 0 && !r.legacy
	if stored {
		size &^= lz4Stored
	}
	if int64(size) > int64(len(r.in)) || stored && int(size) > r.blockBytes {
		return errors.New("a block is longer than the frame allows")
	}
	in := r.in[:size]
	if _, err := io.ReadFull(r.src, in); err != nil {
		return unexpected(err)
	}
	if r.blockSums {
		var sum xxh32
		sum.write(in)
		if want, err := r.uint32(); err != nil {
			return err
		} else if sum.sum() != want {
			return errors.New("the checksum of a block differs")
		}
	}
	history := r.history()
	block := r.out[history:][:r.blockBytes]
	var n int
	if stored {
		n = copy(block, in)
	} else {
		var err error
		if n, err = lz4.UncompressBlockWithDict(in, block, r.out[:history]); err != nil {
			return err
		}
	}
	r.from, r.rest = history, block[:n]
	if r.contentSum {
		r.sum.write(r.rest)
	}
	if r.left >= 0 {
		if r.left -= int64(n); r.left < 0 {
			return errors.New("a frame holds more than it says")
		}
	}
	r.from += n
	return nil
}

// history moves the last bytes before the next block to the front, where blocks refer to them.
func (r *lz4Reader) history() int {
	if !r.linked {
		return 0
	}
	n := min(r.from, lz4History)
	copy(r.out, r.out[r.from-n:r.from])
	return n
}

// end reads what follows the last block of a frame.
func (r *lz4Reader) end() error {
	r.inFrame = false
	if r.contentSum {
		if want, err := r.uint32(); err != nil {
			return err
		} else if r.sum.sum() != want {
			return errors.New("the checksum of the content differs")
		}
	}
	if r.left > 0 {
		return errors.New("a frame holds less than it says")
	}
	return nil
}

func (r *lz4Reader) uint32() (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(r.src, b[:])
	return binary.LittleEndian.Uint32(b[:]), unexpected(err)
}

// unexpected is the error of data that end where more belongs.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// xxh32 is the checksum of lz4 frames, XXH32 with the seed 0.
type xxh32 struct {
	lanes [4]uint32
	n     uint64
	buf   [16]byte
	held  int
}

const (
	xxhPrime1 = 2654435761
	xxhPrime2 = 2246822519
	xxhPrime3 = 3266489917
	xxhPrime4 = 668265263
	xxhPrime5 = 374761393
)

func (h *xxh32) write(p []byte) {
	if h.n == 0 && h.held == 0 {
		p1, p2 := uint32(xxhPrime1), uint32(xxhPrime2)
		h.lanes = [4]uint32{p1 + p2, p2, 0, -p1}
	}
	h.n += uint64(len(p))
	if h.held > 0 {
		n := copy(h.buf[h.held:], p)
		h.held += n
		p = p[n:]
		if h.held < len(h.buf) {
			return
		}
		h.stripes(h.buf[:])
		h.held = 0
	}
	whole := len(p) &^ 15
	h.stripes(p[:whole])
	h.held = copy(h.buf[:], p[whole:])
}

func (h *xxh32) stripes(p []byte) {
	a, b, c, d := h.lanes[0], h.lanes[1], h.lanes[2], h.lanes[3]
	for ; len(p) >= 16; p = p[16:] {
		a = bits.RotateLeft32(a+binary.LittleEndian.Uint32(p)*xxhPrime2, 13) * xxhPrime1
		b = bits.RotateLeft32(b+binary.LittleEndian.Uint32(p[4:])*xxhPrime2, 13) * xxhPrime1
		c = bits.RotateLeft32(c+binary.LittleEndian.Uint32(p[8:])*xxhPrime2, 13) * xxhPrime1
		d = bits.RotateLeft32(d+binary.LittleEndian.Uint32(p[12:])*xxhPrime2, 13) * xxhPrime1
	}
	h.lanes = [4]uint32{a, b, c, d}
}

func (h *xxh32) sum() uint32 {
	v := uint32(xxhPrime5)
	if h.n >= 16 {
		l := &h.lanes
		v = bits.RotateLeft32(l[0], 1) + bits.RotateLeft32(l[1], 7) + bits.RotateLeft32(l[2], 12) +
			bits.RotateLeft32(l[3], 18)
	}
	v += uint32(h.n)
	p := h.buf[:h.held]
	for ; len(p) >= 4; p = p[4:] {
		v = bits.RotateLeft32(v+binary.LittleEndian.Uint32(p)*xxhPrime3, 17) * xxhPrime4
	}
	for _, b := range p {
		v = bits.RotateLeft32(v+uint32(b)*xxhPrime5, 11) * xxhPrime1
	}
	v = (v ^ v>>15) * xxhPrime2
	v = (v ^ v>>13) * xxhPrime3
	return v ^ v>>16
}
