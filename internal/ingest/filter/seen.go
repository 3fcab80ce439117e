package filter

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"
)

// Dedup selects which copies of documents are dropped.
type Dedup string

const (
	None  Dedup = "none"  // all copies stay
	Exact Dedup = "exact" // equal texts
	Near  Dedup = "near"  // texts with nearly the same words
)

// Dedups lists all values of Dedup.
var Dedups = []Dedup{None, Exact, Near}

// KeyBytes returns the length in bytes of the keys by which a Seen compares documents.
func (d Dedup) KeyBytes() int {
	switch d {
	case Exact:
		return hashBytes
	case Near:
		return sketchBytes
	}
	return 0
}

// hashBytes is the length of an exact key, the XXH3-128 of the text.
const hashBytes = 16

// entries appends the table's entries of a key, without its number.
func (d Dedup) entries(dst []entry, key []byte) []entry {
	n := 1
	if d == Near {
		n = bands
	}
	for band := range n {
		dst = append(dst, d.entry(key, band))
	}
	return dst
}

// entry returns the table's entry of a key, without its number; of a near one that of a band.
func (d Dedup) entry(key []byte, band int) entry {
	if d == Near {
		return bandEntry(key, band)
	}
	return exactEntry(key)
}

// exactEntry returns the table's entry of an exact key: 127 bits of it.
func exactEntry(key []byte) entry {
	return entry{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:]) | 1}
}

// mask has the bits of an entry's second word that are not its number.
func (d Dedup) mask() uint64 {
	if d == Near {
		return 0
	}
	return ^uint64(0)
}

// numbered returns an entry as the table has it for a document, by its number+1.
func (d Dedup) numbered(e entry, number uint64) entry {
	if d == Near {
		e.second = number
	}
	return e
}

// appendHash appends the exact key of a text, or of a prompt and its target.
func appendHash(dst, prompt, target []byte) []byte {
	h := xxh3.Hash128(prompt)
	if len(target) > 0 {
		t := xxh3.Hash128Seed(target, h.Lo)
		h.Lo, h.Hi = t.Lo, t.Hi^h.Hi
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, h.Hi), h.Lo)
}

// A Mark is the extent of a Seen's log at some moment, for a checkpoint.
type Mark struct {
	Bytes int64  `json:"bytes"`
	Sum   uint64 `json:"sum"` // XXH3 of these bytes
}

// A Seen remembers the keys of documents and recognizes repeated ones. It belongs to one goroutine.
//
// The keys are in a durable log in the order in which they came, which a restart cuts at a Mark. A
// table finds them; Restore rebuilds it.
type Seen struct {
	kind  Dedup
	log   scratch
	size  int64  // bytes of the log, with what is in tail
	tail  []byte // its end, not yet written
	dirty bool   // written, not synced
	named bool   // its name is durable
	hash  *xxh3.Hasher
	read  [sketchBytes]byte
	base  []keyFile // keys of earlier builds, before the log
	count uint64    // keys in base

	scratch *scratch
	table   *table  // nil where there are lanes
	lanes   []*lane // each with a table
	running sync.WaitGroup
	coming  [][]byte // keys that Add is given next, after those of the batch
	batch   [][]byte // keys that the lanes have looked for
	at      int      // those that were added
	kept    []uint64 // numbers+1 of those that stay, 0 for others
	before  []uint64 // kept of the last batch
}

// tailBytes is how much of the log is buffered before it is written.
const tailBytes = 64 << 10

// minPool is the smallest number of bytes for a table.
const minPool = 256 << 10

// PoolBytes returns the least memory for the table of a Seen under a memory cap. It affects only
// speed.
func PoolBytes(capBytes int64) int64 { return max(minPool, capBytes/16) }

// SeenBytes returns the memory of a Seen.
func SeenBytes(poolBytes int64) int64 { return tableBytes(poolBytes) + 3*tailBytes }

// roomOfTables returns what the tables may take of a pool.
func roomOfTables(poolBytes int64) int64 {
	if poolBytes >= lanesFrom {
		poolBytes -= batchBytes + (bands-1)*tableBytes(0)
	}
	return poolBytes
}

