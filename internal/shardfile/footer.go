package shardfile

import (
	"encoding/binary"
	"encoding/hex"
	"io/fs"

	"github.com/zeebo/blake3"
)

// Entry is what the manifest says of a shard, as far as its footer shows it.
type Entry struct {
	Bytes, Rows int64
	Footer      string // BLAKE3, in hex
}

// ReadBlocks compares size, head, footer and rows of a shard with its entry in the manifest, and
// returns its record batches.
func (l *Layout) ReadBlocks(f File, path string, want Entry) ([]Block, error) {
	size, err := FileSize(f)
	if err != nil {
		return nil, err
	}
	if err := CheckSize(path, size, want.Bytes); err != nil {
		return nil, err
	}
	head := make([]byte, len(l.Head))
	if err := ReadFull(f, path, head, 0); err != nil {
		return nil, err
	}
	if string(head) != string(l.Head) {
		return nil, Corrupt(path, 0, "not the head of a shard with the manifest's schema")
	}
	var last [FooterTailBytes]byte
	if err := ReadFull(f, path, last[:], size-FooterTailBytes); err != nil {
		return nil, err
	}
	footer := int64(uint32(last[0]) | uint32(last[1])<<8 | uint32(last[2])<<16 | uint32(last[3])<<24)
	dataEnd := size - FooterTailBytes - footer - int64(len(EndOfStream))
	// A batch has at least one row, and takes more of the file than of the footer. That limits what
	// a forged length can claim.
	most := min(want.Rows, size/l.MetaLen)*footerBytes + int64(l.noBlocks)
	if string(last[4:]) != arrowMagic || footer > most || dataEnd < int64(len(l.Head)) {
		return nil, Corrupt(path, size-FooterTailBytes, "not the end of a shard")
	}
	tail := make([]byte, size-dataEnd)
	if err := ReadFull(f, path, tail, dataEnd); err != nil {
		return nil, err
	}
	sum := blake3.Sum256(tail)
	if hex.EncodeToString(sum[:]) != want.Footer {
		return nil, Corrupt(path, dataEnd, "its footer is not the one that the manifest vouches for")
	}
	blocks, _, ok := l.ReadFooter(tail, dataEnd)
	if !ok {
		return nil, Corrupt(path, dataEnd, "footer differs from what the manifest's schema makes")
	}
	rows := int64(0)
	for _, k := range blocks {
		rows += int64(k.Rows)
	}
	if rows != want.Rows {
		return nil, Corrupt(path, -1, "%d rows, want %d", rows, want.Rows)
	}
	return blocks, nil
}

// CheckSize compares the size of a file with the one that the manifest gives.
func CheckSize(path string, size, want int64) error {
	if size < want {
		return Truncated(path, size, want)
	}
	if size > want {
		return Corrupt(path, -1, "size %d bytes, want %d", size, want)
	}
	return nil
}

// ReadBatchMeta reads the places of a batch from its message into sc.places. It accepts only what
// AppendBatchMeta makes.
func (l *Layout) ReadBatchMeta(sc *BatchScratch, raw []byte, rows, body int64) bool {
	sc.Values = sc.Values[:0]
	node := l.nodesAt
	for _, c := range l.Cols {
		if c.List {
			node += 16
		}
		n := int64(binary.LittleEndian.Uint64(raw[node:]))
		if n < 0 || n > 8*body || !c.List && n != rows {
			return false
		}
		sc.Values = append(sc.Values, n)
		node += 16
	}
	var planned int64
	sc.Places, planned = l.Place(sc.Places[:0], rows, sc.Values)
	sc.Meta = l.AppendBatchMeta(sc.Meta[:0], rows, sc.Values, sc.Places, body)
	return planned == body && string(sc.Meta) == string(raw)
}

// BatchScratch is reused from batch to batch.
type BatchScratch struct {
	Meta   []byte
	Values []int64
	Places []ColumnPlace
}

// FileID identifies a file and its state, to recognize it when it is opened again.
type FileID struct {
	device, inode uint64
	modified      int64
}

// IdentityOf is idOf, also for files of other file systems that number their versions.
func IdentityOf(info fs.FileInfo) FileID {
	if v, ok := info.(Versioned); ok {
		return FileID{inode: v.Version()}
	}
	return idOf(info)
}

var Zeros [BufferAlign]byte
