//go:build unix

package shard_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkAppend writes rows through the whole path to a real file system: copy, BLAKE3, file,
// commit of shards. Bytes are those of ids.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ length, vocab int }{{20, 50257}, {512, 50257}, {512, 128_000}} {
		b.Run(fmt.Sprintf("rows=%d/vocab=%d", c.length, c.vocab), func(b *testing.B) {
			o := dataset.BuilderOptions{Schema: shard.Schema{VocabSize: c.vocab}}
			bd, _, err := dataset.OpenBuilder(shardfile.OS(), filepath.Join(b.TempDir(), "d"), o)
			if err != nil {
				b.Fatal(err)
			}
			defer bd.Close()
			next := reuse(c.length, c.vocab)
			rows := (1 << 18) / c.length
			b.SetBytes(int64(rows * c.length * o.Schema.IDWidth()))
			b.ReportAllocs()
			cpu := cpuSeconds()
			for b.Loop() {
				for range rows {
					if err := bd.Row("train", next()); err != nil {
						b.Fatal(err)
					}
				}
			}
			n := float64(b.N) * float64(rows*c.length*o.Schema.IDWidth())
			b.ReportMetric(n/1e6/(cpuSeconds()-cpu), "MB/cpu-s")
		})
	}
}

// BenchmarkRead reads rows of 20 tokens from the page cache; an operation is a row.
func BenchmarkRead(b *testing.B) {
	r := sample(b, 2_000_000, 20)
	const n = 1024
	rnd := rand.New(rand.NewPCG(2, 2))
	random, run := make([]int64, n), make([]int64, n)
	spans, buf := make([]shard.Span, n), make([]byte, 0, n*40)
	shuffle := func() {
		for i := range random {
			random[i] = rnd.Int64N(r.NumRows())
		}
		first := rnd.Int64N(r.NumRows() - n)
		for i := range run {
			run[i] = first + int64(i)
		}
	}
	report := func(b *testing.B, f func() error) {
		cpu := cpuSeconds()
		for b.Loop() {
			shuffle()
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((cpuSeconds()-cpu)*1e9/float64(b.N)/n, "cpu-ns/row")
	}
	b.Run("shuffle-only", func(b *testing.B) { report(b, func() error { return nil }) })
	b.Run("locate/random", func(b *testing.B) { report(b, func() error { return r.Locate(spans, random) }) })
	b.Run("ids/random", func(b *testing.B) {
		report(b, func() (err error) {
			if err = r.Locate(spans, random); err == nil {
				buf, err = r.AppendIDs(buf[:0], spans)
			}
			return err
		})
	})
	b.Run("ids/run", func(b *testing.B) {
		report(b, func() (err error) {
			if err = r.Locate(spans, run); err == nil {
				buf, err = r.AppendIDs(buf[:0], spans)
			}
			return err
		})
	})
	b.Run("row/random", func(b *testing.B) {
		var row shard.Row
		report(b, func() (err error) {
			for _, i := range random {
				if err = r.ReadRow(i, &row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
