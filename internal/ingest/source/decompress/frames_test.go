package decompress

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// parallel reads all of data in runs, some beside each other, and returns its error as users see it; ok is false where it is
// one run.
func parallel(t *testing.T, c Compression, data []byte, n int) (text []byte, ok bool, err error) {
	f := FindFrames(c, bytes.NewReader(data), int64(len(data)), testWindow, func() error { return nil })
	if f == nil {
		return nil, false, nil
	}
	sources, stop := f.Sources(n)
	r := NewReadAhead(2, "", sources...)
	text, err = io.ReadAll(r)
	r.Stop()
	stop()
	if err == nil && r.Consumed() != int64(len(data)) {
		t.Errorf("%q: %d of %d bytes consumed", c, r.Consumed(), len(data))
	}
	return text, true, err
}

// noise returns n bytes that compress a little.
func noise(rng *rand.Rand, n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = ' ' + byte(rng.Uint32N(64))
	}
	return text
}

// zstdFrame returns a frame of text, or one that is skipped.
func zstdFrame(rng *rand.Rand, z *zstd.Encoder, text []byte) []byte {
	if rng.IntN(4) == 0 {
		skipped := binary.LittleEndian.AppendUint32([]byte{0x50 + byte(rng.IntN(16)), 0x2a, 0x4d, 0x18}, uint32(len(text)))
		return append(skipped, text...)
	}
	if rng.IntN(2) == 0 {
		return z.EncodeAll(text, nil)
	}
	var b bytes.Buffer // the length of its content is not in its header
	z.Reset(&b)
	z.Write(text)
	z.Close()
	return b.Bytes()
}

// member returns text as bgzip writes it; now and then its length is wrong or missing.
func member(rng *rand.Rand, z *gzip.Writer, text []byte) []byte {
	var b bytes.Buffer
	z.Reset(&b)
	if rng.IntN(40) > 0 {
		z.Extra = []byte("BC\x02\x00\x00\x00")
	}
	z.Write(text)
	z.Close()
	if z.Extra != nil {
		length := b.Len() - 1
		if rng.IntN(40) == 0 {
			length += rng.IntN(9) - 4
		}
		binary.LittleEndian.PutUint16(b.Bytes()[16:], uint16(length))
	}
	return b.Bytes()
}

// TestFramesAsOneStream: what is decompressed in runs gives the text and the error of one decompressor, whole, cut off,
// damaged, and with other bytes between the frames.
func TestFramesAsOneStream(t *testing.T) {
	rng := effort.Random(t)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	parts := noise(rng, 1<<18)
	runs := 0
	for range effort.Of(20, 60, 5000) {
		c := []Compression{Zstd, Gzip}[rng.IntN(2)]
		var data []byte
		most := 1 << (10 + rng.IntN(8))
		if c == Gzip {
			most = min(most, 1<<16-100)
		}
		for len(data) < AheadFrom+rng.IntN(1<<20) {
			text := parts[:rng.IntN(most)]
			if c == Zstd {
				data = append(data, zstdFrame(rng, encoder, text)...)
			} else {
				data = append(data, member(rng, z, text)...)
			}
			if rng.IntN(3000) == 0 {
				data = append(data, make([]byte, rng.IntN(20))...)
			}
		}
		what := "whole"
		switch at := rng.IntN(len(data)); rng.IntN(5) {
		case 0:
			what, data = fmt.Sprintf("cut off at %d", at), data[:max(at, AheadFrom)]
		case 1:
			what = fmt.Sprintf("damaged at %d", at)
			data[at] ^= 1 << rng.IntN(8)
		case 2:
			what, data = "with a tail", append(data, parts[:rng.IntN(20)]...)
		case 3:
			what, data = "with zeros", append(data, make([]byte, rng.IntN(20))...)
		}
		n := 1 + rng.IntN(5)
		got, found, gotErr := parallel(t, c, data, n)
		if !found {
			continue
		}
		runs++
		want, wantErr := unpack(c, data)
		if !bytes.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("%q %s, on %d goroutines: %d bytes, %v, want %d, %v", c, what, n, len(got), gotErr, len(want), wantErr)
		}
	}
	if runs == 0 {
		t.Error("no file was read in runs")
	}
}

// TestLongFrame: a frame that is too long to be searched for its end is read to the end of the file by one decompressor.
func TestLongFrame(t *testing.T) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	long := make([]byte, frameBytes+1)
	rand.NewChaCha8([32]byte{1}).Read(long)
	for _, texts := range [][][]byte{{long, long[:1<<20]}, {long[:1<<20], long[:1<<20], long, long[:1<<20]}} {
		var data, want []byte
		for _, text := range texts {
			data, want = encoder.EncodeAll(text, data), append(want, text...)
		}
		got, found, err := parallel(t, Zstd, data, 2)
		if found != (len(texts) > 2) || found && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("%d frames: found %v, %d of %d bytes, %v", len(texts), found, len(got), len(want), err)
		}
	}
}
