package shard

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/zeebo/blake3"
)

// A split of more than maxListed shards, which only a merge makes, has the list of its shards in a
// file of its own, so that the manifest stays small: a head and entries of equal length, which a
// reader finds by number, by row and by name without holding them. FORMAT.md describes the bytes.

const (
	listMagic      = "DSLSHRD\x01"
	listHeadBytes  = 16 // the magic, the number of entries
	listEntryBytes = 96
	listCutBit     = 1 << 31 // of an entry's number
	// listPageEntries is how many entries are read at once. A reader holds a few numbers for each page.
	listPageEntries = 128
	listPageBytes   = listPageEntries * listEntryBytes
	listPageRefs    = 24 // bytes of a listPage
	// listCachedPages is how many pages a reader keeps.
	listCachedPages = 32
	// maxListed is how many shards of a split the manifest itself lists at most.
	maxListed = maxShardIndex + 1
	// maxList is the maximum number of shards of a split: a Span counts them in 32 bits.
	maxList = 1<<31 - 1
)

// ListInfo stands for the shards of a split in the manifest.
type ListInfo struct {
	File   string `json:"file"`
	Shards int64  `json:"shards"`
	Bytes  int64  `json:"bytes"` // of all shards
}

// NumShards returns the number of shards, wherever they are listed.
func (s *SplitInfo) NumShards() int {
	if s.List != nil {
		return int(s.List.Shards)
	}
	return len(s.Shards)
}

// ShardBytes returns the size of all shards.
func (s *SplitInfo) ShardBytes() (n int64) {
	if s.List != nil {
		return s.List.Bytes
	}
	for i := range s.Shards {
		n += s.Shards[i].Bytes
	}
	return n
}

// validateList checks a split's entry for a list against that of the file.
func (m *Manifest) validateList(s *SplitInfo) error {
	l := s.List
	file := m.File(l.File)
	switch {
	case m.Merged == nil || len(s.Shards) > 0:
		return errors.New("a list of shards where there may be none")
	case l.File != ListName(s.Name) || l.Shards < 1 || l.Shards > maxList || l.Bytes < l.Shards:
		return fmt.Errorf("a list of %d shards, %d bytes, in %q", l.Shards, l.Bytes, l.File)
	case file == nil || file.Bytes != listHeadBytes+listEntryBytes*l.Shards:
		return fmt.Errorf("the list %s of %d shards is not among the files", l.File, l.Shards)
	}
	return nil
}

// listWriter writes the entries of a list.
type listWriter struct {
	w     *bufio.Writer
	rows  int64
	entry [listEntryBytes]byte
}

func newListWriter(w io.Writer, shards int64) (*listWriter, error) {
	l := &listWriter{w: bufio.NewWriterSize(w, listPageBytes)}
	head := binary.LittleEndian.AppendUint64([]byte(listMagic), uint64(shards))
	_, err := l.w.Write(head)
	return l, err
}

func (l *listWriter) add(info *ShardInfo) error {
	name, ok := parsePartName(info.Name)
	content, err := hex.DecodeString(info.BLAKE3)
	footer, footerErr := hex.DecodeString(info.Footer)
	if err := errors.Join(err, footerErr); err != nil || !ok || len(content) != 32 || len(footer) != 32 {
		return fmt.Errorf("list shard %s: %w", info.Name, ErrCorrupt)
	}
	l.rows += info.Rows
	number := uint32(name.index)
	if name.cut {
		number |= listCutBit
	}
	e := l.entry[:0]
	e = append(append(e, content...), footer...)
	e = binary.LittleEndian.AppendUint64(e, uint64(l.rows))
	e = binary.LittleEndian.AppendUint64(e, uint64(info.Tokens))
	e = binary.LittleEndian.AppendUint64(e, uint64(info.Bytes))
	e = binary.LittleEndian.AppendUint32(e, uint32(name.part))
	e = binary.LittleEndian.AppendUint32(e, number)
	_, err = l.w.Write(e)
	return err
}

// listEntry is an entry as it is in the file.
type listEntry []byte

func (e listEntry) end() int64    { return int64(binary.LittleEndian.Uint64(e[64:])) }
func (e listEntry) tokens() int64 { return int64(binary.LittleEndian.Uint64(e[72:])) }
func (e listEntry) bytes() int64  { return int64(binary.LittleEndian.Uint64(e[80:])) }

