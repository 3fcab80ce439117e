package columnar

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/columnar/columnartest"
)

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What nobody wants of a footer costs nothing, however much of it there is.
func TestUnwantedMetadataCostsNothing(t *testing.T) {
	effort.OneGoroutine(t)
	for name, p := range map[string]columnartest.Parquet{
		"entries":      {Entries: 30_000, Value: strings.Repeat("v", 1000)},
		"a long entry": {Entries: 1, Value: strings.Repeat("v", 40<<20)},
		"columns":      {Columns: 100_000, Groups: 2},
		"deep columns": {Columns: 1000, Depth: 200},
	} {
		data := p.Bytes()
		o := Options{Text: "text", MaxMetadata: 16 << 10}
		var f File
		var err error
		took := allocated(func() { f, err = open("x.parquet", data, o) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n, _ := f.MemoryBytes(); n > 2<<20 || f.Groups() != p.Groups {
			t.Errorf("%s: %d groups and %d bytes", name, f.Groups(), n)
		}
		if took > 1<<20+uint64(400*p.Columns*(1+p.Depth)) {
			t.Errorf("%s: %d bytes were allocated for a footer of %d", name, took, len(data))
		}
	}
}

// What is kept of a footer is counted before it is kept. The error says how much is enough.
func TestMetadataIsBounded(t *testing.T) {
	effort.OneGoroutine(t)
	for name, test := range map[string]struct {
		p    columnartest.Parquet
		o    Options
		what string
	}{
		"row groups": {columnartest.Parquet{Groups: 20_000}, Options{Text: "text"},
			"(columns: 1, wanted: 1, row groups: 20000)"},
		"columns": {columnartest.Parquet{Columns: 5000, Groups: 3}, Options{},
			"(columns: 5001, wanted: 5001, row groups: 3)"},
		"of a remote": {columnartest.Parquet{Columns: 500, Groups: 30}, Options{Remote: true}, "wanted: 501"},
		"some": {columnartest.Parquet{Columns: 900, Groups: 900},
			Options{Columns: []string{"column7", "column8", "column20"}}, "columns: 901, wanted: 3"},
	} {
		data := test.p.Bytes()
		f, err := open("x.parquet", data, test.o)
		if err != nil {
			t.Fatal(err)
		}
		enough, _ := f.MemoryBytes()
		held := f.(*parquetFile).held
		test.o.MaxMetadata = held
		if _, err := open("x.parquet", data, test.o); err != nil {
			t.Errorf("%s: with what it takes: %v", name, err)
		}
		for _, limit := range []int64{1, held / 3, held - 1} {
			test.o.MaxMetadata = limit
			_, err := open("x.parquet", data, test.o)
			var size *SizeError
			if !errors.As(err, &size) || size.Bytes < enough || size.Bytes > enough+enough/2 ||
				!strings.Contains(err.Error(), test.what) {
				t.Errorf("%s under %d of %d bytes: %v, want %d", name, limit, held, err, enough)
			}
		}
	}
}

// More columns than can be read at once, or deeper ones, are refused where they are wanted.
func TestWantedColumnsAreBounded(t *testing.T) {
	for _, p := range []columnartest.Parquet{{Columns: maxLeaves + 10}, {Columns: 1, Depth: maxDepth + 1}} {
		if _, err := open("x.parquet", p.Bytes(), Options{}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// longFile is a file in which a part occurs any number of times.
type longFile struct {
	head, part, tail []byte
	times            int64
}

func (r *longFile) size() int64 {
	return int64(len(r.head)) + r.times*int64(len(r.part)) + int64(len(r.tail))
}

func (r *longFile) ReadAt(p []byte, off int64) (n int, err error) {
	end := int64(len(r.head)) + r.times*int64(len(r.part))
	for n < len(p) {
		switch at := off + int64(n); {
		case at < int64(len(r.head)):
			n += copy(p[n:], r.head[at:])
		case at < end:
			n += copy(p[n:], r.part[(at-int64(len(r.head)))%int64(len(r.part)):])
		case at < r.size():
			n += copy(p[n:], r.tail[at-end:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}

// firstBatch returns where the first record batch of a stream begins and ends.
func firstBatch(t *testing.T, data []byte) (from, end int64) {
	t.Helper()
	f, err := open("x.arrow", data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := f.(*arrowFile).batches.at(0)
	return b.meta - 8, b.body() + (b.bodySize+7)/8*8
}

// Record batches are counted before they are noted, and their messages cost nothing once they were.
func TestManyRecordBatches(t *testing.T) {
	data := load(t, "testdata/stream.arrow")
	from, end := firstBatch(t, data)
	const times = 20_000
	r := &longFile{head: data[:from], part: data[from:end], tail: []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		times: times}
	o := Options{Text: "text", MaxMetadata: times*batchBytes + 8<<10}
	var f File
	var err error
	took := allocated(func() { f, err = OpenArrow(r, r.size(), o) })
	if err != nil || f.Groups() != times {
		t.Fatal(err)
	}
	n, _ := f.MemoryBytes()
	if took > 2*uint64(n) {
		t.Errorf("%d bytes were allocated, and %d are said", took, n)
	}
	rows := f.NewRows()
	defer rows.Close()
	if err := errors.Join(rows.Seek(times-1), rows.Next()); err != nil {
		t.Error(err)
	}
	o.MaxMetadata = times * batchBytes / 2
	var size *SizeError
	if _, err := OpenArrow(r, r.size(), o); !errors.As(err, &size) || size.Bytes < n ||
		!strings.Contains(err.Error(), "record batches: 20000") {
		t.Errorf("%v, want at least %d", err, n)
	}
}

// Of several columns of one name it is not clear which is wanted. In unwanted ones it does no harm.
func TestColumnsOfOneName(t *testing.T) {
	data := columnartest.Parquet{Columns: 2, Groups: 1}.Bytes()
	data = bytes.Replace(data, []byte("column1"), []byte("column0"), 1)
	for _, o := range []Options{{Columns: []string{"column0"}}, {Text: "column0"}, {}} {
		o.MaxMetadata = 1 << 20
		if _, err := OpenParquet(bytes.NewReader(data), int64(len(data)), o); !errors.Is(err, ErrType) ||
			!strings.Contains(err.Error(), `several columns are named "column0"`) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	o := Options{Text: "text", MaxMetadata: 1 << 20}
	if _, err := OpenParquet(bytes.NewReader(data), int64(len(data)), o); err != nil {
		t.Error(err)
	}
}
