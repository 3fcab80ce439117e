package shard

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/zeebo/blake3"
)

// A split of more than MaxListed shards, which only a merge makes, has the list of its shards in a
// file of its own, so that the manifest stays small: a head and entries of equal length, which a
// reader finds by number, by row and by name without holding them. FORMAT.md describes the bytes.

// ListInfo stands for the shards of a split in the manifest.
type ListInfo struct {
	File   string `json:"file"`
	Shards int64  `json:"shards"`
	Bytes  int64  `json:"bytes"` // size of all shards
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
	case l.File != shardfile.ListName(s.Name) || l.Shards < 1 || l.Shards > shardfile.MaxList || l.Bytes < l.Shards:
		return fmt.Errorf("a list of %d shards, %d bytes, in %q", l.Shards, l.Bytes, l.File)
	case file == nil || file.Bytes != shardfile.ListHeadBytes+shardfile.ListEntryBytes*l.Shards:
		return fmt.Errorf("the list %s of %d shards is not among the files", l.File, l.Shards)
	}
	return nil
}

// listPage is what a reader holds of a page: its checksum, and where it begins.
type listPage struct {
	row         int64 // the first of its first shard
	part, index uint32
	crc         uint32
}

// shardList reads the list of a split's shards. It is safe for concurrent use.
type shardList struct {
	fs         shardfile.ReadFS
	path       string
	split      string
	n          int
	partitions int
	pages      []listPage

	mu    sync.Mutex
	cache map[int][]byte
	file  shardfile.File // nil once closed
}

// HeldBytes returns the maximum memory that an open Dataset takes for the entries of the split's shards
// and their states, where maxOpen of them may be open.
func (s *SplitInfo) HeldBytes(maxOpen int) int64 {
	const perShard = 512 // an entry with its strings, and the reader's own
	if l := s.List; l != nil {
		return (l.Shards/shardfile.ListPageEntries+1)*shardfile.ListPageRefs + (shardfile.ListCachedPages+1)*shardfile.ListPageBytes + listReadBytes +
			min(l.Shards, int64(maxOpen))*perShard
	}
	return int64(len(s.Shards)) * perShard
}

// listReadBytes is how much of a list is read at once when it is opened.
const listReadBytes = 16 * shardfile.ListPageBytes

// openShardList reads the list of a split once, checks its checksum and every entry, and keeps the
// file open.
func openShardList(fsys shardfile.ReadFS, dir string, m *Manifest, s *SplitInfo) (_ *shardList, err error) {
	l := &shardList{fs: fsys, path: shardfile.Join(dir, s.List.File), split: s.Name, n: int(s.List.Shards),
		partitions: m.Merged.Partitions, cache: map[int][]byte{},
		pages: make([]listPage, 0, s.List.Shards/shardfile.ListPageEntries+1)}
	if l.file, err = shardfile.OpenForReading(fsys, l.path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.file.Close())
		}
	}()
	listed := m.File(s.List.File)
	size, err := shardfile.FileSize(l.file)
	if err == nil {
		err = shardfile.CheckSize(l.path, size, listed.Bytes)
	}
	if err != nil {
		return nil, err
	}
	sum, err := l.scan(s)
	if err != nil {
		return nil, err
	}
	if sum != listed.BLAKE3 {
		return nil, shardfile.Corrupt(l.path, -1, "its BLAKE3 is %s, the manifest says %s", sum, listed.BLAKE3)
	}
	return l, nil
}

