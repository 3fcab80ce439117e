package shardfile

import "encoding/binary"

const (
	ListMagic      = "DSLSHRD\x01"
	ListHeadBytes  = 16 // the magic, the number of entries
	ListEntryBytes = 96
	ListCutBit     = 1 << 31 // a bit of an entry's number
	// ListPageEntries is how many entries are read at once. A reader holds a few numbers for each page.
	ListPageEntries = 128
	ListPageBytes   = ListPageEntries * ListEntryBytes
	ListPageRefs    = 24 // bytes of a listPage
	// ListCachedPages is how many pages a reader keeps.
	ListCachedPages = 32
	// MaxListed is how many shards of a split the manifest itself lists at most.
	MaxListed = MaxShardIndex + 1
	// MaxList is the maximum number of shards of a split: a Span counts them in 32 bits.
	MaxList = 1<<31 - 1
)

// ListEntry is an entry as it is in the file.
type ListEntry []byte

func (e ListEntry) End() int64 { return int64(binary.LittleEndian.Uint64(e[64:])) }

func (e ListEntry) Tokens() int64 { return int64(binary.LittleEndian.Uint64(e[72:])) }

func (e ListEntry) Bytes() int64 { return int64(binary.LittleEndian.Uint64(e[80:])) }

func (e ListEntry) Name() PartName {
	number := binary.LittleEndian.Uint32(e[92:])
	return PartName{Part: int(binary.LittleEndian.Uint32(e[88:])), Index: int(number &^ ListCutBit),
		Cut: number&ListCutBit != 0}
}
