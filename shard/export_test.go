package shard

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/zeebo/blake3"
)

// putter is the part of shardtest.FS that writes behind a build's back.
type putter interface {
	FS
	Put(name string, data []byte)
}

// PutUint16s writes ids as uint16 and returns the largest.
var PutUint16s = putUint16s

// Reseal changes a manifest and gives it, and its entries of shards, checksums and sizes that are
// right.
func Reseal(fsys putter, dir string, change func(m *Manifest)) {
	m, err := ReadManifest(fsys, dir)
	if err != nil {
		panic(err)
	}
	for i := range m.Splits {
		for j := range m.Splits[i].Shards {
			sh := &m.Splits[i].Shards[j]
			f, err := fsys.OpenFile(filepath.Join(dir, sh.Name), os.O_RDONLY)
			if err != nil {
				panic(err)
			}
			size, _ := fileSize(f)
			data := make([]byte, size)
			f.ReadAt(data, 0)
			f.Close()
			data = newLayout(m.Schema).resum(data)
			fsys.Put(filepath.Join(dir, sh.Name), data)
			sum := blake3.Sum256(data)
			sh.Bytes, sh.BLAKE3 = size, hex.EncodeToString(sum[:])
			sum = blake3.Sum256(data[dataEnd(data):])
			sh.Footer = hex.EncodeToString(sum[:])
		}
	}
	change(m)
	data, err := m.encode()
	if err != nil {
		panic(err)
	}
	fsys.Put(filepath.Join(dir, ManifestName), data)
}

// dataEnd is where the footer of a shard begins, or 0 where it does not say so.
func dataEnd(data []byte) int64 {
	if int64(len(data)) < footerTailBytes {
		return 0
	}
	n := int64(binary.LittleEndian.Uint32(data[int64(len(data))-footerTailBytes:]))
	return max(0, int64(len(data))-footerTailBytes-n-int64(len(endOfStream)))
}

// resum puts the right checksums of its record batches and content into a shard's footer, where
// that can be read.
func (l *layout) resum(data []byte) []byte {
	end := dataEnd(data)
	blocks, _, ok := l.readFooter(data[end:], end)
	if !ok {
		return data
	}
	pos := int64(len(l.head))
	for i := range blocks {
		next := pos + l.metaLen + blocks[i].body
		blocks[i].crc = crc32.ChecksumIEEE(data[pos:next])
		pos = next
	}
	return append(slices.Clone(data[:end]), l.footer(blocks, blake3.Sum256(data[:end]))...)
}

// SealManifest appends the right seal to body.
func SealManifest(body []byte) []byte { return append(body[:len(body):len(body)], sealOf(body)...) }

// SealBytes is the length of a seal.
const SealBytes = sealBytes

// CheckpointPath is where a folder's checkpoint is.
func CheckpointPath(dir string) string { return filepath.Join(dir, checkpointName) }

// Written returns the rows and tokens (of input_ids) appended to a split so far, including those
// before a resume; 0, 0 for an unknown split.
func (b *Builder) Written(split string) (rows, tokens int64) {
	if i := splitIndex(split); i >= 0 {
		rows, tokens = b.splits[i].stats.rows, b.splits[i].stats.tokens
	}
	return rows, tokens
}

// CheckAhead compares the record batches of spans.
func CheckAhead(r *SplitReader, spans []Span) { r.checkAhead(spans) }

// Unchecked returns how many record batches of open shards were not compared with their checksums.
func Unchecked(r *SplitReader) (n int) {
	for i := range r.states.all {
		n += int(r.states.all[i].checked.todo.Load())
	}
	return n
}
