package decompress

import (
	"io"
	"sync"

	"github.com/dsload/dsload/internal/cputime"
)

const (
	// aheadBytes is the size of a block of a ReadAhead, and aheadBlocks is how many it holds.
	aheadBytes  = 128 << 10
	aheadBlocks = 3
	// ReadAheadBytes is the memory of one.
	ReadAheadBytes = aheadBlocks * aheadBytes
	// AheadFrom is the least size of a compressed file that is worth a goroutine.
	AheadFrom = 1 << 20
)

// A ReadAhead decompresses on a goroutine of its own, some blocks ahead of the reader of records.
// It saves about the time that framing takes: 60 MB of CSV in gzip were read in 0.69 s instead of
// 1.33, and of a tar archive in gzip in 0.73 s instead of 1.31 (best of 9, two busy cores). JSON
// lines, where framing is 3% of the time, gain nothing and lose nothing.
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
	rest  []byte     // what is left of it
}

// An aheadBlock is bytes of the source, how much of the file they took, and what came after them.
type aheadBlock struct {
	data     []byte
	consumed int64
	err      error
}

// NewReadAhead begins to read src. consumed reports how much of the file src took so far; it is
// called on the goroutine alone.
func NewReadAhead(src io.Reader, consumed func() int64) *ReadAhead {
	r := &ReadAhead{full: make(chan aheadBlock, aheadBlocks), free: make(chan []byte, aheadBlocks),
		done: make(chan struct{})}
	for range aheadBlocks {
		r.free <- make([]byte, aheadBytes)
	}
	r.wait.Go(func() { r.run(src, consumed) })
	return r
}

func (r *ReadAhead) run(src io.Reader, consumed func() int64) {
	cputime.Label("decompressor")
	for {
		var buf []byte
		select {
		case buf = <-r.free:
		case <-r.done:
			return
		}
		n, err := ReadBlock(src, buf)
		r.full <- aheadBlock{buf[:n], consumed(), err} // there is room for every block
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

// Next returns the next block, which is valid until the call after it, and what came after that.
func (r *ReadAhead) Next() ([]byte, error) {
	if cap(r.block.data) > 0 {
		r.free <- r.block.data[:cap(r.block.data)]
	}
	r.block = <-r.full
	return r.block.data, r.block.err
}

func (r *ReadAhead) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.block.err != nil {
			return 0, r.block.err
		}
		r.rest, _ = r.Next()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Consumed returns how much of the file the blocks that were read took.
func (r *ReadAhead) Consumed() int64 { return r.block.consumed }

// Stop ends the goroutine and waits for it.
func (r *ReadAhead) Stop() {
	r.once.Do(func() { close(r.done) })
	r.wait.Wait()
}
