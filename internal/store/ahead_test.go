package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// aheadFS returns a Reader over objects in memory, whose names are the versions' numbers.
func aheadFS(t *testing.T, objects, size int) (*Reader, *memory, []*version) {
	t.Helper()
	m, versions := newMemory(objects, size)
	f := &Reader{cache: testCache(t, m), objects: map[string]*version{}}
	for i, v := range versions {
		f.objects[string(rune('a'+i))] = v
	}
	return f, m, versions
}

// settle waits until nothing is fetched.
func settle(c *cache) { c.running.Wait() }

// TestAheadIsBounded checks that blocks asked for ahead are there when they are read, never exceed
// their limit, and are fetched once.
func TestAheadIsBounded(t *testing.T) {
	f, m, versions := aheadFS(t, 1, 200*512)
	f.cache.limit = 64
	a := f.ReadAhead()
	wanted := 0
	for ; a.Want("a", int64(wanted)*512, 512, int64(wanted)); wanted++ {
	}
	if most := f.cache.allowance(); wanted != most || most < 2 {
		t.Fatalf("%d blocks were taken, want %d", wanted, most)
	}
	settle(f.cache)
	if n := m.fetches.Load(); n != int64(wanted) {
		t.Errorf("%d fetches of %d blocks", n, wanted)
	}
	b := f.ReadAhead()
	if f.cache.allowance() >= wanted {
		t.Errorf("two share %d blocks each, one had %d", f.cache.allowance(), wanted)
	}
	b.Close()
	for i := range wanted {
		p := make([]byte, 512)
		if _, err := f.cache.readAt(versions[0], p, int64(i)*512); err != nil ||
			!bytes.Equal(p, m.data[1][i*512:(i+1)*512]) {
			t.Fatalf("block %d: %v", i, err)
		}
	}
	if n := m.fetches.Load(); n != int64(wanted) {
		t.Errorf("%d fetches after reading %d blocks", n, wanted)
	}
	select {
	case <-a.Room():
	default:
		t.Error("reading made no room")
	}
	if !a.Want("a", int64(wanted)*512, 512, int64(wanted)) {
		t.Error("there is no room after reading")
	}
	a.Passed(int64(wanted) + 1)
	if len(a.blocks) != 0 {
		t.Errorf("%d blocks count that were passed", len(a.blocks))
	}
	a.Close()
	a.Close()
	if f.cache.aheads != 0 || !a.Want("a", 100*512, 512, 0) || len(a.blocks) != 0 {
		t.Error("it continues after Close")
	}
	if a.Want("elsewhere", 0, 512, 0) != true {
		t.Error("a file of elsewhere is waited for")
	}
}

// TestAheadFails checks that a reader fetches a block again that could not be fetched ahead, and
// gets the error.
func TestAheadFails(t *testing.T) {
	f, m, versions := aheadFS(t, 1, 4*512)
	broken := errors.New("broken")
	m.fail = func(n int64) error {
		if n <= 2 {
			return broken
		}
		return nil
	}
	a := f.ReadAhead()
	defer a.Close()
	a.Want("a", 0, 512, 0)
	settle(f.cache)
	if _, err := f.cache.readAt(versions[0], make([]byte, 1), 0); !errors.Is(err, broken) {
		t.Errorf("the second failure: %v", err)
	}
	if _, err := f.cache.readAt(versions[0], make([]byte, 1), 0); err != nil || len(a.blocks) != 0 {
		t.Errorf("%v, %d blocks", err, len(a.blocks))
	}
}

// TestAheadAmongReaders reads through a small cache with readers that ask ahead, some of which give
// up. Every byte is right.
func TestAheadAmongReaders(t *testing.T) {
	f, m, versions := aheadFS(t, 3, 100*512)
	done := make(chan error, 4)
	for g := range 4 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			a := f.ReadAhead()
			defer func() { a.Close() }()
			for i := range 2000 {
				n := rng.IntN(3)
				off := rng.Int64N(versions[n].Size)
				switch {
				case i%500 == 499:
					a.Close()
					a = f.ReadAhead()
				case i%3 == 0:
					a.Want(string(rune('a'+n)), off, 700, int64(i))
					a.Passed(int64(i - 40))
				}
				p := make([]byte, min(100, versions[n].Size-off))
				k, err := f.cache.readAt(versions[n], p, off)
				if err == nil && !bytes.Equal(p[:k], m.data[versions[n].number][off:off+int64(k)]) {
					err = errors.New("other bytes")
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	settle(f.cache)
	if m.twice.Load() {
		t.Error("a block was fetched twice at once")
	}
}

// TestReadOn checks that files read in order are read ahead without being asked for, even after
// many files were left in the middle.
func TestReadOn(t *testing.T) {
	f, m, versions := aheadFS(t, 1, 400*512)
	f.cache.limit = 400
	read := func(i int64) {
		if _, err := f.cache.readAt(versions[0], make([]byte, 1), i*512); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(30) { // each begins to be read on, and is left
		read(10 * i)
		read(10*i + 1)
	}
	for i := int64(301); i < 330; i++ {
		read(i)
	}
	settle(f.cache)
	before := m.fetches.Load()
	read(330)
	read(331)
	settle(f.cache)
	if ahead := m.fetches.Load() - before; f.cache.blocks[blockKey{1, 332}] == nil {
		t.Errorf("nothing is read ahead any more: %d fetches", ahead)
	}
}
