package source

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/synth"
)

// live is what the heap holds after a collection.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// I3: what a reader holds, decompressor and all, stays below MemoryBytes.
func TestReadersHoldWhatMemoryBytesSays(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it reads 100 MB")
	}
	new(synth.Spec).Append(nil, 0) // its tables are made once a process, whichever test comes first
	dir := t.TempDir()
	text := numbered(700_000) // longer than any window
	files := map[string]string{
		"plain": write(t, dir, "plain", text), "gzip": write(t, dir, "gz", gzipped(text)),
		"bzip2": write(t, dir, "bz2", bzipped(t)),
		"zstd":  write(t, dir, "zst", zstded(t, text, 8<<20)), "zstd --long": write(t, dir, "long",
			"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"+zstded(t, text, 16<<20)),
	}
	size := len(text)
	text = ""
	for c, file := range files {
		o := Options{Args: []string{file}, Format: Text}
		set := openSet(t, o)
		buf := make([]byte, 0, 1<<10)
		before := live()
		r, err := set.Reader(Position{})
		if err != nil {
			t.Fatal(err)
		}
		var rec Record
		var peak int64
		for n := 0; err == nil; n++ {
			if n%100_000 == 1 {
				peak = max(peak, live()-before)
			}
			_, err = r.Next(buf, &rec)
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		r.Close()
		limit := set.MemoryBytes()
		if window := set.LargestWindow(); (window > 0) != (c == "zstd --long") {
			t.Errorf("%s: a window of %d bytes", c, window)
		}
		t.Logf("%s: %d KiB of %d KiB", c, peak>>10, limit>>10)
		if peak > limit {
			t.Errorf("%s: a reader holds %d bytes, MemoryBytes says %d", c, peak, limit)
		}
	}
	if size < 16<<20 {
		t.Errorf("%d bytes of text do not fill a window", size)
	}
}

// A header of a million columns is refused without a list of them.
func TestWideHeadersAreBounded(t *testing.T) {
	const columns = 2_000_000
	src := strings.Repeat("c,", columns) + "text\n" + strings.Repeat("a,", columns) + "hi\n"
	set := openSet(t, Options{Args: []string{"-"}, Places: Places{Stdin: strings.NewReader(src)}, Format: CSV})
	r, err := set.Reader(Position{})
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	var before, after runtime.MemStats
	buf := make([]byte, 0, 5<<20)
	runtime.ReadMemStats(&before)
	_, err = r.Next(buf, &rec)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, cause.TooLarge) || !strings.Contains(err.Error(), "2000001 columns") {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("%d bytes allocated for a header of %d", took, 2*columns)
	}
}
