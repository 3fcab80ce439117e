package collate

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// slowRow is a row as plain numbers.
type slowRow struct {
	ids, labels []int64
	lossMask    []bool
	segments    []int32
}

// slowCollate is the batch written down without any cleverness: columns of rows of numbers.
func slowCollate(o Options, rows []slowRow) map[Column][][]int64 {
	pad := func(lists [][]int64, value int64) [][]int64 {
		longest := 0
		for _, l := range lists {
			longest = max(longest, len(l))
		}
		for longest%max(o.Multiple, 1) != 0 && o.FixedLength == 0 {
			longest++
		}
		longest = max(longest, o.FixedLength)
		out := [][]int64{}
		for _, l := range lists {
			row := append([]int64{}, l...)
			for len(row) < longest {
				if o.Left {
					row = append([]int64{value}, row...)
				} else {
					row = append(row, value)
				}
			}
			out = append(out, row)
		}
		return out
	}
	var ids, mask, labels, positions, segments [][]int64
	for _, r := range rows {
		var m, l, p, s []int64
		for i, id := range r.ids {
			m = append(m, 1)
			if r.lossMask != nil && !r.lossMask[i] {
				id = -100
			}
			l = append(l, id)
		}
		for n, length := range r.segments {
			for i := range length {
				p, s = append(p, int64(i)), append(s, int64(n+1))
			}
		}
		if o.Labels == Seq2Seq {
			l = r.labels
		}
		ids, mask, labels, positions, segments = append(ids, r.ids), append(mask, m), append(labels, l),
			append(positions, p), append(segments, s)
	}
	out := map[Column][][]int64{InputIDs: pad(ids, int64(o.PadID)), AttentionMask: pad(mask, 0)}
	if o.Labels != NoLabels {
		out[LabelIDs] = pad(labels, -100)
	}
	if o.Packed {
		out[PositionIDs], out[SegmentIDs] = pad(positions, 0), pad(segments, 0)
	}
	return out
}

func encodeIDs(ids []int64, width int) []byte {
	var out []byte
	for _, id := range ids {
		if width == 2 {
			out = binary.LittleEndian.AppendUint16(out, uint16(id))
		} else {
			out = binary.LittleEndian.AppendUint32(out, uint32(id))
		}
	}
	return out
}

func drawBatch(t *rapid.T) (Options, []slowRow) {
	o := Options{
		PadID:       int32(rapid.IntRange(0, 60000).Draw(t, "pad")),
		Left:        rapid.Bool().Draw(t, "left"),
		Multiple:    rapid.SampledFrom([]int{0, 1, 3, 8}).Draw(t, "multiple"),
		FixedLength: rapid.SampledFrom([]int{0, 0, 5, 50}).Draw(t, "fixed"),
		Labels:      rapid.SampledFrom(AllLabels[1:]).Draw(t, "labels"),
		Narrow:      rapid.Bool().Draw(t, "narrow"),
		TokenBytes:  rapid.SampledFrom([]int{2, 4}).Draw(t, "token bytes"),
		Packed:      rapid.Bool().Draw(t, "packed"),
	}
	masked := rapid.Bool().Draw(t, "masked")
	top := int64(1<<16 - 1)
	if o.TokenBytes == 4 {
		top = 1<<31 - 1
	}
	tokens := rapid.SliceOfN(rapid.Int64Range(0, top), 0, 33)
	var rows []slowRow
	for range rapid.IntRange(1, 9).Draw(t, "rows") {
		r := slowRow{ids: tokens.Draw(t, "ids"), labels: tokens.Draw(t, "labels")}
		if masked && rapid.Bool().Draw(t, "has mask") {
			r.lossMask = rapid.SliceOfN(rapid.Bool(), len(r.ids), len(r.ids)).Draw(t, "mask")
		}
		for left := len(r.ids); left > 0 && o.Packed; {
			n := rapid.IntRange(1, left).Draw(t, "segment")
			r.segments = append(r.segments, int32(n))
			left -= n
		}
		rows = append(rows, r)
	}
	return o, rows
}