// NewSeen returns an empty Seen. Its log is the file logPath, and its table uses tablePath while it
// is open.
func NewSeen(kind Dedup, fsys shardfile.FS, logPath, tablePath string, poolBytes int64) *Seen {
	file := &scratch{fs: fsys, path: tablePath}
	s := &Seen{kind: kind, log: scratch{fs: fsys, path: logPath}, tail: make([]byte, 0, tailBytes), hash: xxh3.New(),
		scratch: file, lanes: newLanes(kind, file, roomOfTables(poolBytes))}
	if s.lanes == nil {
		s.table = newTable(file, roomOfTables(poolBytes))
	}
	for _, l := range s.lanes {
		s.running.Go(l.run)
	}
	return s
}

// Restore restores the state at a Mark and drops what the log holds beyond it.
func (s *Seen) Restore(m Mark) error {
	if m.Bytes == 0 {
		return nil // a file of that name belongs to no checkpoint and is replaced
	}
	f, err := s.log.fs.OpenFile(s.log.path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("open the hashes of earlier documents: %w", err)
	}
	s.log.file, s.named = f, true
	if err := s.load(f, s.log.path, m.Bytes, s.hash); err != nil {
		return err
	}
	if s.hash.Sum64() != m.Sum {
		return &shardfile.FileError{File: s.log.path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: its first %d bytes are not those of the checkpoint", shard.ErrCorrupt, m.Bytes)}
	}
	if err := f.Truncate(m.Bytes); err != nil {
		return fmt.Errorf("cut %s to %d bytes: %w", s.log.path, m.Bytes, err)
	}
	return nil
}

// load adds the keys in the first n bytes of a file.
func (s *Seen) load(f io.ReaderAt, path string, n int64, sum io.Writer) error {
	key := int64(s.kind.KeyBytes())
	buf := make([]byte, tailBytes/key*key)
	for at := int64(0); at < n; {
		part := buf[:min(int64(len(buf)), n-at)]
		if m, err := f.ReadAt(part, at); m < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = shard.ErrTruncated
			}
			return &shardfile.FileError{File: path, Offset: at + int64(m), Row: -1, Cause: err}
		}
		if _, err := sum.Write(part); err != nil {
			return err
		}
		for k := int64(0); k+key <= int64(len(part)); k += key {
			if err := s.index(part[k:k+key], uint64((s.size+k)/key)+s.count); err != nil {
				return err
			}
		}
		at, s.size = at+int64(len(part)), s.size+int64(len(part))
	}
	return nil
}

// A keyFile is a file of keys that a finished build left.
type keyFile struct {
	path  string
	file  shardfile.File
	first uint64 // the number of its first key
}

// Load adds the keys that a finished build stored in a file of a dataset. It must be called before
// Restore and Add.
func (s *Seen) Load(path string, info shard.FileInfo) (err error) {
	key := int64(s.kind.KeyBytes())
	f, err := s.log.fs.OpenFile(path, 0)
	if err != nil {
		return fmt.Errorf("open the hashes of earlier documents: %w", err)
	}
	s.base = append(s.base, keyFile{path, f, s.count})
	h := blake3.New()
	if err := s.load(f, path, info.Bytes, h); err != nil {
		return err
	}
	if s.size%key != 0 || hex.EncodeToString(h.Sum(nil)) != info.BLAKE3 {
		return &shardfile.FileError{File: path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: it is not the file that the manifest lists", shard.ErrCorrupt)}
	}
	s.count, s.size = s.count+uint64(s.size/key), 0
	return nil
}

// key reads the key with the given number. It is valid until the next call.
func (s *Seen) key(number uint64) ([]byte, error) {
	out := s.read[:s.kind.KeyBytes()]
	if number >= s.count {
		at := int64(number-s.count) * int64(len(out))
		if written := s.size - int64(len(s.tail)); at >= written {
			return s.tail[at-written:][:len(out)], nil
		}
		return out, s.log.readAt(out, at)
	}
	i := len(s.base) - 1
	for s.base[i].first > number {
		i--
	}
	if _, err := s.base[i].file.ReadAt(out, int64(number-s.base[i].first)*int64(len(out))); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.base[i].path, err)
	}
	return out, nil
}

