package shard

import (
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"
)

// putter is the part of shardtest.FS that writes behind a build's back.
type putter interface {
	FS
	Put(name string, data []byte)
}

// Reseal changes a manifest and gives it, and its entries of shards, checksums and sizes that are right.
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
			size, _ := f.Size()
			data := make([]byte, size)
			f.ReadAt(data, 0)
			f.Close()
			sum := blake3.Sum256(data)
			sh.Bytes, sh.BLAKE3 = size, hex.EncodeToString(sum[:])
		}
	}
	change(m)
	data, err := m.encode()
	if err != nil {
		panic(err)
	}
	fsys.Put(filepath.Join(dir, ManifestName), data)
}

// SealManifest puts the right seal behind body.
func SealManifest(body []byte) []byte { return append(body[:len(body):len(body)], sealOf(body)...) }

// SealBytes is the length of a seal.
const SealBytes = sealBytes

// CheckpointPath is where a folder's checkpoint is.
func CheckpointPath(dir string) string { return filepath.Join(dir, checkpointName) }
