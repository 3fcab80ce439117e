package columnar

import (
	"errors"

	"github.com/dsload/dsload/internal/flatbuf"
)

// A batchHeader is the metadata of a record batch.
type batchHeader struct {
	t           flatbuf.Table
	nodes, bufs int // where they begin in t.b
	nNodes      int
	nBufs       int
	compression int
	views       []int // buffers of the columns of views before each, and of all
}

// header reads the metadata of a batch into data, to which it refers.
func (f *arrowFile) header(b *batch, data *flatbuf.Buffer) (h batchHeader, err error) {
	if err := data.Open(f.readAt, b.meta, int(b.metaSize)); err != nil {
		return h, err
	}
	t, ok := data.Root().Table(2)
	if !ok {
		return h, corrupt("a record batch has no header")
	}
	return batchHeaderOf(t, f.nodes, f.buffers, f.views)
}

// batchHeaderOf reads the metadata of a batch that has at least the given numbers of nodes, buffers
// and columns of views.
func batchHeaderOf(t flatbuf.Table, nodes, buffers, views int) (h batchHeader, err error) {
	h.t = t
	h.nodes, h.nNodes = t.Vector(1, 16)
	h.bufs, h.nBufs = t.Vector(2, 16)
	h.compression = compressionNone
	if c, ok := t.Table(3); ok {
		h.compression = int(int8(c.Byte(0, 0)))
	}
	at, n := t.Vector(4, 8)
	have := n
	n = min(n, max(views, 1)) // the values of a dictionary have one
	h.views = make([]int, 1, n+1)
	for i := range n {
		count := t.Int64(at + 8*i)
		if count < 0 || count > int64(h.nBufs-h.views[i]) {
			return h, corrupt("a record batch has fewer buffers than it says")
		}
		h.views = append(h.views, h.views[i]+int(count))
	}
	if h.nNodes < nodes || h.nBufs < buffers+h.views[n] || have < views {
		return h, corrupt("a record batch has fewer columns than the schema")
	}
	return h, t.Err
}

// variadic returns the number of text buffers of n columns of views, beginning with the column
// first.
func (h *batchHeader) variadic(first, n int) int {
	last := min(first+n, len(h.views)-1)
	return h.views[max(first, last)] - h.views[first]
}

func (h *batchHeader) node(i int) (length, nulls int64) {
	return h.t.Int64(h.nodes + 16*i), h.t.Int64(h.nodes + 16*i + 8)
}

func (h *batchHeader) buffer(i int) buffer {
	return buffer{h.t.Int64(h.bufs + 16*i), h.t.Int64(h.bufs + 16*i + 8)}
}

// lz4Garbage is the garbage that the decoder of linked lz4 blocks leaves between two collections:
// it allocates a new window for each block.
const lz4Garbage = 6 << 20

// measure finds out what the decompressors take in the batch that takes most.
func (f *arrowFile) measure() error {
	for i := range f.batches.len() {
		b := f.batches.at(i)
		if f.options.Remote && i > 0 {
			break
		}
		if b.broken {
			continue
		}
		h, err := f.header(b, &f.meta)
		if errors.Is(err, ErrCorrupt) && f.options.Lenient {
			continue // reported when it is read
		}
		if err != nil {
			return err
		}
		if h.compression == compressionNone {
			break // all others of the file are uncompressed too
		}
		var sum int64
		for _, a := range f.top {
			n, err := f.columnWindow(a, b, &h)
			if err != nil {
				return err
			}
			sum += n
		}
		if h.compression == compressionLZ4 {
			sum += lz4Garbage
		}
		if f.meta.Err != nil {
			return f.meta.Err
		}
		f.window = max(f.window, sum)
	}
	f.window += f.streams * streamBytes
	for _, n := range f.viewBytes {
		f.values += n
	}
	for _, a := range f.encoded {
		f.values += f.mostOf(a.dictionary.id)
	}
	return nil
}

// columnWindow returns what the decompressors of a column take together in a batch.
func (f *arrowFile) columnWindow(a *arrowField, b *batch, h *batchHeader) (sum int64, err error) {
	for j := range a.buffers {
		n, err := f.streamWindow(b, h.bufferOf(a, j), h.compression)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	if a.isView() && a.dictionary == nil {
		n, err := f.viewWindow(a, b, h)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	for _, c := range a.children {
		n, err := f.columnWindow(c, b, h)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// bufferOf returns a buffer of a column.
func (h *batchHeader) bufferOf(a *arrowField, j int) buffer {
	return h.buffer(a.buffer + h.variadic(0, a.views) + j)
}
