package shard

import "fmt"

// Extent is a record batch: what is read of a shard when one of its rows is first read.
type Extent struct {
	Path       string // where the shard is
	Off, Len   int64  // in bytes
	First, End int64  // its rows, as the split numbers them
}

// ShardOf returns the number of the shard that holds a row.
func (r *Split) ShardOf(row int64) (int, error) {
	if row < 0 || row >= r.info.Examples {
		return 0, fmt.Errorf("row %d of %d: %w", row, r.info.Examples, ErrRange)
	}
	i, _, err := r.table.find(row)
	return i, err
}

// OpenShard opens a shard as reading a row of it does, and checks its footer.
func (r *Split) OpenShard(i int) error {
	s, err := r.acquire(i)
	if err == nil {
		s.mu.RUnlock()
	}
	return err
}

// Extent returns the record batch of a row. It reads nothing where the shard is open.
func (r *Split) Extent(row int64) (Extent, error) {
	p, err := r.findRow(row)
	if err != nil {
		return Extent{}, err
	}
	defer p.s.mu.RUnlock()
	first := row - p.row
	return Extent{Path: p.s.path, Off: p.start, Len: p.body + p.bodyLen - p.start, First: first,
		End: first + p.rows}, nil
}
