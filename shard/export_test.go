package shard

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/zeebo/blake3"
)

// putter is the part of shardtest.FS that writes behind a build's back.
type putter interface {
	shardfile.FS
	Put(name string, data []byte)
}

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
			size, _ := shardfile.FileSize(f)
			data := make([]byte, size)
			f.ReadAt(data, 0)
			f.Close()
			data = resum(shardfile.NewLayout(shardfile.Shape(m.Schema)), data)
			fsys.Put(filepath.Join(dir, sh.Name), data)
			sum := blake3.Sum256(data)
			sh.Bytes, sh.BLAKE3 = size, hex.EncodeToString(sum[:])
			sum = blake3.Sum256(data[dataEnd(data):])
			sh.Footer = hex.EncodeToString(sum[:])
		}
	}
	change(m)
	data, err := m.Encode()
	if err != nil {
		panic(err)
	}
	fsys.Put(filepath.Join(dir, shardfile.ManifestName), data)
}

// dataEnd is where the footer of a shard begins, or 0 where it does not say so.
func dataEnd(data []byte) int64 {
	if int64(len(data)) < shardfile.FooterTailBytes {
		return 0
	}
	n := int64(binary.LittleEndian.Uint32(data[int64(len(data))-shardfile.FooterTailBytes:]))
	return max(0, int64(len(data))-shardfile.FooterTailBytes-n-int64(len(shardfile.EndOfStream)))
}

// resum puts the right checksums of its record batches and content into a shard's footer, where
// that can be read.
func resum(l *shardfile.Layout, data []byte) []byte {
	end := dataEnd(data)
	blocks, _, ok := l.ReadFooter(data[end:], end)
	if !ok {
		return data
	}
	pos := int64(len(l.Head))
	for i := range blocks {
		next := pos + l.MetaLen + blocks[i].Body
		blocks[i].Crc = crc32.ChecksumIEEE(data[pos:next])
		pos = next
	}
	return append(slices.Clone(data[:end]), l.Footer(blocks, blake3.Sum256(data[:end]))...)
}

// SealManifest appends the right seal to body.
func SealManifest(body []byte) []byte {
	sum := blake3.Sum256(body)
	return fmt.Appendf(body[:len(body):len(body)], "%s%x%s", shardfile.SealBefore, sum, shardfile.SealAfter)
}

// SealBytes is the length of a seal.
const SealBytes = shardfile.SealBytes

// Checkers returns how many goroutines are to read spans.
func Checkers(r *Split, spans []Span) int { return r.checkers(spans) }

// Unchecked returns how many record batches of open shards were not compared with their checksums.
func Unchecked(r *Split) (n int) {
	for i := range r.states.all {
		n += int(r.states.all[i].checked.todo.Load())
	}
	return n
}
