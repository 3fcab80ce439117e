package decompress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const testWindow = 8 << 20

// packed returns text in each of the compressions that a library here writes.
func packed(t *testing.T, text string) map[Compression][]byte {
	out := map[Compression][]byte{Plain: []byte(text)}
	for c, open := range map[Compression]func(io.Writer) io.WriteCloser{
		Gzip:   func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		LZ4:    func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) },
		Snappy: func(w io.Writer) io.WriteCloser { return snappy.NewBufferedWriter(w) },
		Zstd: func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	} {
		var b bytes.Buffer
		w := open(&b)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out[c] = b.Bytes()
	}
	return out
}

// unpack reads all of data, and returns its error as users see it.
func unpack(c Compression, data []byte) ([]byte, error) {
	counted := &Counted{Source: bytes.NewReader(data)}
	r, closed, err := Open(c, counted, testWindow)
	if err != nil {
		return nil, Explain(c, err, counted, testWindow)
	}
	defer closed()
	text, err := io.ReadAll(r)
	return text, Explain(c, err, counted, testWindow)
}

// TestOpen: every compression gives its text; cut off anywhere it is an error, or what a format without an end
// mark has before that.
func TestOpen(t *testing.T) {
	text := strings.Repeat("A line of text, and another one.\n", 300)
	for c, data := range packed(t, text) {
		if got, err := unpack(c, data); err != nil || string(got) != text {
			t.Errorf("%q: %d of %d bytes, %v", c, len(got), len(text), err)
		}
		for n := 1; n < len(data) && c != Plain; n += 1 + len(data)/60 {
			got, err := unpack(c, data[:n])
			if !strings.HasPrefix(text, string(got)) || err == nil && (c != Snappy || len(got) == len(text)) ||
				err != nil && !errors.Is(err, cause.Truncated) && !errors.Is(err, cause.Corrupt) {
				t.Errorf("%q cut at byte %d: %d bytes, %v", c, n, len(got), err)
			}
		}
	}
}

// TestReadAhead: the blocks of the goroutine are the source, with its error, however it is read; ending early
// leaves nothing running.
func TestReadAhead(t *testing.T) {
	failed := errors.New("the disk failed")
	for _, n := range []int{0, 1, aheadBytes - 1, aheadBytes, 3*aheadBytes + 7} {
		want := bytes.Repeat([]byte("x1y2"), n/4+1)[:n]
		for _, end := range []error{io.EOF, failed} {
			src := &Counted{Source: io.MultiReader(iotest.HalfReader(bytes.NewReader(want)), iotest.ErrReader(end))}
			r := NewReadAhead(Blocks(int64(n)), "", Source{src, func() int64 { return src.N }})
			got, err := io.ReadAll(iotest.OneByteReader(r))
			if ended := err == end || err == nil && end == io.EOF; !ended || !bytes.Equal(got, want) {
				t.Errorf("%d bytes until %v: %d bytes, %v", n, end, len(got), err)
			}
			if r.Consumed() != int64(n) {
				t.Errorf("%d bytes: %d consumed", n, r.Consumed())
			}
			r.Stop()
		}
	}
	endless := NewReadAhead(Blocks(0), "", Source{iotest.DataErrReader(zeros{}), func() int64 { return 0 }})
	if _, err := endless.Next(nil); err != nil {
		t.Fatal(err)
	}
	endless.Stop()
}

// TestStripes: a file that several goroutines read gives its bytes from an offset up to the size that it had, and the
// error of a file that is another one by then.
func TestStripes(t *testing.T) {
	data := make([]byte, 7*stripeBytes+9)
	rand.NewChaCha8([32]byte{1}).Read(data)
	changed := errors.New("it changed")
	for _, size := range []int{0, 1, stripeBytes - 1, stripeBytes, 3*stripeBytes + 1, 6 * stripeBytes, len(data)} {
		for _, from := range []int{0, size / 3, size} {
			for _, end := range []error{nil, changed} {
				r := NewReadAhead(1, "", Stripes(bytes.NewReader(data), int64(from), int64(size), func() error { return end })...)
				got, err := io.ReadAll(iotest.HalfReader(r))
				if err != end || !bytes.Equal(got, data[from:size]) {
					t.Errorf("from %d to %d: %d bytes, %v, want %v", from, size, len(got), err, end)
				}
				r.Stop()
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestUTF16Reader: text with a mark is converted, whatever the reads; halves of pairs become bytes that are not
// UTF-8; other text passes.
func TestUTF16Reader(t *testing.T) {
	text := strings.Repeat("straße 猫 🐈\n", 5000)
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		data := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(text)) {
			data = order.AppendUint16(data, unit)
		}
		src := iotest.OneByteReader(bytes.NewReader(data))
		if got, err := io.ReadAll(&UTF16Reader{Source: src}); err != nil || string(got) != text {
			t.Errorf("%v: %d bytes, %v", order, len(got), err)
		}
		half := order.AppendUint16(order.AppendUint16(order.AppendUint16(nil, 0xfeff), 0xd83d), 'a')
		got, err := io.ReadAll(&UTF16Reader{Source: bytes.NewReader(half)})
		if err != nil || string(got) != "\xffa" {
			t.Errorf("%v: half a pair: %q, %v", order, got, err)
		}
		if _, err := io.ReadAll(&UTF16Reader{Source: bytes.NewReader(data[:5])}); !errors.Is(err, cause.Truncated) {
			t.Errorf("%v: an odd byte at the end: %v", order, err)
		}
	}
	for _, other := range []string{"", "x", "plain", "\xfe", "\ufeffmarked"} {
		if got, err := io.ReadAll(&UTF16Reader{Source: strings.NewReader(other)}); err != nil || string(got) != other {
			t.Errorf("%q: %q, %v", other, got, err)
		}
	}
}

// TestDamage: a changed byte never gives other text without an error where the format has a checksum.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("Some text that is worth protecting.\n", 100)
	for c, data := range packed(t, text) {
		if c == Plain {
			continue
		}
		for range 200 {
			changed := bytes.Clone(data)
			at := rng.IntN(len(data))
			changed[at] ^= 1 << rng.IntN(8)
			if got, err := unpack(c, changed); err == nil && string(got) != text && len(got) > 0 {
				t.Fatalf("%q: byte %d changed gives other text", c, at)
			}
		}
	}
}
