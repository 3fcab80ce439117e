package sampler

import (
	"testing"
)

func TestStepsAllocateNothing(t *testing.T) {
	for name, o := range map[string]Options{"full": {}, "bucketed": {Bucket: 512}, "block": {Shuffle: Block}} {
		o.Sources = []Source{{Rows: 100_000}}
		s, err := NewSteps(mustOrder(t, o), StepOptions{BatchRows: 32})
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		step := func() {
			if err := s.Next(&b); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			step()
		}
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

func BenchmarkSteps(b *testing.B) {
	for name, o := range map[string]Options{"full": {}, "bucketed": {Bucket: 2048}, "none": {Shuffle: None}} {
		b.Run(name, func(b *testing.B) {
			o.Sources = []Source{{Rows: 1_000_000}}
			order, err := NewOrder(o, lengthsOf)
			if err != nil {
				b.Fatal(err)
			}
			s, err := NewSteps(order, StepOptions{BatchRows: 32})
			if err != nil {
				b.Fatal(err)
			}
			var batch Batch
			for b.Loop() {
				if err := s.Next(&batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/row")
		})
	}
}

// Opening the order of a billion rows somewhere and dealing the first batch: what a resume costs.
func BenchmarkResume(b *testing.B) {
	for name, bucket := range map[string]int{"full": 0, "bucketed": 4096} {
		b.Run(name, func(b *testing.B) {
			const rows = 1_000_000_000
			var batch Batch
			start := int64(1)
			for b.Loop() {
				order, err := NewOrder(Options{Sources: []Source{{Rows: rows}}, Bucket: bucket}, lengthsOf)
				if err != nil {
					b.Fatal(err)
				}
				s, err := NewSteps(order, StepOptions{BatchRows: 32, Start: start})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Next(&batch); err != nil {
					b.Fatal(err)
				}
				start = (start*6364136223846793005 + 1442695040888963407) & (1<<40 - 1)
			}
		})
	}
}
