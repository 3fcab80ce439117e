package heldout

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// TestReadIsOfTheManifest reads a file back, and refuses one that the manifest does not list.
func TestReadIsOfTheManifest(t *testing.T) {
	dir := t.TempDir()
	hashes := []uint64{1 << 63, 7, 0, 42}
	data := File(hashes)
	sum := blake3.Sum256(data)
	info := shard.FileInfo{Name: shardfile.HeldOutName, Bytes: int64(len(data)), BLAKE3: hex.EncodeToString(sum[:])}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, info.Name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(data)
	if have, err := Read(shardfile.OS(), dir, info); err != nil || !slices.Equal(have, []uint64{0, 7, 42, 1 << 63}) {
		t.Errorf("%v %v", have, err)
	}
	for name, damaged := range map[string][]byte{"shorter": data[:len(data)-1], "other": File([]uint64{1, 2, 3, 4})} {
		write(damaged)
		if _, err := Read(shardfile.OS(), dir, info); !errors.Is(err, shard.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.Equal(hashes, []uint64{1 << 63, 7, 0, 42}) {
		t.Error("File has sorted what it was given")
	}
}
