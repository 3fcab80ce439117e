package bytebpe

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

// variants runs a test with each set of kernels the machine has.
func variants(t *testing.T, f func(t *testing.T)) {
	for _, name := range kernelLevels() {
		t.Run(name, func(t *testing.T) {
			defer useKernels(name)()
			f(t)
		})
	}
}

// TestKernelsAgree compares every stage of the kernels in use with its twin on the same window.
func TestKernelsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	m := newModel(t, randomConfig(rand.New(rand.NewPCG(1, 1)), GPT2, false))
	variants(t, func(t *testing.T) {
		e, twin := m.NewEncoder(1<<20), m.NewEncoder(1<<20)
		for i := range 1500 {
			n := r.IntN(400)
			if i%10 == 0 {
				n = r.IntN(windowBytes + 200)
			}
			checkKernels(t, e, twin, randomText(r, n))
		}
	})
}

func FuzzKernels(f *testing.F) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 50 {
		f.Add(randomText(r, 300))
	}
	for _, h := range enginetest.HostileTexts(700) {
		f.Add(h.Text)
	}
	m := newModel(f, randomConfig(rand.New(rand.NewPCG(1, 1)), GPT2, false))
	e, twin := m.NewEncoder(1<<20), m.NewEncoder(1<<20)
	f.Fuzz(func(t *testing.T, text []byte) { checkKernels(t, e, twin, text) })
}

func checkKernels(t *testing.T, e, twin *Encoder, text []byte) {
	t.Helper()
	if len(text) == 0 {
		return
	}
	n := e.fill(text)
	twin.fill(text)
	count := n/blockBytes + 1
	ours, theirs := e.blocks[:count+2], twin.blocks[:count+2]
	h1, z1 := classify(e.buf[:], ours[1:])
	h2, z2 := classifyGo(twin.buf[:], theirs[1:])
	if h1 != h2 || z1 != z2 || !slices.Equal(ours, theirs) {
		t.Fatalf("classes of %q differ", text)
	}
	e.m.classifyHigh(e.buf[:], ours, n)
	e.m.classifyHighGo(twin.buf[:n], theirs[1:])
	if !slices.Equal(ours, theirs) {
		for k := range ours {
			if ours[k] != theirs[k] {
				t.Fatalf("classes of %q differ in block %d:\n%+v\n%+v", text, k, ours[k], theirs[k])
			}
		}
	}
	boundsGPT2(e.buf[:], ours[1:], e.start[:count])
	copy(twin.start[:], e.start[:])
	words := flatten(e.start[:count], n, &e.pos)
	if w := flattenGo(twin.start[:count], n, &twin.pos); w != words || !slices.Equal(e.pos[:words+1], twin.pos[:w+1]) {
		t.Fatalf("positions of %q differ", text)
	}
	if z1 != 0 {
		return
	}
	m1, m2 := 0, 0
	for w := 0; w < words; w += batchWords {
		k := min(batchWords, words-w)
		e.prepare(w, k)
		twin.prepareGo(w, k)
		a, b := e.batchFrom(w), twin.batchFrom(w)
		if !slices.Equal(a.pairs[:k], b.pairs[:k]) || !slices.Equal(a.lines[:k], b.lines[:k]) ||
			!slices.Equal(a.any[:k], b.any[:k]) {
			t.Fatalf("probes of %q differ", text)
		}
		m1 = e.match(w, k, m1)
		m2 = twin.matchGo(w, k, m2)
	}
	if m1 != m2 || !slices.Equal(e.missed[:m1], twin.missed[:m2]) {
		t.Fatalf("misses in %q: %v and %v", text, e.missed[:m1], twin.missed[:m2])
	}
	var jobs mergeJobs
	for i := 0; i < m1; i++ {
		p, q := e.pos[e.missed[i]], e.pos[e.missed[i]+1]
		jobs[i%mergeWidth].begin, jobs[i%mergeWidth].length = uint32(p), max(1, min(uint32(q-p), 16))
		if e.m.missing || i < mergeWidth {
			continue
		}
		some := 1 + i%mergeWidth
		e.mergeSome(e.buf[:], &jobs, some, &e.results)
		twin.mergeSomeGo(twin.buf[:], &jobs, some, &twin.results)
		for j := range some {
			x, y := e.results.ids[j][:e.results.count[j]], twin.results.ids[j][:twin.results.count[j]]
			if !slices.Equal(x, y) || e.results.starts[j] != twin.results.starts[j] {
				t.Fatalf("merges of %q differ: %v and %v", e.buf[jobs[j].begin:jobs[j].begin+jobs[j].length], x, y)
			}
		}
	}
	e.resolve(e.missed[:m1])
	twin.resolve(twin.missed[:m2])
	if !slices.Equal(e.values[:words], twin.values[:words]) {
		t.Fatalf("values of %q differ", text)
	}
	for i := 0; i+wideWidth*wideBytes <= n; i += wideWidth * wideBytes {
		var jobs wideJobs
		for j := range jobs {
			jobs[j].begin, jobs[j].length = uint32(i+j*wideBytes), uint32(1+(i/wideBytes+7*j)%wideBytes)
		}
		e.mergeWide(e.buf[:], &jobs, &e.wide.results[0])
		twin.mergeWideGo(twin.buf[:], &jobs, &twin.wide.results[0])
		x, y := &e.wide.results[0], &twin.wide.results[0]
		for j := range jobs {
			if x.starts[j] != y.starts[j] || !slices.Equal(x.ids[j][:x.count[j]], y.ids[j][:y.count[j]]) {
				t.Fatalf("merging %d bytes at %d of %q: %v and %v", jobs[j].length, jobs[j].begin, text,
					x.ids[j][:x.count[j]], y.ids[j][:y.count[j]])
			}
		}
	}
	x, d1 := e.emit(e.ids[:0], 0, words)
	y, d2 := twin.emitGo(twin.ids[:0], 0, words)
	if d1 != d2 || !slices.Equal(x, y) {
		t.Fatalf("ids of %q: %d %v and %d %v", text, d1, x, d2, y)
	}
}

