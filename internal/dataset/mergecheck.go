package dataset

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
	"golang.org/x/sync/errgroup"
)

// compareShards compares every shard of every part with the part's manifest.
func (m *Merger) compareShards() error {
	group, ctx := errgroup.WithContext(m.ctx)
	type work struct {
		part int
		info shard.ShardInfo
	}
	todo := make(chan work)
	var mu sync.Mutex
	var done, total int64
	l := shardfile.NewLayout(shardfile.Shape(m.first.Schema))
	group.Go(func() error {
		defer close(todo)
		for i := range m.parts {
			if m.parts[i].shards == 0 {
				continue
			}
			p, err := m.part(i)
			if err != nil {
				return fmt.Errorf("merge %s: %w", m.dir, err)
			}
			for _, s := range p.Splits {
				for _, info := range s.Shards {
					mu.Lock()
					total += info.Bytes
					mu.Unlock()
					select {
					case todo <- work{i, info}:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
		}
		return nil
	})
	for range max(1, m.o.Workers) {
		group.Go(func() error {
			buf := make([]byte, 256<<10)
			for w := range todo {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := m.compareShard(l, &w.info, buf); err != nil {
					return fmt.Errorf("merge %s: %w; remove the shards of part %d and build partition %d/%d again",
						m.dir, err, w.part, w.part, len(m.parts))
				}
				mu.Lock()
				done += w.info.Bytes
				if m.o.Progress != nil {
					m.o.Progress(done, total)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	return group.Wait()
}

func (m *Merger) compareShard(l *shardfile.Layout, info *shard.ShardInfo, buf []byte) error {
	path := filepath.Join(m.dir, info.Name)
	f, err := shardfile.OpenForReading(m.fs, path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := l.ReadBlocks(f, path, shardfile.Entry{Bytes: info.Bytes, Rows: info.Rows, Footer: info.Footer}); err != nil || m.o.Quick {
		return err
	}
	h := blake3.New()
	if err := shardfile.Rehash(f, path, info.Bytes, h, buf); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != info.BLAKE3 {
		return shardfile.Corrupt(path, -1, "its BLAKE3 is %s, its part's manifest says %s", sum, info.BLAKE3)
	}
	return nil
}
