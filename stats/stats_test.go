package stats

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// datasetOf writes a dataset with these rows in the split train.
func datasetOf(t *testing.T, schema shard.Schema, rows []dataset.Example) *shard.Dataset {
	t.Helper()
	dir := t.TempDir()
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: schema, ShardBytes: 64 << 10,
		Settings: []byte(`{"max-length":512}`)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := b.Row("train", &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	info := shard.TokenizerInfo{Name: "test", VocabSize: schema.VocabSize, Fingerprint: strings.Repeat("0", 64)}
	if _, err := b.Finish(dataset.Provenance{Tokenizer: info}); err != nil {
		t.Fatal(err)
	}
	d, err := shard.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// rowsOf makes rows of these lengths, each a document of ids that count up from its number.
func rowsOf(lengths []int) []dataset.Example {
	var rows []dataset.Example
	for i, n := range lengths {
		ids := make([]uint32, n)
		for j := range ids {
			ids[j] = uint32((i + j) % 1000)
		}
		rows = append(rows, dataset.Example{InputIDs: ids, Document: int64(i)})
	}
	return rows
}

func randomLengths(r *rand.Rand, n, most int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = min(most, 1+int(r.ExpFloat64()*60))
	}
	return out
}

func run(t *testing.T, d *shard.Dataset, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRowsDocumentsAndDuplicates(t *testing.T) {
	long := make([]uint32, maxReadBytes/2+100) // read in parts
	for i := range long {
		long[i] = uint32(i % 7)
	}
	other := slices.Clone(long)
	other[len(other)-1] = 999
	rows := []dataset.Example{
		{InputIDs: []uint32{1, 2, 3}, Document: 0},
		{InputIDs: []uint32{4}, Document: 0, Part: 1},
		{InputIDs: []uint32{1, 2, 3}, Document: 3},
		{InputIDs: long, Document: 4},
		{InputIDs: other, Document: 5},
		{InputIDs: long, Document: 6},
		{InputIDs: []uint32{1, 2}, Document: 7},
		{InputIDs: []uint32{1, 2, 3}, Document: 8},
	}
	s := run(t, datasetOf(t, shard.Schema{VocabSize: 1000}, rows), Options{}).Splits[0]
	if s.Examples != 8 || s.Documents != 7 || s.Duplicates != 3 || s.ApproximateDuplicates {
		t.Errorf("%d rows, %d documents, %d duplicates, approximate %v", s.Examples, s.Documents, s.Duplicates,
			s.ApproximateDuplicates)
	}
	low, _ := shard.BucketBounds(int64(len(long)))
	if want := [][2]int64{{1, 1}, {2, 1}, {3, 3}, {low, 3}}; !slices.Equal(s.Lengths, want) {
		t.Errorf("lengths %v, want %v", s.Lengths, want)
	}
	if want := [][2]int64{{2, 1}, {3, 2}, {4, 1}, {low, 3}}; !slices.Equal(s.DocCounts, want) {
		t.Errorf("document lengths %v, want %v", s.DocCounts, want)
	}
	counts := map[uint32]int64{}
	for _, r := range rows {
		for _, id := range r.InputIDs {
			counts[id]++
		}
	}
	for i, top := range s.TopTokens {
		if top.Count != counts[top.ID] || i > 0 && top.Count > s.TopTokens[i-1].Count {
			t.Errorf("top token %d: id %d %d times, want %d", i, top.ID, top.Count, counts[top.ID])
		}
	}
	if len(s.TopTokens) != 8 {
		t.Errorf("%d top tokens of 8 ids", len(s.TopTokens))
	}
}

// TestLossOfEarlierVersions: datasets that do not record it say it of labels, and not of a mask.
func TestLossOfEarlierVersions(t *testing.T) {
	rows := []dataset.Example{{InputIDs: []uint32{1, 2, 3}, LossMask: []bool{false, true, true}}}
	s := run(t, datasetOf(t, shard.Schema{VocabSize: 10, LossMask: true}, rows), Options{}).Splits[0]
	if s.LossTokens != nil || s.LossShare != nil || s.Sources != nil {
		t.Errorf("%v tokens with loss, share %v, sources %v", s.LossTokens, s.LossShare, s.Sources)
	}
	rows = []dataset.Example{{InputIDs: []uint32{1, 2, 3}, Labels: []uint32{4}}}
	s = run(t, datasetOf(t, shard.Schema{VocabSize: 10, Labels: true}, rows), Options{}).Splits[0]
	if *s.LossTokens != 1 || *s.LossShare != 0.25 {
		t.Errorf("%d labels with loss, share %v", *s.LossTokens, *s.LossShare)
	}
}

func TestDuplicatesCompareTargetsToo(t *testing.T) {
	ids := []uint32{1, 2}
	rows := []dataset.Example{
		{InputIDs: ids, Labels: []uint32{3}, Document: 0}, {InputIDs: ids, Labels: []uint32{4}, Document: 1},
		{InputIDs: ids, Labels: []uint32{3}, Document: 2}, {InputIDs: []uint32{3}, Labels: ids, Document: 3},
	}
	if n := run(t, datasetOf(t, shard.Schema{VocabSize: 10, Labels: true}, rows),
		Options{}).Splits[0].Duplicates; n != 1 {
		t.Errorf("%d duplicates, want 1", n)
	}
}

func TestPackedRowsArePacked(t *testing.T) {
	rows := []dataset.Example{
		{InputIDs: []uint32{1, 2, 3, 4}, Segments: []int32{1, 3}},
		{InputIDs: []uint32{1, 2, 3, 4}, Segments: []int32{2, 1, 1}},
	}
	r := run(t, datasetOf(t, shard.Schema{VocabSize: 10, Segments: true}, rows), Options{})
	s := r.Splits[0]
	if want := [][2]int64{{1, 3}, {2, 1}, {3, 1}}; s.Documents != 5 || !slices.Equal(s.DocCounts, want) {
		t.Errorf("%d pieces %v, want 5 %v", s.Documents, s.DocCounts, want)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "counted as pieces") }) {
		t.Errorf("notes %q do not say what documents are", r.Notes)
	}
}

func TestSummaryIsThatOfTheSortedLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 19, 20, 21, 1000} {
		lengths := randomLengths(r, n, 400)
		c := newLengthCounts()
		sum := 0
		for _, l := range lengths {
			c.add(int64(l))
			sum += l
		}
		slices.Sort(lengths)
		at := func(q float64) int64 { return int64(lengths[int(math.Ceil(q*float64(n)-1e-9))-1]) }
		want := Summary{Min: int64(lengths[0]), Mean: float64(sum) / float64(n), P50: at(0.5), P95: at(0.95),
			Max: int64(lengths[n-1])}
		if got := c.summary(); got != want {
			t.Errorf("%d lengths: %+v, want %+v", n, got, want)
		}
	}
}

// slowBestFit is best fit decreasing, one thing at a time.
func slowBestFit(things []int, size int) int64 {
	things = slices.Clone(things)
	slices.Sort(things)
	slices.Reverse(things)
	var room []int
	for _, n := range things {
		best := -1
		for i, r := range room {
			if r >= n && (best < 0 || r < room[best]) {
				best = i
			}
		}
		if best < 0 {
			room = append(room, size)
			best = len(room) - 1
		}
		room[best] -= n
	}
	return int64(len(room))
}

func TestPackingEqualsPackingOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for trial := range 300 {
		lengths := randomLengths(r, 1+r.IntN(300), 1+r.IntN(500))
		size := 1 + r.IntN(300)
		c := newLengthCounts()
		total := 0
		var cut, split []int
		for _, n := range lengths {
			c.add(int64(n))
			total += n
			cut = append(cut, min(n, size))
			for ; n > size; n -= size {
				split = append(split, size)
			}
			split = append(split, n)
		}
		kept := 0
		for _, n := range cut {
			kept += n
		}
		for _, want := range []Packing{
			{Policy: string(pack.None), Rows: int64(len(lengths)), Dropped: int64(total - kept)},
			{Policy: string(pack.Wrapped), Rows: int64((total + size - 1) / size)},
			{Policy: string(pack.BFD), Rows: slowBestFit(cut, size), Dropped: int64(total - kept)},
			{Policy: string(pack.BFDSplit), Rows: slowBestFit(split, size)},
		} {
			want.Length = size
			want.Fill = float64(int64(total)-want.Dropped) / float64(want.Rows*int64(size))
			if got := packed(c, pack.Policy(want.Policy), size); got != want {
				t.Fatalf("trial %d, %d rows: %+v, want %+v", trial, len(lengths), got, want)
			}
		}
	}
}

