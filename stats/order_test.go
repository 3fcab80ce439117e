package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

// served lists the lengths at positions start, start+1, … of the order that a server serves.
func served(t *testing.T, lengths func(row int64) int32, rows, start, n int64, bucket int) []int32 {
	t.Helper()
	order, err := sampler.NewOrder(sampler.Options{Sources: []sampler.Source{{Rows: rows}}, Bucket: bucket},
		func(items []sampler.Item) error {
			for i := range items {
				items[i].Length = lengths(items[i].Row)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	items, err := order.Append(nil, start, int(n))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int32, len(items))
	for i, it := range items {
		out[i] = lengths(it.Row)
	}
	return out
}

// slowWaste cuts one epoch after the other into batches.
func slowWaste(epochs [][]int32, size int) float64 {
	tokens, padded := 0, 0
	for _, lengths := range epochs {
		for at := 0; at < len(lengths); at += size {
			batch := lengths[at:min(len(lengths), at+size)]
			longest := int32(0)
			for _, n := range batch {
				longest = max(longest, n)
				tokens += int(n)
			}
			padded += int(longest) * len(batch)
		}
	}
	return 1 - float64(tokens)/float64(padded)
}

func TestPaddingIsThatOfTheServedBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 7, 32, 200, 3000, 9001} {
		lengths := randomLengths(r, n, 420)
		s := run(t, datasetOf(t, shard.Schema{VocabSize: 1000}, rowsOf(lengths)), Options{}).Splits[0]
		if s.Sampled || s.PaddingRows%int64(n) != 0 {
			t.Errorf("%d rows: %d rows of the order, sampled %v", n, s.PaddingRows, s.Sampled)
		}
		at := func(row int64) int32 { return int32(lengths[row]) }
		last := -1
		for _, p := range s.Padding {
			var epochs [][]int32
			for e := range s.PaddingRows / int64(n) {
				epochs = append(epochs, served(t, at, int64(n), e*int64(n), int64(n), p.Bucket))
			}
			if want := slowWaste(epochs, p.BatchSize); math.Abs(p.Waste-want) > 1e-12 {
				t.Errorf("%d rows, batch %d, bucket %d: waste %v, want %v", n, p.BatchSize, p.Bucket, p.Waste, want)
			}
			last = max(last, p.Bucket)
		}
		if last < buckets[1] || last > buckets[1] && last >= n {
			t.Errorf("%d rows: buckets up to %d", n, last)
		}
	}
}

func TestSampleIsOfTheServedOrder(t *testing.T) {
	const rows = 3*sampleRows + 12345
	length := func(row int64) int32 { return int32(row * 2654435761 % 1009) }
	segments, sampled := chooseSegments(rows)
	if !sampled {
		t.Fatal("not sampled")
	}
	refs, err := servedRows(rows, segments)
	if err != nil {
		t.Fatal(err)
	}
	if len(refs) > sampleRows {
		t.Fatalf("%d rows are kept", len(refs))
	}
	lengths := make([]int32, len(refs))
	for i, row := range refs {
		lengths[i] = length(row)
	}
	for _, bucket := range []int{0, 2048, 32768} {
		at := map[int64][]int32{}
		err := bucketed(rows, segments, lengths, bucket, func(start int64,
			run []int32) {
			at[start] = append([]int32(nil), run...)
		})
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for start, run := range at {
			total += len(run)
			if start%segmentRows > 2*2048 { // two windows of each segment do
				continue
			}
			for i, n := range served(t, length, rows, start, int64(len(run)), bucket) {
				if run[i] != n {
					t.Fatalf("bucket %d, position %d: length %d, want %d", bucket, start+int64(i), run[i], n)
				}
			}
		}
		if total != len(refs) {
			t.Errorf("bucket %d: %d rows of %d", bucket, total, len(refs))
		}
	}
}

func TestSegmentsSpreadOverTheEpoch(t *testing.T) {
	for _, rows := range []int64{sampleRows + 1, 5_000_000, 10_000_001, 1 << 40} {
		segments, sampled := chooseSegments(rows)
		var kept, end int64
		for _, s := range segments {
			if s.start%segmentRows != 0 || s.start < end || s.n < 1 || s.start+s.n > rows {
				t.Errorf("%d rows: segment %+v", rows, s)
			}
			end = s.start + s.n
			kept += s.n
		}
		if !sampled || kept > sampleRows || kept < sampleRows-segmentRows || end < rows-rows/16 {
			t.Errorf("%d rows: %d kept up to %d", rows, kept, end)
		}
	}
	for _, rows := range []int64{1, 100, smallRows, sampleRows} {
		segments, sampled := chooseSegments(rows)
		kept := int64(len(segments)) * rows
		if sampled || kept > sampleRows {
			t.Errorf("%d rows: %d kept, sampled %v", rows, kept, sampled)
		}
	}
	for _, size := range append(append([]int{}, batchSizes...), buckets[1:]...) {
		if segmentRows%size != 0 {
			t.Errorf("%d does not divide a segment", size)
		}
	}
}

func TestAdviceTakesTheSmallestBucketThatIsNearlyTheBest(t *testing.T) {
	figures := []Padding{{32, 0, 0.4}, {32, 512, 0.2}, {32, 2048, 0.055}, {32, 8192, 0.05}, {8, 0, 0.3}}
	if got, want := advise(figures, 32), (Advice{32, 2048, 0.055, 0.4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	even := []Padding{{32, 0, 0}, {32, 512, 0}}
	if got, want := advise(even, 32), (Advice{BatchSize: 32}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