func (e listEntry) name() partName {
	number := binary.LittleEndian.Uint32(e[92:])
	return partName{part: int(binary.LittleEndian.Uint32(e[88:])), index: int(number &^ listCutBit),
		cut: number&listCutBit != 0}
}

// listPage is what a reader holds of a page: its checksum, and where it begins.
type listPage struct {
	row         int64 // the first of its first shard
	part, index uint32
	crc         uint32
}

// shardList reads the list of a split's shards. It is safe for concurrent use.
type shardList struct {
	fs         FS
	path       string
	split      string
	n          int
	partitions int
	pages      []listPage

	mu    sync.Mutex
	cache map[int][]byte
	file  File // nil once closed
}

// HeldBytes returns the maximum memory that an open Dataset takes for the entries of the split's shards
// and their states, where maxOpen of them may be open.
func (s *SplitInfo) HeldBytes(maxOpen int) int64 {
	const perShard = 512 // an entry with its strings, and the reader's own
	if l := s.List; l != nil {
		return (l.Shards/listPageEntries+1)*listPageRefs + (listCachedPages+1)*listPageBytes + listReadBytes +
			min(l.Shards, int64(maxOpen))*perShard
	}
	return int64(len(s.Shards)) * perShard
}

// listReadBytes is how much of a list is read at once when it is opened.
const listReadBytes = 16 * listPageBytes

// openShardList reads the list of a split once, checks its checksum and every entry, and keeps the
// file open.
func openShardList(fsys FS, dir string, m *Manifest, s *SplitInfo) (_ *shardList, err error) {
	l := &shardList{fs: fsys, path: Join(dir, s.List.File), split: s.Name, n: int(s.List.Shards),
		partitions: m.Merged.Partitions, cache: map[int][]byte{},
		pages: make([]listPage, 0, s.List.Shards/listPageEntries+1)}
	var size int64
	l.file, err = openForReading(fsys, l.path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.file.Close())
		}
	}()
	listed := m.File(s.List.File)
	if size, err = fileSize(l.file); err != nil {
		return nil, err
	}
	if err := (&ShardInfo{Bytes: listed.Bytes}).checkSize(l.path, size); err != nil {
		return nil, err
	}
	sum, err := l.scan(s)
	if err != nil {
		return nil, err
	}
	if sum != listed.BLAKE3 {
		return nil, corrupt(l.path, -1, "its BLAKE3 is %s, the manifest says %s", sum, listed.BLAKE3)
	}
	return l, nil
}