func TestPackedLengthsReachTheLongestRow(t *testing.T) {
	for _, longest := range []int64{1, 40, 256, 257, 512, 513, 1000, 8192, 100_000} {
		lengths := packedLengths(longest)
		if len(lengths) != numPacked || int64(lengths[numPacked-1]) < longest || !slices.IsSorted(lengths) {
			t.Errorf("longest %d: %v", longest, lengths)
		}
	}
}

func TestDuplicatesAreExactUntilTheTableIsFull(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	table, seen, want := newDuplicateTable(5000), map[uint64]bool{}, int64(0)
	hashes := []uint64{0, 1 << 63} // 0 marks an empty place
	for range 5000 - 2 {
		hashes = append(hashes, r.Uint64())
	}
	for range 20_000 {
		h := hashes[2+r.IntN(len(hashes)-2)]
		if seen[h] {
			want++
		}
		seen[h] = true
		table.add(h)
	}
	if n, approximate := table.duplicates(); n != want || approximate {
		t.Errorf("%d duplicates, approximate %v; want %d", n, approximate, want)
	}
	table = newDuplicateTable(10)
	table.add(0)
	table.add(0)
	if n, _ := table.duplicates(); n != 1 {
		t.Errorf("%d duplicates of hash 0, want 1", n)
	}
}

func TestDuplicatesAreEstimatedInBoundedMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const distinct, most = 400_000, 20_000
	table, none := newDuplicateTable(most), newDuplicateTable(most)
	want := int64(0)
	for range distinct {
		h := r.Uint64()
		none.add(h)
		for range 1 + h>>60&1 { // every other value twice
			table.add(h)
		}
		want += int64(h >> 60 & 1)
	}
	n, approximate := table.duplicates()
	if math.Abs(float64(n-want)) > 0.1*float64(want) || !approximate {
		t.Errorf("about %d duplicates, approximate %v; there are %d", n, approximate, want)
	}
	if n, approximate := none.duplicates(); n != 0 || !approximate {
		t.Errorf("%d duplicates where there are none, approximate %v", n, approximate)
	}
	if table.used > most || len(table.keys) > 4*most {
		t.Errorf("%d keys in a table of %d", table.used, len(table.keys))
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, datasetOf(t, shard.Schema{VocabSize: 1000}, rowsOf([]int{1, 2})), Options{}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestWithoutTokenizerTheReportSaysSo(t *testing.T) {
	o := Options{OpenTokenizer: func() (*tokenize.Tokenizer, error) { return nil, errors.New("gone") }}
	r := run(t, datasetOf(t, shard.Schema{VocabSize: 1000}, rowsOf([]int{1, 2})), o)
	s := r.Splits[0]
	if s.Unknown != nil || s.Replaced != nil || s.ByteFallback != nil || s.BytesPerToken != nil {
		t.Errorf("figures about text without a tokenizer: %+v", s)
	}
	if len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "gone") {
		t.Errorf("notes %q do not say why", r.Notes)
	}
	if len(s.Samples) != 2 || len(s.Samples[1].Pieces) != 2 || s.Samples[1].Pieces[1].IDs[0] != 2 {
		t.Errorf("samples %+v", s.Samples)
	}
}

func TestIDsOutsideTheVocabularyAreCorrupt(t *testing.T) {
	for _, vocab := range []int{1000, 70_000} {
		split, err := datasetOf(t, shard.Schema{VocabSize: vocab}, rowsOf([]int{3})).Split("train")
		if err != nil {
			t.Fatal(err)
		}
		sc, err := newScan(split)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, split.IDWidth())
		for id, want := range map[int]error{vocab - 1: nil, vocab: shard.ErrCorrupt} {
			for i := range data {
				data[i] = byte(id >> (8 * i))
			}
			if err := sc.count(data); !errors.Is(err, want) {
				t.Errorf("id %d of %d: %v", id, vocab, err)
			}
		}
	}
}
