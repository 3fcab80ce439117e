package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/remote"
)

// memory is a store whose objects are in memory.
type memory struct {
	data    map[uint64][]byte
	mu      sync.Mutex
	running map[[2]int64]bool // blocks that are being fetched, by version and offset
	twice   atomic.Bool
	fetches atomic.Int64
	fail    func(n int64) error
}

func (m *memory) fetch(v *version, from, end int64, write func([]byte) error) error {
	n, key := m.fetches.Add(1), [2]int64{int64(v.number), from}
	m.mu.Lock()
	m.twice.Store(m.twice.Load() || m.running[key])
	m.running[key] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.running, key)
		m.mu.Unlock()
	}()
	if m.fail != nil {
		if err := m.fail(n); err != nil {
			return err
		}
	}
	for from < end {
		n := min(100, end-from)
		if err := write(m.data[v.number][from : from+n]); err != nil {
			return err
		}
		from += n
	}
	return nil
}

func newMemory(objects, size int) (*memory, []*version) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &memory{data: map[uint64][]byte{}, running: map[[2]int64]bool{}}
	var versions []*version
	for i := range objects {
		data := make([]byte, size+i)
		for j := range data {
			data[j] = byte(rng.Uint32())
		}
		v := &version{remote.Object{Size: int64(len(data))}, uint64(i + 1)}
		m.data[v.number] = data
		versions = append(versions, v)
	}
	return m, versions
}

func testCache(t *testing.T, m *memory) *cache {
	t.Helper()
	dir := t.TempDir()
	c, err := newCache(ReaderOptions{CacheBytes: 1, BlockBytes: 512, Dir: dir}, m.fetch)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || c.remove == "" && len(names) > 0 {
		t.Errorf("the cache has a name: %v %v", names, err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestCache reads through a small cache with many readers. They get the bytes of the objects, no
// block is fetched by two at once, and the file never exceeds its limit. Fetches that fail leave
// nothing behind.
func TestCache(t *testing.T) {
	m, versions := newMemory(5, 20_000)
	broken := errors.New("broken")
	m.fail = func(n int64) error {
		if n%50 == 0 {
			return broken
		}
		return nil
	}
	c := testCache(t, m)
	var group sync.WaitGroup
	for seed := range uint64(3 * minBlocks) { // more readers than blocks
		group.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 3))
			for range 300 {
				v := versions[rng.IntN(len(versions))]
				p := make([]byte, 1+rng.IntN(2000))
				off := rng.Int64N(v.Size)
				f := &cachedFile{fs: &Reader{cache: c}, v: v}
				n, err := f.ReadAt(p, off)
				if errors.Is(err, broken) {
					continue
				}
				want := m.data[v.number][off:min(v.Size, off+int64(len(p)))]
				if !bytes.Equal(p[:n], want) || (err == nil) != (n == len(p)) {
					t.Errorf("%d bytes at %d: %v", n, off, err)
				}
			}
		})
	}
	group.Wait()
	if m.twice.Load() {
		t.Error("a block was fetched by two readers at once")
	}
	info, err := c.file.Stat()
	if err != nil || info.Size() > minBlocks*512 {
		t.Errorf("the cache has %d bytes: %v", info.Size(), err)
	}
}

// TestCacheKeeps checks that cached blocks are not fetched again, and that reading in order fetches
// every block once.
func TestCacheKeeps(t *testing.T) {
	m, versions := newMemory(1, minBlocks*512)
	c := testCache(t, m)
	for range 3 {
		for off := int64(0); off < versions[0].Size; off += 64 {
			if _, err := c.readAt(versions[0], make([]byte, 64), off); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := m.fetches.Load(); n != minBlocks {
		t.Errorf("%d fetches of %d blocks", n, minBlocks)
	}
}

// TestCacheOnAFullDisk checks that the cache keeps its size when the disk is full.
func TestCacheOnAFullDisk(t *testing.T) {
	m, versions := newMemory(1, 100*512)
	c := testCache(t, m)
	c.limit = 100
	grown := 0
	m.fail = func(int64) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.slots > 2*minBlocks {
			grown++
			return syscall.ENOSPC
		}
		return nil
	}
	rng := rand.New(rand.NewPCG(4, 4))
	failed := 0
	for range 2000 {
		if _, err := c.readAt(versions[0], make([]byte, 1), 512*rng.Int64N(100)); err != nil {
			failed++
		}
	}
	c.running.Wait()
	if c.limit-c.lost > 2*minBlocks || c.limit-c.lost < minBlocks || grown == 0 || failed > grown {
		t.Errorf("limit %d, %d fetches and %d reads failed", c.limit, grown, failed)
	}
}