// index adds a key with its number to the tables.
func (s *Seen) index(key []byte, number uint64) error {
	var room [bands]entry
	for i, e := range s.kind.entries(room[:0], key) {
		t := s.table
		if s.lanes != nil && s.kind == Near {
			t = s.lanes[i].table
		} else if s.lanes != nil {
			t = s.lanes[laneOfHash(e)].table
		}
		if _, err := t.put(s.kind.numbered(e, number+1), s.kind.mask()); err != nil {
			return err
		}
	}
	return nil
}

// Add reports whether the document with a key is a copy of an earlier one. If not, it remembers the
// key.
func (s *Seen) Add(key []byte) (isCopy bool, err error) {
	number := s.count + uint64(s.size)/uint64(len(key)) + 1
	if s.lanes == nil {
		isCopy, err = s.addAlone(key, number)
	} else {
		isCopy, err = s.addBeside(key, number)
	}
	if isCopy || err != nil {
		return isCopy, err
	}
	return false, s.Keep(key)
}

// addAlone finds the entries of a key, compares it with the documents that they lead to, and else adds those that are
// new: while their places in the table are in the cache.
func (s *Seen) addAlone(key []byte, number uint64) (isCopy bool, err error) {
	var room [bands]entry
	var found [bands]uint64 // second words of entries, 0 for none
	entries, mask := s.kind.entries(room[:0], key), s.kind.mask()
	s.table.look(entries, found[:])
	for i, e := range entries {
		has := false
		if found[i], has, err = s.table.find(e, found[i], mask); err != nil {
			return false, err
		}
		if !has || slices.Contains(found[:i], found[i]) {
			continue
		}
		if isCopy, err = s.alike(key, found[i]-1); isCopy || err != nil {
			return isCopy, err
		}
	}
	for i, e := range entries {
		if found[i] == 0 {
			if err := s.table.add(s.kind.numbered(e, number)); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// alike reports whether a document with a key is a copy of an earlier one with an equal entry and the given number.
func (s *Seen) alike(key []byte, number uint64) (bool, error) {
	if s.kind == Exact {
		return true, nil
	}
	other, err := s.key(number)
	return err == nil && agreeing(key, other) >= nearMatches, err
}

// Keep adds a key to the log alone: who calls it knows from elsewhere which documents are copies.
func (s *Seen) Keep(key []byte) error {
	if len(s.tail)+len(key) > cap(s.tail) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.tail = append(s.tail, key...)
	s.size += int64(len(key))
	_, err := s.hash.Write(key)
	return err
}

func (s *Seen) flush() error {
	if len(s.tail) == 0 {
		return nil
	}
	if err := s.log.writeAt(s.tail, s.size-int64(len(s.tail))); err != nil {
		return err
	}
	s.tail, s.dirty = s.tail[:0], true
	return nil
}

// Sync makes the log durable and returns its Mark.
func (s *Seen) Sync() (Mark, error) {
	if err := s.flush(); err != nil {
		return Mark{}, err
	}
	if s.dirty {
		if err := s.log.file.Sync(); err != nil {
			return Mark{}, fmt.Errorf("sync %s: %w", s.log.path, err)
		}
		s.dirty = false
	}
	if s.log.file != nil && !s.named {
		if err := s.log.fs.SyncDir(filepath.Dir(s.log.path)); err != nil {
			return Mark{}, fmt.Errorf("sync folder %s: %w", filepath.Dir(s.log.path), err)
		}
		s.named = true
	}
	return Mark{Bytes: s.size, Sum: s.hash.Sum64()}, nil
}

// Keys returns a reader of the whole log. It is empty if nothing was added.
func (s *Seen) Keys() (io.Reader, error) {
	if err := s.flush(); err != nil || s.log.file == nil {
		return io.LimitReader(nil, 0), err
	}
	return io.NewSectionReader(s.log.file, 0, s.size), nil
}

// Close closes the log and removes the table.
func (s *Seen) Close() error {
	for _, l := range s.lanes {
		close(l.steps)
	}
	s.running.Wait()
	errs := []error{s.scratch.remove(), s.log.close()}
	for _, b := range s.base {
		errs = append(errs, b.file.Close())
	}
	s.base = nil
	return errors.Join(errs...)
}