// addAll adds rows with their ids, or reads the ids of all of them at once.
func addAll(t interface{ Fatal(...any) }, b *Batch, o Options, rows []slowRow, atOnce bool) {
	raws := make([]testRow, len(rows))
	for i, r := range rows {
		raws[i] = testRow{IDs: encodeIDs(r.ids, o.TokenBytes), Labels: encodeIDs(r.labels, o.TokenBytes),
			LossMask: r.lossMask, Segments: r.segments,
			Row: Row{Example: int64(100 + i), Position: int64(i)}}
	}
	if atOnce {
		if err := b.Read(func(dst *Buffers) error {
			for _, r := range raws {
				dst.IDs, dst.Labels = append(dst.IDs, r.IDs...), append(dst.Labels, r.Labels...)
				dst.LossMask, dst.Segments = append(dst.LossMask, r.LossMask...), append(dst.Segments, r.Segments...)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range raws {
		var err error
		if atOnce {
			err = b.Take(Counts{IDs: len(rows[i].ids), Labels: len(rows[i].labels), Segments: len(r.Segments),
				LossMask: r.LossMask != nil}, r.Row)
		} else {
			err = add(b, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Seal(); err != nil {
		t.Fatal(err)
	}
}

// columnOf reads a column through Fill, cut at the given places.
func columnOf(b *Batch, c Column, width int, cuts func(left int) int) [][]int64 {
	total := b.Rows() * b.Length(c)
	var wire []byte
	for from := 0; from < total; {
		n := cuts(total - from)
		piece := make([]byte, n*width)
		for i := range piece {
			piece[i] = 0xee // what Fill must overwrite
		}
		b.Fill(piece, c, width, from)
		wire = append(wire, piece...)
		from += n
	}
	out := make([][]int64, b.Rows())
	for i := range out {
		out[i] = []int64{}
		for range b.Length(c) {
			switch width {
			case 2:
				out[i] = append(out[i], int64(binary.LittleEndian.Uint16(wire)))
			case 4:
				out[i] = append(out[i], int64(int32(binary.LittleEndian.Uint32(wire))))
			default:
				out[i] = append(out[i], int64(binary.LittleEndian.Uint64(wire)))
			}
			wire = wire[width:]
		}
	}
	return out
}

func TestBatchEqualsSlowCollation(t *testing.T) {
	b := New(Options{})
	rapid.Check(t, func(t *rapid.T) {
		o, rows := drawBatch(t)
		b.configure(o) // reused: nothing of earlier batches may show
		addAll(t, b, o, rows, rapid.Bool().Draw(t, "at once"))
		want := slowCollate(o, rows)
		for c := InputIDs; c <= SegmentIDs; c++ {
			if _, has := want[c]; has != b.Has(c) {
				t.Fatalf("column %d: has %v", c, b.Has(c))
			} else if !has {
				continue
			}
			widths := []int{4, 8}
			if c == InputIDs {
				widths = append(widths, o.TokenBytes)
			}
			width := rapid.SampledFrom(widths).Draw(t, "width")
			if diff := cmp.Diff(want[c], columnOf(b, c, width, func(left int) int { return left })); diff != "" {
				t.Fatalf("column %d, %d bytes wide: %s", c, width, diff)
			}
			cut := columnOf(b, c, width, func(left int) int { return rapid.IntRange(1, left).Draw(t, "cut") })
			if diff := cmp.Diff(want[c], cut); diff != "" {
				t.Fatalf("column %d, %d bytes wide, in pieces: %s", c, width, diff)
			}
		}
		for i, r := range rows {
			if int(b.RowLength(i)) != len(r.ids) || b.Example(i) != int64(100+i) || b.Position(i) != int64(i) {
				t.Fatalf("row %d is described wrongly", i)
			}
		}
	})
}

func TestContradictoryRowsAreRefused(t *testing.T) {
	b := New(Options{Packed: true})
	for _, segments := range [][]int32{nil, {1}, {1, 2}, {3, -1}, {0, 4}, {1 << 30, 1 << 30, 1 << 30, 1 << 30}} {
		if err := add(b, testRow{IDs: make([]byte, 8), Segments: segments}); !errors.Is(err, ErrSegments) {
			t.Errorf("segments %v: %v", segments, err)
		}
	}
	b.configure(Options{FixedLength: 1 << 30})
	for range 3 {
		if err := add(b, testRow{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Seal(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("3 rows of 2^30: %v", err)
	}
}

func TestCollationAllocatesNothing(t *testing.T) {
	o := Options{TokenBytes: 2}
	b := New(o)
	row := testRow{IDs: make([]byte, 40), LossMask: make([]bool, 20)}
	dst := make([]byte, 32*20*8)
	if n := testing.AllocsPerRun(100, func() {
		b.Reset()
		for range 32 {
			if err := add(b, row); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Seal(); err != nil {
			t.Fatal(err)
		}
		b.Fill(dst, InputIDs, 8, 0)
		b.Fill(dst, AttentionMask, 8, 0)
		b.Fill(dst, LabelIDs, 8, 0)
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func BenchmarkFill(b *testing.B) {
	for name, shape := range map[string][2]int{"32x20": {32, 20}, "256x512": {256, 512}} {
		b.Run(name, func(b *testing.B) {
			batch := New(Options{TokenBytes: 2})
			for i := range shape[0] {
				if err := add(batch, testRow{IDs: make([]byte, 2*(shape[1]-i%7))}); err != nil {
					b.Fatal(err)
				}
			}
			if err := batch.Seal(); err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, shape[0]*shape[1]*8)
			b.SetBytes(int64(3 * len(dst)))
			for b.Loop() {
				batch.Fill(dst, InputIDs, 8, 0)
				batch.Fill(dst, AttentionMask, 8, 0)
				batch.Fill(dst, LabelIDs, 8, 0)
			}
		})
	}
}
