// Package heldout chooses the documents that are held out for the split val, and keeps their hashes for additions, in
// a file of the dataset: 64 bits each, little-endian, in ascending order.
package heldout

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// hashBytes is the length of a hash in the file.
const hashBytes = 8

// File returns the content of the file with these hashes.
func File(hashes []uint64) []byte {
	hashes = slices.Clone(hashes)
	slices.Sort(hashes)
	data := make([]byte, 0, hashBytes*len(hashes))
	for _, hash := range hashes {
		data = binary.LittleEndian.AppendUint64(data, hash)
	}
	return data
}

// Read returns the hashes in the file of a dataset. It must be the one that the manifest lists.
func Read(fsys shardfile.FS, dir string, info shard.FileInfo) ([]uint64, error) {
	path := filepath.Join(dir, info.Name)
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := blake3.New()
	r := io.TeeReader(io.NewSectionReader(f, 0, info.Bytes), h)
	hashes := make([]uint64, info.Bytes/hashBytes)
	err = binary.Read(r, binary.LittleEndian, hashes)
	if err != nil || hex.EncodeToString(h.Sum(nil)) != info.BLAKE3 {
		return nil, shardfile.Corrupt(path, -1, "it is not the file that the manifest lists")
	}
	return hashes, nil
}