// scan reads the whole file, notes its pages and returns its BLAKE3.
func (l *shardList) scan(s *SplitInfo) (sum string, err error) {
	h := blake3.New()
	head := make([]byte, shardfile.ListHeadBytes)
	if err := shardfile.ReadFull(l.file, l.path, head, 0); err != nil {
		return "", err
	}
	h.Write(head) // never fails
	if string(head[:8]) != shardfile.ListMagic || binary.LittleEndian.Uint64(head[8:]) != uint64(l.n) {
		return "", shardfile.Corrupt(l.path, 0, "not the head of a list of %d shards", l.n)
	}
	t := listTotals{last: shardfile.PartName{Part: -1}}
	buf := make([]byte, min(listReadBytes, l.n*shardfile.ListEntryBytes))
	for at, end := int64(shardfile.ListHeadBytes), shardfile.ListHeadBytes+shardfile.ListEntryBytes*int64(l.n); at < end; {
		p := buf[:min(end-at, int64(len(buf)))]
		if err := shardfile.ReadFull(l.file, l.path, p, at); err != nil {
			return "", err
		}
		h.Write(p)
		for page := range slices.Chunk(p, shardfile.ListPageBytes) {
			first := shardfile.ListEntry(page).Name()
			l.pages = append(l.pages, listPage{row: t.rows, part: uint32(first.Part), index: uint32(first.Index),
				crc: crc32.ChecksumIEEE(page)})
			if err := t.add(l, page, at); err != nil {
				return "", err
			}
			at += int64(len(page))
		}
	}
	if t.rows != s.Examples || t.tokens != s.Tokens || t.bytes != s.List.Bytes {
		return "", shardfile.Corrupt(l.path, -1, "%d rows, %d tokens, %d bytes, the manifest says %d, %d, %d", t.rows, t.tokens,
			t.bytes, s.Examples, s.Tokens, s.List.Bytes)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// listTotals adds up the entries of a list as they are checked.
type listTotals struct {
	rows, tokens, bytes int64
	last                shardfile.PartName
}

// add checks the entries of a page, which begins at byte at of the file.
func (t *listTotals) add(l *shardList, page []byte, at int64) error {
	for raw := range slices.Chunk(page, shardfile.ListEntryBytes) {
		e := shardfile.ListEntry(raw)
		name, rows := e.Name(), e.End()-t.rows
		if name.Part >= l.partitions || name.Index > shardfile.MaxShardIndex || !name.After(t.last) || rows < 1 ||
			rows > e.Bytes() || e.Tokens() < rows || e.Tokens() > e.Bytes() || e.Bytes() > 2*shardfile.MaxShardBytes {
			return shardfile.Corrupt(l.path, at, "an entry of part %d, shard %d: %d rows, %d tokens, %d bytes", name.Part,
				name.Index, rows, e.Tokens(), e.Bytes())
		}
		t.rows, t.last = e.End(), name
		t.tokens += e.Tokens()
		t.bytes += e.Bytes()
		if t.tokens < 0 || t.bytes < 0 {
			return shardfile.Corrupt(l.path, at, "more tokens than can be counted")
		}
		at += shardfile.ListEntryBytes
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
	p := make([]byte, shardfile.ListEntryBytes*min(shardfile.ListPageEntries, l.n-i*shardfile.ListPageEntries))
	at := shardfile.ListHeadBytes + int64(i)*shardfile.ListPageBytes
	if err := shardfile.ReadFull(l.file, l.path, p, at); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(p) != l.pages[i].crc {
		return nil, shardfile.Corrupt(l.path, at, "it changed since it was opened")
	}
	if len(l.cache) >= shardfile.ListCachedPages {
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

// entryOf returns the k-th entry of a page.
func entryOf(page []byte, k int) shardfile.ListEntry {
	return shardfile.ListEntry(page[k*shardfile.ListEntryBytes:][:shardfile.ListEntryBytes])
}

func (l *shardList) at(i int) (ShardInfo, error) {
	page, err := l.page(i / shardfile.ListPageEntries)
	if err != nil {
		return ShardInfo{}, err
	}
	k := i % shardfile.ListPageEntries
	e, first := entryOf(page, k), l.pages[i/shardfile.ListPageEntries].row
	if k > 0 {
		first = entryOf(page, k-1).End()
	}
	name := e.Name()
	name.Split = shardfile.SplitIndex(l.split)
	return ShardInfo{Name: name.String(), Rows: e.End() - first, Tokens: e.Tokens(), Bytes: e.Bytes(),
		BLAKE3: hex.EncodeToString(e[:32]), Footer: hex.EncodeToString(e[32:64])}, nil
}

func (l *shardList) size(i int) (int64, error) {
	page, err := l.page(i / shardfile.ListPageEntries)
	if err != nil {
		return 0, err
	}
	return entryOf(page, i%shardfile.ListPageEntries).Bytes(), nil
}

func (l *shardList) find(row int64) (i int, first int64, err error) {
	p := sort.Search(len(l.pages), func(i int) bool { return l.pages[i].row > row }) - 1
	page, err := l.page(p)
	if err != nil {
		return 0, 0, err
	}
	k := sort.Search(len(page)/shardfile.ListEntryBytes, func(i int) bool { return entryOf(page, i).End() > row })
	first = l.pages[p].row
	if k > 0 {
		first = entryOf(page, k-1).End()
	}
	return p*shardfile.ListPageEntries + k, first, nil
}

func (l *shardList) has(n shardfile.PartName) (bool, error) {
	p := sort.Search(len(l.pages), func(i int) bool {
		return n.Before(shardfile.PartName{Part: int(l.pages[i].part), Index: int(l.pages[i].index)})
	}) - 1
	if p < 0 {
		return false, nil
	}
	page, err := l.page(p)
	if err != nil {
		return false, err
	}
	entries := len(page) / shardfile.ListEntryBytes
	k := sort.Search(entries, func(i int) bool { return !entryOf(page, i).Name().Before(n) })
	if k == entries {
		return false, nil
	}
	have := entryOf(page, k).Name()
	return have.Part == n.Part && have.Index == n.Index && have.Cut == n.Cut, nil
}
