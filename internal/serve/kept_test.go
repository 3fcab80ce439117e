package serve

import (
	"testing"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

// countedFS counts reads of shards' files.
type countedFS struct {
	shardfile.FS
	reads *int
}

type countedFile struct {
	shardfile.File
	reads *int
}

func (c countedFS) OpenFile(name string, flag int) (shardfile.File, error) {
	f, err := c.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return countedFile{f, c.reads}, nil
}

func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	*f.reads++
	return f.File.ReadAt(p, off)
}

// TestRowsStayInMemoryUntilItIsLeased reads rows of a dataset that the ledger has room for.
func TestRowsStayInMemoryUntilItIsLeased(t *testing.T) {
	const capBytes = 40 << 10
	rows := randomRows(300, shard.Schema{VocabSize: 500}, 7)
	reads := 0
	r, err := Open(Options{Datasets: []string{rows.write(t, t.TempDir(), shard.Schema{VocabSize: 500}, 16<<10)},
		FS: countedFS{shardfile.OS(), &reads}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ledger := budget.New(capBytes)
	r.share(ledger, 0)
	split, err := r.datasets[0].shards.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	pass := func() (n int) {
		before := reads
		var row shard.Row
		for i := range rows {
			if err := split.ReadRow(int64(i), &row); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rows[i].InputIDs, row.AppendInputIDs(nil)); diff != "" {
				t.Fatalf("row %d: %s", i, diff)
			}
		}
		return reads - before
	}
	first := pass()
	fill := func() {
		for passes := 0; pass() > 0; passes++ {
			if passes == first {
				t.Fatalf("after %d passes of at most %d reads not all rows are in memory", passes, first)
			}
		}
	}
	fill()
	lease, ok := ledger.TryAcquire(28 << 10)
	some := pass()
	if !ok || some == 0 {
		t.Errorf("%d reads of rows with a lease of most memory: %t", some, ok)
	}
	lease.Release()
	fill()
	if _, ok := ledger.TryAcquire(capBytes); !ok {
		t.Error("rows in memory keep a stream from its memory")
	}
	if n := pass(); n < len(rows) || n <= some {
		t.Errorf("%d reads of %d rows that must not be in memory, %d when some were", n, len(rows), some)
	}
}
