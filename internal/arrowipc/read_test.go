package arrowipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"
)

// sample is a stream of two batches of all types that a Reader reads.
func sample() (stream []byte, fields []Field) {
	fields = []Field{{Name: "ids", Type: Uint16, List: true}, {Name: "wide", Type: Int64, List: true},
		{Name: "length", Type: Int32}, {Name: "row", Type: Int64}}
	stream = AppendSchema(nil, fields, [][2]string{{"a", "1"}, {"key", "värde"}})
	for rows := range 2 {
		rows := int64(rows + 1)
		var parts [][]byte
		add := func(numbers any) {
			var b bytes.Buffer
			_ = binary.Write(&b, binary.LittleEndian, numbers) // numbers have a size
			parts = append(parts, nil, b.Bytes())
		}
		add(make([]int32, rows+1))
		add([]uint16{1, 65535, 2, 3}[:2*rows])
		add(make([]int32, rows+1))
		add([]int64{-100, 1 << 40, 5}[:rows])
		add([]int32{-7, 8}[:rows])
		add([]int64{9, -10}[:rows])
		var sizes []int64
		for _, p := range parts {
			sizes = append(sizes, int64(len(p)))
		}
		stream = AppendBatch(stream, rows, []int64{rows, 2 * rows, rows, rows, rows, rows}, sizes)
		for _, p := range parts {
			stream = append(append(stream, p...), make([]byte, Padding(int64(len(p))))...)
		}
	}
	return append(stream, EndOfStream...), fields
}

func TestReader(t *testing.T) {
	stream, fields := sample()
	r, err := NewReader(oneByte{bytes.NewReader(stream)})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Fields, fields) {
		t.Errorf("%+v", r.Fields)
	}
	for i, want := range [][][]int64{{{1, 65535}, {-100}, {-7}, {9}}, {{1, 65535, 2, 3}, {-100, 1 << 40}, {-7, 8}, {9, -10}}} {
		rows, err := r.Next()
		if err != nil || rows != i+1 {
			t.Fatalf("%d rows, %v", rows, err)
		}
		for c := range fields {
			if got := r.Values(c); !slices.Equal(got, want[c]) {
				t.Errorf("column %d is %v, want %v", c, got, want[c])
			}
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last batch: %v", err)
	}
}

// oneByte gives a byte a read.
type oneByte struct{ r io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.r.Read(p[:min(1, len(p))]) }

// readAll reads a stream to its end.
func readAll(stream []byte) error {
	r, err := NewReader(bytes.NewReader(stream))
	if err != nil {
		return err
	}
	for {
		if _, err := r.Next(); err != nil {
			return err
		}
		for c := range r.Fields {
			r.Values(c)
		}
	}
}

// TestReaderOfAPart: a stream that ends early, or goes on after its end, is an error wherever it does.
func TestReaderOfAPart(t *testing.T) {
	stream, _ := sample()
	for n := range stream {
		if err := readAll(stream[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(stream), err)
		}
	}
	if err := readAll(append(stream, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte after the end: %v", err)
	}
}

// FuzzReader: no stream makes a reader fail otherwise than with an error.
func FuzzReader(f *testing.F) {
	stream, _ := sample()
	f.Add(stream)
	f.Add([]byte(EndOfStream))
	f.Fuzz(func(t *testing.T, stream []byte) {
		if err := readAll(stream); err == nil {
			t.Error("no end")
		}
	})
}
