package shardtest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Loss is what happens to unsynced changes in a crash.
type Loss int

// The kinds of loss.
const (
	LoseAll  Loss = iota // nothing unsynced reached the disk
	LoseNone             // everything did: the process was killed, the machine kept running
	LoseSome             // each change independently, a write also torn at any byte, by the seed
)

// CrashImage returns the file system as a machine would find it after a crash now. It has no locks,
// faults or counts, and shares nothing with f.
func (f *FS) CrashImage(loss Loss, seed uint64) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	rnd := rand.New(rand.NewPCG(seed, 0x5eed))
	keep := func() bool { return loss == LoseNone || loss == LoseSome && rnd.IntN(2) == 0 }

	disk := maps.Clone(f.disk)
	for _, op := range f.queue {
		if keep() {
			settle(disk, op)
		}
	}
	image := New()
	image.dirs = maps.Clone(f.dirs)
	copies := map[*inode]*inode{}
	for _, name := range sortedNames(disk) {
		i := disk[name]
		c := copies[i]
		if c == nil {
			data := slices.Clone(i.synced)
			for _, ch := range i.pending {
				if !keep() {
					continue
				}
				if loss == LoseSome && len(ch.data) > 1 && rnd.IntN(2) == 0 {
					ch.data = ch.data[:1+rnd.IntN(len(ch.data)-1)]
				}
				if ch.data == nil && ch.off > int64(len(data)) {
					continue // a truncation of data that never reached the disk
				}
				data = apply(data, ch)
			}
			c = &inode{data: data, synced: slices.Clone(data)}
			copies[i] = c
			image.used += int64(len(data))
		}
		image.names[name], image.disk[name] = c, c
	}
	return image
}

// sortedNames returns the names in sorted order, for what must not depend on map order.
func sortedNames(m map[string]*inode) []string { return slices.Sorted(maps.Keys(m)) }