// TestEncodersAgree: each level of kernels gives the same ids on the corpora.
func TestEncodersAgree(t *testing.T) {
	for _, name := range []string{"gpt2", "cl100k-hf"} {
		m := suite.Load(t, name)
		for _, c := range corpora[:2] {
			text := readCorpus(t, c)[:effort.Of(1<<17, 1<<20, 1<<20)]
			var want []uint32
			variants(t, func(t *testing.T) {
				got := m.NewEncoder(0).Append(nil, text, true, true)
				if want == nil {
					want = got
				} else if !slices.Equal(got, want) {
					t.Errorf("%s: %d ids, with other kernels %d", c, len(got), len(want))
				}
			})
		}
	}
}

// TestNoAllocsForLongWords: in steady state they cost no allocation, although they are longer than what is
// cached.
func TestNoAllocsForLongWords(t *testing.T) {
	texts := [][]byte{bytes.Repeat([]byte("a"), 5000), bytes.Repeat([]byte("\x00 b"), 2000),
		bytes.Repeat([]byte("="), 3000), bytes.Repeat([]byte{0xff}, 500)}
	for _, size := range []int{1, 0} {
		e := suite.Load(t, "gpt2").NewEncoder(size)
		var ids []uint32
		run := func() {
			for _, text := range texts {
				ids = e.Append(ids[:0], text, true, true)
			}
		}
		run()
		if n := testing.AllocsPerRun(2, run); n != 0 {
			t.Errorf("%v allocations for %d texts", n, len(texts))
		}
	}
}

// TestOutputCapacity: ids are the same whatever room dst has.
func TestOutputCapacity(t *testing.T) {
	m := suite.Load(t, "gpt2")
	e := m.NewEncoder(0)
	text := readCorpus(t, corpora[0])[:9000]
	want := e.Append(nil, text, true, true)
	for _, room := range []int{0, 1, 100, len(want) - 1, len(want), len(want) + 63, len(want) + 5000} {
		dst := make([]uint32, 3, 3+room)
		guard := dst[:cap(dst)]
		if got := e.Append(dst, text, true, true); !slices.Equal(got[3:], want) {
			t.Errorf("with room for %d ids the result differs", room)
		}
		_ = guard
	}
}

// TestMemory: an encoder stays within what it was given.
func TestMemory(t *testing.T) {
	m := tinyModel(t, GPT2)
	for _, size := range []int{512 << 10, 1 << 20, 3 << 20, 8 << 20, 64 << 20} {
		if got := m.EncoderBytes(size); got > int64(size) || got < int64(size)/4 {
			t.Errorf("EncoderBytes(%d) = %d", size, got)
		}
		e := m.NewEncoder(size)
		if got := e.bytes(); got > int64(size) {
			t.Errorf("an encoder of %d bytes uses %d", size, got)
		}
	}
}

// bytes returns the memory in use.
func (e *Encoder) bytes() int64 {
	h := &e.heap
	n := 8*len(e.lines) + 4*len(e.spill) + 8*len(e.longIndex) + len(e.long) + int(unsafe.Sizeof(*e)) + cap(e.kept)
	return int64(n + 4*(cap(h.sym)+cap(h.next)+cap(h.prev)+cap(h.rank)+cap(h.ids)+cap(h.at)) + 8*cap(h.heap))
}
