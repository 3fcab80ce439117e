package shape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dsload/dsload/shard"
)

const (
	pageBytes  = 4096
	entryBytes = 16
	pageSlots  = pageBytes / entryBytes
)

// A table holds entries of two words, found by the first, in a file of pages, a fixed number of
// which are in memory. The file is scratch: it is created when the pages no longer fit, and a later
// process ignores it.
//
// The highest bits of an entry's first word select its page. In the page it takes the first free
// slot, starting at the slot that the lowest bits select. When an entry's page is full, the number
// of pages is doubled and the entries of each page are split between two.
type table struct {
	fs   shard.FS
	path string
	file shard.File // nil until it is needed

	bits   uint   // the table has 1<<bits pages
	frames []byte // page p is in frame p & mask, or in the file
	mask   uint64
	tags   []uint32 // of each frame: 1 + the page that it holds, 0 for none
	dirty  []bool
}

// maxPageBits keeps page numbers within a tag: 16 TiB.
const maxPageBits = 31

// newTable returns a table that keeps poolBytes of pages, rounded down to a power of two, in memory.
func newTable(fsys shard.FS, path string, poolBytes int64) *table {
	frames := uint64(1)
	for int64(2*frames*pageBytes) <= poolBytes {
		frames *= 2
	}
	return &table{fs: fsys, path: path, frames: make([]byte, frames*pageBytes), mask: frames - 1,
		tags: make([]uint32, frames), dirty: make([]bool, frames)}
}

// tableBytes returns the memory of a table with poolBytes of pages.
func tableBytes(poolBytes int64) int64 { return poolBytes + poolBytes/pageBytes*8 + 4*pageBytes }

// close removes the file.
func (t *table) close() error {
	if t.file == nil {
		return nil
	}
	err := errors.Join(t.file.Close(), t.fs.Remove(t.path))
	t.file = nil
	return err
}

// page returns a page, valid until the next call for another one. write marks it as changed.
func (t *table) page(p uint64, write bool) ([]byte, error) {
	frame := p & t.mask
	data := t.frames[frame*pageBytes : (frame+1)*pageBytes]
	if t.tags[frame] != uint32(p)+1 {
		if err := t.evict(frame); err != nil {
			return nil, err
		}
		if err := t.load(p, data); err != nil {
			return nil, err
		}
		t.tags[frame] = uint32(p) + 1
	}
	t.dirty[frame] = t.dirty[frame] || write
	return data, nil
}

// evict writes a frame to the file if it was changed.
func (t *table) evict(frame uint64) error {
	if t.tags[frame] == 0 || !t.dirty[frame] {
		return nil
	}
	if t.file == nil {
		if err := t.create(); err != nil {
			return err
		}
	}
	at := int64(t.tags[frame]-1) * pageBytes
	if _, err := t.file.WriteAt(t.frames[frame*pageBytes:(frame+1)*pageBytes], at); err != nil {
		return fmt.Errorf("write %s at byte %d: %w", t.path, at, err)
	}
	t.dirty[frame] = false
	return nil
}

func (t *table) create() (err error) {
	const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
	t.file, err = t.fs.OpenFile(t.path, flag)
	if errors.Is(err, os.ErrExist) { // an earlier process left it
		if err = t.fs.Remove(t.path); err == nil {
			t.file, err = t.fs.OpenFile(t.path, flag)
		}
	}
	if err != nil {
		t.file = nil
		return fmt.Errorf("create %s: %w", t.path, err)
	}
	return nil
}

// load reads a page from the file. A page that was never written is empty.
func (t *table) load(p uint64, data []byte) error {
	n := 0
	if t.file != nil {
		var err error
		n, err = t.file.ReadAt(data, int64(p)*pageBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s at byte %d: %w", t.path, int64(p)*pageBytes, err)
		}
	}
	clear(data[n:])
	return nil
}

func (t *table) pageOf(first uint64) uint64 { return first >> 1 >> (63 - t.bits) }

// slot finds an entry in a page: it returns the entry's offset, or that of the first free slot.
// full means that there is neither.
func slot(page []byte, first, second, mask uint64) (at int, found, full bool) {
	at = int(first%pageSlots) * entryBytes
	for range pageSlots {
		s := binary.LittleEndian.Uint64(page[at+8:])
		if s == 0 {
			return at, false, false
		}
		if binary.LittleEndian.Uint64(page[at:]) == first && (s^second)&mask == 0 {
			return at, true, false
		}
		if at += entryBytes; at == pageBytes {
			at = 0
		}
	}
	return 0, false, true
}

// get returns the second word of the entry with this first word whose second word agrees with
// second in the bits of mask.
func (t *table) get(first, second, mask uint64) (value uint64, found bool, err error) {
	page, err := t.page(t.pageOf(first), false)
	if err != nil {
		return 0, false, err
	}
	at, found, _ := slot(page, first, second, mask)
	if !found {
		return 0, false, nil
	}
	return binary.LittleEndian.Uint64(page[at+8:]), true, nil
}

// put adds an entry unless get would find one. second must not be 0.
func (t *table) put(first, second, mask uint64) (found bool, err error) {
	for {
		p := t.pageOf(first)
		page, err := t.page(p, false)
		if err != nil {
			return false, err
		}
		at, found, full := slot(page, first, second, mask)
		if found {
			return true, nil
		}
		if !full {
			binary.LittleEndian.PutUint64(page[at:], first)
			binary.LittleEndian.PutUint64(page[at+8:], second)
			t.dirty[p&t.mask] = true
			return false, nil
		}
		if err := t.grow(); err != nil {
			return false, err
		}
	}
}

// grow doubles the number of pages. It goes from the last page to the first, since the two new
// pages of a page are at or after it, where all entries have already been moved.
func (t *table) grow() error {
	if t.bits == maxPageBits {
		return fmt.Errorf("%s: more than 1<<%d pages", t.path, maxPageBits)
	}
	n := uint64(1) << t.bits
	t.bits++
	var old [pageBytes]byte
	for p := n; p > 0; {
		p--
		page, err := t.page(p, true)
		if err != nil {
			return err
		}
		copy(old[:], page)
		clear(page)
		for half := 2 * p; half <= 2*p+1; half++ {
			if page, err = t.page(half, true); err != nil {
				return err
			}
			clear(page) // the old entries of this page have been moved
			for at := 0; at < pageBytes; at += entryBytes {
				first := binary.LittleEndian.Uint64(old[at:])
				second := binary.LittleEndian.Uint64(old[at+8:])
				if second == 0 || t.pageOf(first) != half {
					continue
				}
				to, _, _ := slot(page, first, second, ^uint64(0))
				copy(page[to:to+entryBytes], old[at:at+entryBytes])
			}
		}
	}
	return nil
}
