package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

// expectingFile is a file that notes what is expected and read of it.
type expectingFile struct {
	*bytes.Reader
	expected [][]Span
	inTurns  bool
	reads    int
}

func (f *expectingFile) Expect(spans []Span, inTurns bool) {
	f.expected, f.inTurns = append(f.expected, spans), inTurns
}

func (f *expectingFile) ReadAt(p []byte, off int64) (int, error) {
	f.reads++
	return f.Reader.ReadAt(p, off)
}

// pages returns pages of a column, of so many bytes each, which say that they are twice as large once
// they are decompressed, and of one value each.
func pages(encoding int, sizes ...int) (data []byte) {
	for _, n := range sizes {
		for _, field := range []int{pageData, 2 * n, n} {
			data = binary.AppendVarint(append(data, 1<<4|thriftI32), int64(field))
		}
		data = append(data, 2<<4|thriftStruct)
		for _, field := range []int{1, encoding} {
			data = binary.AppendVarint(append(data, 1<<4|thriftI32), int64(field))
		}
		data = append(data, 0, 0)
		data = append(data, make([]byte, n)...)
	}
	return data
}

// TestRemotePagesAreSampled checks which headers of pages are looked at, and what that tells.
func TestRemotePagesAreSampled(t *testing.T) {
	const size = 300_000
	sizes := slices.Repeat([]int{size}, 100)
	sizes[2] = 2 * size
	late := slices.Concat(slices.Repeat([]int{50_000}, 20), sizes)
	for _, c := range []struct {
		name  string
		data  []byte
		n     int
		reads int // headers; 0 for all
		want  int64
	}{
		{"pages of values", pages(encodingPlain, sizes...), 100, 4, 2 * 6 * size},
		{"pages of places in a dictionary", pages(encodingDictRLE, sizes...), 100, 64, 2 * 6 * size},
		{"a dictionary that fills up", append(pages(encodingDictRLE, late[:20]...), pages(encodingPlain, sizes...)...),
			120,
			24, 2 * 6 * size},
		{"few pages", pages(encodingPlain, sizes[:3]...), 3, 3, 6 * size},
		{"none", nil, 0, 0, 0},
	} {
		for _, remote := range []bool{true, false} {
			at := &expectingFile{Reader: bytes.NewReader(c.data)}
			f := &parquetFile{at: at, options: Options{Remote: remote}}
			l := leafReader{f: f, n: &node{}, ch: &chunk{size: int64(len(c.data)), values: int64(c.n),
				codec:        codecSnappy,
				uncompressed: int64(2 * len(c.data))}}
			l.end, l.left = l.ch.size, l.ch.values
			got, err := l.largest(0)
			if err != nil {
				t.Fatal(err)
			}
			if !remote {
				if at.reads != c.n || at.expected != nil {
					t.Errorf("%s: %d headers of a local file were read, and %d expected", c.name, at.reads, at.expected)
				}
				continue
			}
			if got != c.want || at.reads != c.reads {
				t.Errorf("%s: %d bytes from %d headers, want %d from %d", c.name, got, at.reads, c.want, c.reads)
			}
			if want := [][]Span{{{0, min(firstBytes, l.ch.size)}}}; !slices.EqualFunc(at.expected, want, slices.Equal) {
				t.Errorf("%s: %d was expected, want %d", c.name, at.expected, want)
			}
		}
	}
}

// TestPlannedPages checks that a remote file that was looked at before is not looked at again, that its
// pages may take what was planned together, and that what will be read is announced.
func TestPlannedPages(t *testing.T) {
	data := load(t, "testdata/plain.parquet")
	for _, o := range []Options{{Text: "text"}, {}} {
		at := &expectingFile{Reader: bytes.NewReader(data)}
		o.Remote, o.Planned = true, 256<<20
		f, err := OpenParquet(at, int64(len(data)), o)
		if err != nil {
			t.Fatal(err)
		}
		before := at.reads
		if n, _ := f.MemoryBytes(); n != o.Planned || at.reads != before {
			t.Errorf("reading takes %d bytes, of %d planned, after %d reads", n, o.Planned, at.reads-before)
		}
		rows := f.NewRows()
		if at.reads != before || len(at.expected) != 0 {
			t.Errorf("%d reads before the first row", at.reads-before)
		}
		p := f.(*parquetFile)
		for g := range f.Groups() {
			if err := rows.Seek(g); err != nil {
				t.Fatal(err)
			}
		}
		if one := o.Text != ""; at.inTurns == one || one && len(at.expected) != 1 ||
			!one && len(at.expected) != f.Groups() {
			t.Errorf("of %d groups was expected: %d, in turns %t", f.Groups(), at.expected, at.inTurns)
		}
		for i, c := range p.groups.at(0).chunks {
			if got := at.expected[0][i]; got != (Span{c.offset, c.offset + c.size}) {
				t.Errorf("column %d at %d was expected at %d", i, c.offset, got)
			}
		}
		rows.Close()

		r := f.NewRows().(*parquetRows)
		defer r.Close()
		if err := r.Seek(0); err != nil {
			t.Fatal(err)
		}
		r.pages.limit = 3000
		half := &pageHeader{uncompressed: 2000}
		if err := r.leaves[0].room(half, "a page"); err != nil {
			t.Error(err)
		}
		err = r.leaves[len(r.leaves)-1].room(half, "a page")
		var size *SizeError
		if errors.As(err, &size) != (len(r.leaves) > 1) {
			t.Errorf("two pages of 2000 bytes of %d columns, with room for 3000: %v", len(r.leaves), err)
		}
	}
}

// TestBuffersAreMadeOnce: pages that grow find a buffer of the largest one's size: what buffers leave behind that grow
// with them is in no plan.
func TestBuffersAreMadeOnce(t *testing.T) {
	if effort.Raced {
		t.Skip("the race detector makes slices.Grow allocate twice")
	}
	var sizes []int
	for n := 1 << 20; n <= 2<<20; n += 64 << 10 {
		sizes = append(sizes, n)
	}
	data := pages(encodingPlain, sizes...)
	l := leafReader{f: &parquetFile{at: bytes.NewReader(data)}, n: &node{}, ch: &chunk{size: int64(len(data)),
		values: int64(len(sizes)), codec: codecSnappy, uncompressed: int64(2 * len(data))}}
	l.end, l.left = l.ch.size, l.ch.values
	if n, err := l.largest(0); err != nil || n != 6<<20 || l.most != (pageSizes{stored: 2 << 20, page: 4 << 20}) {
		t.Fatalf("reading takes %d bytes, %+v, %v", n, l.most, err)
	}
	for _, most := range []int64{l.most.stored, 0} {
		var buf []byte
		made := allocated(func() {
			for _, n := range sizes {
				if got := bufferFor(&buf, int32(n), most); len(got) != n {
					t.Fatalf("%d bytes of %d", len(got), n)
				}
			}
		})
		if limit := uint64(2<<20 + 64<<10); most > 0 && made > limit || made > 6*limit {
			t.Errorf("%d bytes were allocated for pages of up to %d, where %d was known", made, 2<<20, most)
		}
	}
}
