package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
	"pgregory.net/rapid"
)

// heldElsewhere are the types of what a stream shares with others.
var heldElsewhere = map[reflect.Type]bool{reflect.TypeFor[*Reader](): true, reflect.TypeFor[*opened](): true,
	reflect.TypeFor[*shard.Split](): true}

// held returns the bytes behind v: what its slices have room for, and what its pointers point to.
func held(v reflect.Value, seen map[uintptr]bool) (n int64) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || heldElsewhere[v.Type()] || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		return int64(v.Type().Elem().Size()) + held(v.Elem(), seen)
	case reflect.Interface:
		return held(v.Elem(), seen)
	case reflect.Slice:
		n = int64(v.Cap()) * int64(v.Type().Elem().Size())
		if flat(v.Type().Elem()) {
			return n
		}
		v = v.Slice(0, v.Cap())
		fallthrough
	case reflect.Array:
		if flat(v.Type().Elem()) {
			return n
		}
		for i := range v.Len() {
			n += held(v.Index(i), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += held(v.Field(i), seen)
		}
	}
	return n
}

// flat reports whether values of a type lead to no others.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.String, reflect.Func:
		return false
	case reflect.Array:
		return flat(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !flat(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// skewedRows are rows of one or two tokens, and now and then a long one.
func skewedRows(n int, schema shard.Schema, seed uint64) (rows memoryRows) {
	rng := rand.New(rand.NewPCG(seed, 9))
	long := randomRows(n, schema, seed)
	for i := range n {
		e := long[i]
		if k := 1 + rng.IntN(2); rng.IntN(30) > 0 {
			e.InputIDs, e.Labels = e.InputIDs[:min(k, len(e.InputIDs))], e.Labels[:min(k, len(e.Labels))]
			if e.LossMask != nil {
				e.LossMask = e.LossMask[:len(e.InputIDs)]
			}
			if e.Segments != nil {
				e.Segments = []int32{int32(len(e.InputIDs))}
			}
		}
		rows = append(rows, e)
	}
	return rows
}

// leasedReaders opens datasets of all schemas, by themselves and mixed.
func leasedReaders(t *testing.T, n int) (readers []*Reader) {
	t.Helper()
	dir := t.TempDir()
	for i, schema := range []shard.Schema{{VocabSize: 1000}, {VocabSize: 1000, Labels: true},
		{VocabSize: 70_000, LossMask: true, Segments: true}} {
		var both []string
		for j, rows := range []memoryRows{skewedRows(n, schema, uint64(i)), randomRows(n/2, schema, uint64(i))} {
			both = append(both, rows.write(t, filepath.Join(dir, fmt.Sprint(i, j)), schema, 64<<10))
		}
		for _, dirs := range [][]string{both[:1], both} {
			r, err := Open(Options{Datasets: dirs})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			readers = append(readers, r)
		}
	}
	return readers
}

// randomQuery draws the parameters that decide what a stream holds.
func randomQuery(t *rapid.T) string {
	world := rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "world")
	query := fmt.Sprintf("batch_size=%d&world=%d&rank=%d", rapid.SampledFrom([]int{1, 7, 64, 300}).Draw(t, "batch_size"),
		world, rapid.IntRange(0, world-1).Draw(t, "rank"))
	for _, p := range []struct {
		name   string
		values []string
	}{
		{"max_tokens", []string{"64", "500", "4000"}}, {"bucket", []string{"256", "1500"}},
		{"balance", []string{"tokens", "tokens", "quadratic"}}, {"pack", []string{"wrapped", "bfd", "bfd_split"}},
		{"max_length", []string{"16", "64"}}, {"shuffle", []string{"none", "block"}}, {"tail", []string{"once", "pad"}},
		{"padding", []string{"max_length"}}, {"pad_to_multiple_of", []string{"8"}}, {"labels", []string{"none", "causal"}},
		{"epochs", []string{"2"}},
	} {
		if value := rapid.SampledFrom(append(p.values, make([]string, len(p.values)+1)...)).Draw(t, p.name); value != "" {
			query += "&" + p.name + "=" + value
		}
	}
	return query
}

// planObjects is room in a lease for the few objects of a stream that are no buffers.
const planObjects = 8 << 10

// roomFor returns the largest size of buffers that are leased as so many bytes: a slice that grows step by step may
// have room for a quarter more than it ever held.
func roomFor(leased int64) int64 { return leased + leased/4 + planObjects }

// checkHeld compares what a batch and a stream hold with what they lease.
func checkHeld(t interface{ Fatalf(string, ...any) }, o *feed.Opening, b *collate.Batch) {
	if b.Rows() > o.BatchRows || b.Tokens() > o.BatchTokens {
		t.Fatalf("a batch of %d rows and %d tokens, leased are %d and %d", b.Rows(), b.Tokens(), o.BatchRows, o.BatchTokens)
	}
	batch := held(reflect.ValueOf(b), map[uintptr]bool{})
	if lease := roomFor(o.Collate.Bytes(o.BatchRows, o.BatchTokens)); batch > lease {
		t.Fatalf("a batch holds %d bytes and leases %d", batch, lease)
	}
	seen := map[uintptr]bool{reflect.ValueOf(b).Pointer(): true} // a packed stream has the batch of its last call
	if n := held(reflect.ValueOf(o.Stream), seen); n > roomFor(o.WindowBytes) {
		t.Fatalf("a stream holds %d bytes and leases %d", n, o.WindowBytes)
	}
}

// TestStreamsStayWithinTheirLeases reads random streams: the bytes that a stream and its batch hold never pass what is
// leased for them.
func TestStreamsStayWithinTheirLeases(t *testing.T) {
	readers := leasedReaders(t, 2500)
	steps := effort.Of(10, 40, 400)
	rapid.Check(t, func(t *rapid.T) {
		r := readers[rapid.IntRange(0, len(readers)-1).Draw(t, "datasets")]
		text := randomQuery(t)
		query, err := feed.ParseQuery(text)
		if err != nil {
			t.Skip(err)
		}
		o, err := r.Open(query)
		if err != nil {
			return // what cannot be served holds nothing
		}
		defer o.Stream.Close()
		b := collate.New(o.Collate)
		for range steps {
			b.Reset()
			err := o.Stream.Next(context.Background(), b)
			if err == io.EOF || errors.As(err, new(*feed.ParamError)) { // such as an epoch without a whole step
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			checkHeld(t, o, b)
		}
	})
}

// TestLeasesOfWholeEpochs reads all steps of an epoch whose rows are found by their lengths. Those of one rank in a
// balanced step may be nearly all rows of the step.
func TestLeasesOfWholeEpochs(t *testing.T) {
	r := leasedReaders(t, 12_000)[0]
	for _, text := range []string{"balance=tokens", "balance=quadratic", "balance=tokens&max_tokens=600",
		"balance=tokens&bucket=3000", "bucket=3000"} {
		most := 0
		for rank := range 8 {
			query, err := feed.ParseQuery(fmt.Sprintf("batch_size=512&world=8&rank=%d&tail=once&epochs=1&%s", rank, text))
			if err != nil {
				t.Fatal(err)
			}
			o, err := r.Open(query)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			b := collate.New(o.Collate)
			for {
				b.Reset()
				if err := o.Stream.Next(context.Background(), b); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				checkHeld(t, o, b)
				most = max(most, b.Rows())
			}
			o.Stream.Close()
		}
		if strings.HasPrefix(text, "balance=tokens") && !strings.Contains(text, "max_tokens") && most <= 512 {
			t.Errorf("%s: no batch has more than its share of the rows, but %d at most", text, most)
		}
	}
}

// TestBoundOfBatches states what streams lease, from the manifest: rows of 1 to 40 tokens.
func TestBoundOfBatches(t *testing.T) {
	r := leasedReaders(t, 12_000)[0]
	for text, want := range map[string]bound{
		"batch_size=32":                                            {rows: 32, tokens: 32 * 40},
		"batch_size=32&max_tokens=400":                             {rows: 32, tokens: 400},
		"batch_size=999&max_tokens=400":                            {rows: 400, tokens: 400},
		"batch_size=999&max_tokens=400&pad_to_multiple_of=8":       {rows: 50, tokens: 400},
		"batch_size=32&pack=bfd&max_length=64":                     {rows: 32, tokens: 32 * 64},
		"batch_size=32&balance=tokens":                             {rows: 32, tokens: 32 * 40},
		"batch_size=32&balance=quadratic&world=4":                  {rows: 32, tokens: 32 * 40, balanced: 128},
		"batch_size=32&balance=tokens&world=4":                     {rows: 128, tokens: 32 * 40, balanced: 128},
		"batch_size=32&balance=tokens&world=64":                    {rows: 32 * 40, tokens: 32 * 40, balanced: 2048},
		"batch_size=32&balance=tokens&world=64&max_tokens=400":     {rows: 32, tokens: 400, balanced: 2048},
		"batch_size=32&balance=tokens&world=64&padding=max_length": {rows: 32, tokens: 32 * 64, balanced: 2048},
		"batch_size=65536&balance=quadratic&world=16":              {rows: 1 << 16, tokens: 40 << 16, balanced: sampler.MaxBalanced},
	} {
		query, err := feed.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.choose(query)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if c.bound != want {
			t.Errorf("%s: %+v, want %+v", text, c.bound, want)
		}
	}
	query, err := feed.ParseQuery("batch_size=65536&balance=quadratic&world=17")
	if err != nil {
		t.Fatal(err)
	}
	var refused *feed.ParamError
	if _, err := r.choose(query); !errors.As(err, &refused) || refused.Param != "balance" {
		t.Errorf("a step of more than %d rows: %v", sampler.MaxBalanced, err)
	}
}