// scan reads the whole file, notes its pages and returns its BLAKE3.
func (l *shardList) scan(s *SplitInfo) (sum string, err error) {
	h := blake3.New()
	head := make([]byte, listHeadBytes)
	if err := readFull(l.file, l.path, head, 0); err != nil {
		return "", err
	}
	h.Write(head) // never fails
	if string(head[:8]) != listMagic || binary.LittleEndian.Uint64(head[8:]) != uint64(l.n) {
		return "", corrupt(l.path, 0, "not the head of a list of %d shards", l.n)
	}
	t := listTotals{last: partName{part: -1}}
	buf := make([]byte, min(listReadBytes, l.n*listEntryBytes))
	for at, end := int64(listHeadBytes), listHeadBytes+listEntryBytes*int64(l.n); at < end; {
		p := buf[:min(end-at, int64(len(buf)))]
		if err := readFull(l.file, l.path, p, at); err != nil {
			return "", err
		}
		h.Write(p)
		for page := range slices.Chunk(p, listPageBytes) {
			first := listEntry(page).name()
			l.pages = append(l.pages, listPage{row: t.rows, part: uint32(first.part), index: uint32(first.index),
				crc: crc32.ChecksumIEEE(page)})
			if err := t.add(l, page, at); err != nil {
				return "", err
			}
			at += int64(len(page))
		}
	}
	if t.rows != s.Examples || t.tokens != s.Tokens || t.bytes != s.List.Bytes {
		return "", corrupt(l.path, -1, "%d rows, %d tokens, %d bytes, the manifest says %d, %d, %d", t.rows, t.tokens,
			t.bytes, s.Examples, s.Tokens, s.List.Bytes)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// listTotals adds up the entries of a list as they are checked.
type listTotals struct {
	rows, tokens, bytes int64
	last                partName
}

// add checks the entries of a page, which begins at byte at of the file.
func (t *listTotals) add(l *shardList, page []byte, at int64) error {
	for raw := range slices.Chunk(page, listEntryBytes) {
		e := listEntry(raw)
		name, rows := e.name(), e.end()-t.rows
		if name.part >= l.partitions || name.index > maxShardIndex || !name.after(t.last) || rows < 1 ||
			rows > e.bytes() || e.tokens() < rows || e.tokens() > e.bytes() || e.bytes() > 2*maxShardBytes {
			return corrupt(l.path, at, "an entry of part %d, shard %d: %d rows, %d tokens, %d bytes", name.part,
				name.index, rows, e.tokens(), e.bytes())
		}
		t.rows, t.last = e.end(), name
		t.tokens += e.tokens()
		t.bytes += e.bytes()
		if t.tokens < 0 || t.bytes < 0 {
			return corrupt(l.path, at, "more tokens than can be counted")
		}
		at += listEntryBytes
	}
	return nil
}

// page returns the entries of a page.
func (l *shardList) page(i int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.cache[i]; p != nil {
		return p, nil
	}
	if l.file == nil {
		return nil, fmt.Errorf("read %s: %w", l.path, ErrClosed)
	}
	p := make([]byte, listEntryBytes*min(listPageEntries, l.n-i*listPageEntries))
	at := listHeadBytes + int64(i)*listPageBytes
	if err := readFull(l.file, l.path, p, at); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(p) != l.pages[i].crc {
		return nil, corrupt(l.path, at, "it changed since it was opened")
	}
	if len(l.cache) >= listCachedPages {
		for old := range l.cache { // any: no page is better than another
			delete(l.cache, old)
			break
		}
	}
	l.cache[i] = p
	return p, nil
}

func (l *shardList) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

func (l *shardList) len() int { return l.n }

func (l *shardList) at(i int) (ShardInfo, error) {
	page, err := l.page(i / listPageEntries)
	if err != nil {
		return ShardInfo{}, err
	}
	return l.info(page, i), nil
}

// info returns the i-th shard, which a page holds.
func (l *shardList) info(page []byte, i int) ShardInfo {
	e := listEntry(page[i%listPageEntries*listEntryBytes:][:listEntryBytes])
	first := l.pages[i/listPageEntries].row
	if k := i % listPageEntries; k > 0 {
		first = listEntry(page[(k-1)*listEntryBytes:]).end()
	}
	name, part := e.name(), Part{Of: l.partitions}
	part.Number = name.part
	s := ShardInfo{Name: part.ShardName(l.split, name.index), Rows: e.end() - first, Tokens: e.tokens(),
		Bytes: e.bytes(), BLAKE3: hex.EncodeToString(e[:32]), Footer: hex.EncodeToString(e[32:64])}
	if name.cut {
		s.Name = part.cutShardName(l.split, name.index)
	}
	return s
}

func (l *shardList) size(i int) (int64, error) {
	page, err := l.page(i / listPageEntries)
	if err != nil {
		return 0, err
	}
	return listEntry(page[i%listPageEntries*listEntryBytes:]).bytes(), nil
}

func (l *shardList) find(row int64) (i int, first int64, err error) {
	p := sort.Search(len(l.pages), func(i int) bool { return l.pages[i].row > row }) - 1
	page, err := l.page(p)
	if err != nil {
		return 0, 0, err
	}
	k := sort.Search(len(page)/listEntryBytes,
		func(i int) bool { return listEntry(page[i*listEntryBytes:]).end() > row })
	first = l.pages[p].row
	if k > 0 {
		first = listEntry(page[(k-1)*listEntryBytes:]).end()
	}
	return p*listPageEntries + k, first, nil
}

func (l *shardList) has(n partName) (bool, error) {
	p := sort.Search(len(l.pages), func(i int) bool {
		return n.before(partName{part: int(l.pages[i].part), index: int(l.pages[i].index)})
	}) - 1
	if p < 0 {
		return false, nil
	}
	page, err := l.page(p)
	if err != nil {
		return false, err
	}
	entries := len(page) / listEntryBytes
	k := sort.Search(entries, func(i int) bool { return !listEntry(page[i*listEntryBytes:]).name().before(n) })
	if k == entries {
		return false, nil
	}
	have := listEntry(page[k*listEntryBytes:]).name()
	return have.part == n.part && have.index == n.index && have.cut == n.cut, nil
}

// before reports whether a shard of this name may come before one of the other in a merged manifest.
func (n partName) before(other partName) bool { return other.after(n) }
