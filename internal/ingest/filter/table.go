package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
)

// An entry is two words, of which the second is not 0. The first is a hash: its bits are as good as random.
type entry struct{ first, second uint64 }

const entryBytes = 16

// A table holds entries, found by the first word. New ones are in memory; when they fill their room they
// move, in order, to runs in a scratch file, as in a log-structured merge tree (O'Neil and others 1996):
// each level is one run, up to levelFactor times as long as the one before it, and takes that one in when
// it is full. A filter of all entries in runs answers for most words that no run has them. The file is
// created when it is needed, and a later process ignores it.
type table struct {
	file  *scratch
	slots []entry // open addressing by the highest bits of the first word, so that they are nearly sorted
	shift int     // shift of a first word, to its slot
	used  int

	runsHave bloom
	levels   []run // the shortest first
	fences   int   // a run has at most
	read     block
}

const levelFactor = 8

// newTable returns a table that takes up to poolBytes of memory, and what tableBytes adds.
func newTable(file *scratch, poolBytes int64) *table {
	slotBits := 4
	for int64(2*entryBytes)<<slotBits <= poolBytes/4 {
		slotBits++
	}
	fences := max(16, poolBytes/16/fenceBytes)
	return &table{file: file, slots: make([]entry, 1<<slotBits), shift: 64 - slotBits,
		runsHave: bloom{make([][8]uint64, max(1, poolBytes*9/16/64))}, fences: int(fences / 2)}
}

// tableBytes returns the memory of a table with poolBytes of entries, filter and fences.
func tableBytes(poolBytes int64) int64 { return poolBytes + blockBytes + 3*mergeBytes }

func (t *table) inMemory(first, second, mask uint64) (value uint64, found bool) {
	last := len(t.slots) - 1
	for i := int(first >> t.shift); t.slots[i].second != 0; i = (i + 1) & last {
		if e := &t.slots[i]; e.first == first && (e.second^second)&mask == 0 {
			return e.second, true
		}
	}
	return 0, false
}

func (t *table) inRuns(first, second, mask uint64) (value uint64, found bool, err error) {
	for i := range t.levels {
		if value, found, err = t.levels[i].find(t.file, &t.read, first, second, mask); found || err != nil {
			return value, found, err
		}
	}
	return 0, false, nil
}

// Where look found that an entry may be.
const inSlots, inRuns = 1, 2

// look sets where entries with these first words may be. None of its loads waits for another one, as they would if each
// entry were looked for in turn, and they rarely are in the cache.
func (t *table) look(entries []entry, where []uint64) {
	where = where[:len(entries)]
	for i := range entries {
		second := t.slots[entries[i].first>>t.shift].second
		where[i] = (second | -second) >> 63 * inSlots
	}
	if len(t.levels) == 0 {
		return
	}
	for i := range entries {
		where[i] |= t.runsHave.bit(entries[i].first) * inRuns
	}
}

// find returns the second word of an entry with the first word of e whose second word agrees with that of e in the
// bits of mask. where is what look says.
func (t *table) find(e entry, where, mask uint64) (value uint64, found bool, err error) {
	if where&inSlots != 0 {
		value, found = t.inMemory(e.first, e.second, mask)
	}
	if !found && where&inRuns != 0 {
		return t.inRuns(e.first, e.second, mask)
	}
	return value, found, nil
}

// get is look and find for one entry.
func (t *table) get(e entry, mask uint64) (value uint64, found bool, err error) {
	var where [1]uint64
	t.look([]entry{e}, where[:])
	return t.find(e, where[0], mask)
}

// put adds an entry unless get finds one. Its second word must not be 0.
func (t *table) put(e entry, mask uint64) (found bool, err error) {
	if _, found, err = t.get(e, mask); found || err != nil {
		return found, err
	}
	return false, t.add(e)
}

// add adds an entry that get does not find.
func (t *table) add(e entry) error {
	if t.used >= len(t.slots)/4*3 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	i, last := int(e.first>>t.shift), len(t.slots)-1
	for t.slots[i].second != 0 {
		i = (i + 1) & last
	}
	t.slots[i] = e
	t.used++
	return nil
}

// flush moves the entries in memory to the first level, and full levels to the next.
func (t *table) flush() error {
	moved := t.sorted()
	for _, e := range moved {
		t.runsHave.add(e.first)
	}
	into, err := t.merge(&memoryReader{rest: moved}, t.used, 0)
	if err != nil {
		return err
	}
	clear(t.slots)
	room := t.used
	t.used = 0
	for level := 0; ; level++ {
		t.levels[level] = into
		if room *= levelFactor; into.entries <= room {
			return nil
		}
		full := into
		if into, err = t.merge(full.entriesOf(t.file), full.entries, level+1); err != nil {
			return err
		}
		t.file.give(&full)
		t.levels[level] = run{}
	}
}

