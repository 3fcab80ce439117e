package decompress

import (
	"errors"
	"fmt"
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

// A ReadAhead reads or decompresses on goroutines of its own, some blocks ahead of the reader of records.
//
// It gives the same bytes and the same error as one source of all would. Its goroutines end at a source's end, at its
// first error, and by Stop, which waits for them.
type ReadAhead struct {
	lanes []lane
	turn  int // the lane that has the next block
	done  chan struct{}
	once  sync.Once
	wait  sync.WaitGroup

	block aheadBlock // the one that is read
	at    int        // what is left of it begins here
}

// A Source is what one goroutine of a ReadAhead reads. Consumed reports how much of the file that took so far; it is
// called on the goroutine alone.
type Source struct {
	io.Reader
	Consumed func() int64
}

// errTurn ends what a source has before the next source has its turn. After the last one it is the first one's again.
var errTurn = errors.New("the next source has its turn")

// A lane is the way between the goroutine of a source and the reader.
type lane struct {
	name   string // the goroutine's
	full   chan aheadBlock
	free   chan []byte
	blocks int // those that were not made yet
}

// An aheadBlock is bytes of a source, how much of the file they took, and what came after them.
type aheadBlock struct {
	data     []byte
	consumed int64
	err      error
	lane     *lane
}

// Blocks returns how many blocks a source may be ahead that may take some bytes, and ReadAheadBytes where that is more.
func Blocks(bytes int64) int { return max(aheadBlocks, int(bytes/aheadBytes)) }

// NewReadAhead begins to read sources, each in some blocks of its own: at least two, and one where each block ends its
// turn. Their goroutines are named, each apart.
func NewReadAhead(blocks int, name string, sources ...Source) *ReadAhead {
	r := &ReadAhead{lanes: make([]lane, len(sources))}
	for i := range r.lanes {
		own := name
		if len(sources) > 1 && name != "" {
			own = fmt.Sprint(name, " ", i+1)
		}
		r.lanes[i] = lane{own, make(chan aheadBlock, blocks), make(chan []byte, blocks), blocks}
	}
	r.start(sources)
	return r
}

func (r *ReadAhead) start(sources []Source) {
	r.done = make(chan struct{})
	for i, src := range sources {
		r.wait.Go(func() { r.lanes[i].run(src, r.done) })
	}
}

// Restart stops, and begins to read as many other sources in the same memory.
func (r *ReadAhead) Restart(sources ...Source) {
	r.Stop()
	for i := range r.lanes {
		for l := &r.lanes[i]; len(l.full) > 0; {
			b := <-l.full
			b.release()
		}
	}
	if r.block.lane != nil {
		r.block.release()
	}
	r.block, r.at, r.turn, r.once = aheadBlock{}, 0, 0, sync.Once{}
	r.start(sources)
}

func (l *lane) run(src Source, done chan struct{}) {
	cputime.Label(l.name)
	for {
		if len(l.free) == 0 && l.blocks > 0 {
			l.free <- make([]byte, aheadBytes)
			l.blocks--
		}
		var buf []byte
		select {
		case buf = <-l.free:
		case <-done:
			return
		}
		n, err := ReadBlock(src, buf[aheadRoom:])
		l.full <- aheadBlock{buf[:aheadRoom+n], src.Consumed(), err, l} // there is room for every block
		if err != nil && err != errTurn {
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
		r.advance()
		if last.lane != nil {
			defer last.release() // keep may lie in it
		}
	}
	from := r.at - copy(r.block.data[r.at-len(keep):], keep)
	r.at = len(r.block.data)
	return r.block.data[from:], r.block.err
}

// advance goes to the next block that has bytes, or an error.
func (r *ReadAhead) advance() {
	for {
		r.block, r.at = <-r.lanes[r.turn].full, aheadRoom
		if r.block.err == errTurn {
			r.block.err = nil
			r.turn = (r.turn + 1) % len(r.lanes)
		}
		if r.block.err != nil || len(r.block.data) > aheadRoom {
			return
		}
		r.block.release()
	}
}

// release gives the block's memory back to its lane.
func (b *aheadBlock) release() { b.lane.free <- b.data[:cap(b.data)] }

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
