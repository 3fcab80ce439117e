package decompress

import (
	"io"
	"sync"

	"github.com/dsload/dsload/internal/cputime"
)

const (
	// aheadBytes is the size of a block of a ReadAhead, with the room before its text, and aheadBlocks is how many it
	// holds.
	aheadBytes  = 128 << 10
	aheadRoom   = 16 << 10
	aheadBlocks = 3
	// ReadAheadBytes is the memory of one.
	ReadAheadBytes = aheadBlocks * aheadBytes
	// AheadFrom is the least size of a file that is worth a goroutine.
	AheadFrom = 1 << 20
)

// A ReadAhead reads or decompresses on a goroutine of its own, some blocks ahead of the reader of records.
//
// It gives the same bytes and the same error as its source. The goroutine ends at the source's end, at
// its first error, and by Stop, which waits for it.
type ReadAhead struct {
	full chan aheadBlock
	free chan []byte
	done chan struct{}
	once sync.Once
	wait sync.WaitGroup

	block aheadBlock // the one that is read
	at    int        // what is left of it begins here
}

// An aheadBlock is bytes of the source, how much of the file they took, and what came after them.
type aheadBlock struct {
	data     []byte
	consumed int64
	err      error
}

// NewReadAhead begins to read src, up to some bytes ahead, and ReadAheadBytes where that is less. consumed reports how
// much of the file src took so far; it is called on the goroutine alone, which is named.
func NewReadAhead(src io.Reader, consumed func() int64, bytes int64, name string) *ReadAhead {
	blocks := max(aheadBlocks, int(bytes/aheadBytes))
	r := &ReadAhead{full: make(chan aheadBlock, blocks), free: make(chan []byte, blocks), done: make(chan struct{})}
	r.wait.Go(func() { r.run(src, consumed, blocks, name) })
	return r
}

func (r *ReadAhead) run(src io.Reader, consumed func() int64, blocks int, name string) {
	cputime.Label(name)
	for {
		if len(r.free) == 0 && blocks > 0 {
			r.free <- make([]byte, aheadBytes)
			blocks--
		}
		var buf []byte
		select {
		case buf = <-r.free:
		case <-r.done:
			return
		}
		n, err := ReadBlock(src, buf[aheadRoom:])
		r.full <- aheadBlock{buf[:aheadRoom+n], consumed(), err} // there is room for every block
		if err != nil {
			return
		}
	}
}

// ReadBlock fills buf unless an error comes first, which it returns with what was read before it.
func ReadBlock(src io.Reader, buf []byte) (n int, err error) {
	for empty := 0; n < len(buf) && err == nil; {
		var m int
		m, err = src.Read(buf[n:])
		n += m
		if empty++; m > 0 {
			empty = 0
		}
		if empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// Next returns what keep holds, at most aheadRoom bytes, and directly after it what is left of a block, or the next
// block; and what comes after that. It is valid until the next call of any method, which may be given a part of it to
// keep.
func (r *ReadAhead) Next(keep []byte) ([]byte, error) {
	if last := r.block; r.at == len(last.data) {
		if last.err != nil {
			return keep, last.err
		}
		r.block, r.at = <-r.full, aheadRoom
		if cap(last.data) > 0 {
			defer func() { r.free <- last.data[:cap(last.data)] }() // keep may lie in it
		}
	}
	from := r.at - copy(r.block.data[r.at-len(keep):], keep)
	r.at = len(r.block.data)
	return r.block.data[from:], r.block.err
}

// Keeps reports whether Next may keep n bytes.
func (r *ReadAhead) Keeps(n int) bool { return r != nil && n <= aheadRoom }

func (r *ReadAhead) Read(p []byte) (int, error) {
	for r.at == len(r.block.data) {
		if r.block.err != nil {
			return 0, r.block.err
		}
		r.Next(nil)
		r.at = aheadRoom // it is not taken yet
	}
	n := copy(p, r.block.data[r.at:])
	r.at += n
	return n, nil
}

// Consumed returns how much of the file the blocks that were read took.
func (r *ReadAhead) Consumed() int64 { return r.block.consumed }

// Stop ends the goroutine and waits for it.
func (r *ReadAhead) Stop() {
	r.once.Do(func() { close(r.done) })
	r.wait.Wait()
}