// sorted brings the entries in memory to the beginning of their room, in order. Each is near its place.
func (t *table) sorted() []entry {
	wrapped := 0 // entries at the beginning whose slots are at the end
	for t.slots[wrapped].second != 0 && int(t.slots[wrapped].first>>t.shift) > wrapped {
		wrapped++
	}
	turned := append(make([]entry, 0, wrapped), t.slots[:wrapped]...)
	n := 0
	insert := func(e entry) {
		i := n
		for ; i > 0 && e.before(t.slots[i-1]); i-- {
			t.slots[i] = t.slots[i-1]
		}
		t.slots[i] = e
		n++
	}
	for _, e := range t.slots[wrapped:] {
		if e.second != 0 {
			insert(e)
		}
	}
	for _, e := range turned {
		insert(e)
	}
	return t.slots[:n]
}

func (e entry) before(other entry) bool {
	return e.first < other.first || e.first == other.first && e.second < other.second
}

// merge writes the run that a level becomes when n entries in order join it.
func (t *table) merge(from blocks, n, level int) (run, error) {
	if level == len(t.levels) {
		t.levels = append(t.levels, run{})
	}
	old := &t.levels[level]
	total := n + old.entries
	w := newRunWriter(t.file, t.file.take(total), total, t.fences)
	if err := w.merge(from, old.entriesOf(t.file)); err != nil {
		return run{}, err
	}
	t.file.give(old)
	return w.finish()
}

// A bloom is a Bloom filter (1970) in lines of the cache, with three bits for an entry in one line.
type bloom struct{ lines [][8]uint64 }

// The line and the bits in it are bits of the word itself, the highest and the lowest: words in order are added
// in the order of the lines.
func (f *bloom) line(first uint64) *[8]uint64 {
	at, _ := bits.Mul64(first, uint64(len(f.lines)))
	return &f.lines[at]
}

func (f *bloom) add(first uint64) {
	line := f.line(first)
	line[first&7] |= 1 << (first >> 3 & 63)
	line[first>>9&7] |= 1 << (first >> 12 & 63)
	line[first>>18&7] |= 1 << (first >> 21 & 63)
}

// bit is 1 if an entry with this first word may have been added, else 0.
func (f *bloom) bit(first uint64) uint64 {
	line := f.line(first)
	return line[first&7] >> (first >> 3 & 63) & (line[first>>9&7] >> (first >> 12 & 63)) &
		(line[first>>18&7] >> (first >> 21 & 63)) & 1
}

// scratch is a file that is created when it is first written, and may be shared by tables.
type scratch struct {
	fs   shardfile.FS
	path string
	file shardfile.File // nil until then

	mutex sync.Mutex
	taken [][2]int64 // where runs lie, in order
}

// take returns the first place where n entries fit between the runs.
func (s *scratch) take(n int) (at int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	i, size := 0, int64(n)*entryBytes
	for ; i < len(s.taken) && s.taken[i][0] < at+size; i++ {
		at = s.taken[i][1]
	}
	s.taken = slices.Insert(s.taken, i, [2]int64{at, at + size})
	return at
}

// give gives the place of a run back.
func (s *scratch) give(r *run) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.taken = slices.DeleteFunc(s.taken, func(t [2]int64) bool { return r.entries > 0 && t[0] == r.at })
}

// open returns the file, which it creates the first time.
func (s *scratch) open() (shardfile.File, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.file == nil {
		const flag = os.O_RDWR | os.O_CREATE | os.O_EXCL
		f, err := s.fs.OpenFile(s.path, flag)
		if errors.Is(err, os.ErrExist) { // an earlier process left it, and it belongs to no checkpoint
			if err = s.fs.Remove(s.path); err == nil {
				f, err = s.fs.OpenFile(s.path, flag)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("create %s: %w", s.path, err)
		}
		s.file = f
	}
	return s.file, nil
}

func (s *scratch) writeAt(data []byte, at int64) error {
	file, err := s.open()
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(data, at); err != nil {
		return fmt.Errorf("write %s at byte %d: %w", s.path, at, err)
	}
	return nil
}

func (s *scratch) readAt(data []byte, at int64) error {
	if _, err := s.file.ReadAt(data, at); err != nil {
		return fmt.Errorf("read %s at byte %d: %w", s.path, at, err)
	}
	return nil
}

func (s *scratch) close() (err error) {
	if s.file != nil {
		err = s.file.Close()
		s.file = nil
	}
	return err
}

func (s *scratch) remove() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.close(), s.fs.Remove(s.path))
}

func putEntry(to []byte, e entry) {
	binary.LittleEndian.PutUint64(to, e.first)
	binary.LittleEndian.PutUint64(to[8:], e.second)
}

func getEntry(from []byte) entry {
	return entry{binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])}
}
