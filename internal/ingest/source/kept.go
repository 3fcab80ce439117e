package source

import (
	"bytes"
	"os"
	"sync"
)

// A keeper holds small files that detection has read whole, until they are read. A folder of them is then read once
// instead of twice.
type keeper struct {
	mu    sync.Mutex
	bytes int64
	files map[int][]byte // by the numbers of the inputs
}

// keep keeps an input that is about to be added if look holds all of it and Options.KeepBytes allows it.
func (s *Set) keep(in *Input, look []byte) {
	k := &s.kept
	if !in.IsPlainFile() || in.sniffed == 0 || in.sniffed != in.Size || k.bytes+in.Size > s.opts.KeepBytes {
		return
	}
	if k.files == nil {
		k.files = map[int][]byte{}
	}
	k.files[s.list.len()] = bytes.Clone(look[:in.Size])
	k.bytes += in.Size
}

// take returns the i-th input if it was kept, and keeps it no longer.
func (k *keeper) take(i int) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.files[i]
	delete(k.files, i)
	return data
}

// KeptBytes returns how much was kept under Options.KeepBytes.
func (s *Set) KeptBytes() int64 { return s.kept.bytes }

// Forget drops what was kept: it is read again. It must not be called beside a Reader.
func (s *Set) Forget() { s.kept.files, s.kept.bytes = nil, 0 }

// openKept makes the reader of an input that was kept, if the file is still the one that was.
func (r *rawFile) openKept(in *Input, data []byte) error {
	r.counted.Source = bytes.NewReader(data)
	r.counted.Check = func() error { return in.compareFile(os.Stat(in.Path)) }
	return r.counted.Check()
}
