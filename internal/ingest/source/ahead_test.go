package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// What is decompressed before its turn gives the same records, positions and errors, from the beginning and from the
// middle, also where the reading ends early.
func TestFilesAhead(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		for k := range 300 {
			fmt.Fprintf(z, "{\"text\": \"%d of %d\"}\n", k, i)
		}
		z.Close()
		write(t, dir, fmt.Sprintf("%d.jsonl.gz", i), b.String())
		write(t, dir, fmt.Sprintf("%d.txt", i), "one\ntwo\n")
	}
	for _, damaged := range []bool{false, true} {
		if damaged {
			data, err := os.ReadFile(dir + "/2.jsonl.gz")
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "3.jsonl.gz", string(data[:len(data)*3/4]))
		}
		set := openSet(t, Options{Args: []string{dir}})
		want, wantErr := readFrom(t, set, Position{})
		if (wantErr != nil) != (damaged) || len(want) < 10 || !set.Decodes() {
			t.Fatal(len(want), wantErr)
		}
		for _, workers := range []int{1, 3} {
			set.Spend(Spare{Workers: workers, Bytes: int64(workers) * 2 * aheadFile})
			for from := 0; from < len(want); from += 1 + len(want)/2 {
				at, rest := Position{}, want
				if from > 0 {
					at, rest = want[from-1].next, want[from:]
				}
				got, err := readFrom(t, set, at)
				if !reflect.DeepEqual(rest, got) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%d workers, from record %d: %v, want %v: %s", workers, from, err, wantErr,
						cmp.Diff(rest, got, cmp.AllowUnexported(piece{})))
				}
			}
			r, err := set.Reader(Position{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Next(nil, new(Record)); err != nil {
				t.Fatal(err)
			}
			r.Close()
		}
	}
}

// TestFilesAheadShareTheRoom: the file that is read keeps what it took before its turn, beside those that come next.
func TestFilesAheadShareTheRoom(t *testing.T) {
	dir := t.TempDir()
	for i := range 6 {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, "one\ntwo\n")
		z.Close()
		write(t, dir, fmt.Sprintf("%d.txt.gz", i), b.String())
	}
	set := openSet(t, Options{Args: []string{dir}})
	spare := Spare{Workers: 3, Bytes: 3 * aheadFile}
	set.Spend(spare)
	r, err := set.Reader(Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rec Record
	files := map[int]*rawFile{}
	for rec.Input < 2 {
		maps.Copy(files, r.upcoming)
		if _, err := r.Next(nil, &rec); err != nil {
			t.Fatal(err)
		}
	}
	maps.Copy(files, r.upcoming)
	taken, n := int64(0), 0
	for i, raw := range files {
		if in, err := set.Input(i); err != nil {
			t.Fatal(err)
		} else if i >= rec.Input {
			taken += raw.aheadBytes + in.readerBytes(&set.opts)
			n++
		}
	}
	if n != 1+spare.Workers || taken > spare.Bytes {
		t.Errorf("%d files may take %d bytes, want %d and at most %d", n, taken, 1+spare.Workers, spare.Bytes)
	}
}

// TestFramesBeside: frames that are decompressed beside each other give the same records, positions and errors as one
// after another, from the beginning and from the middle, in the memory that is spare.
func TestFramesBeside(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var frames, text []byte
	for k := 0; len(frames) < 2<<20; k++ {
		text = fmt.Appendf(text[:0], "%d begins in this frame", k)
		for range 1 << 18 {
			text = append(text, ' '+byte(rng.Uint32N(64)))
		}
		frames = z.EncodeAll(text, frames)
		frames = z.EncodeAll([]byte("\n"), frames)
	}
	dir := t.TempDir()
	for what, data := range map[string][]byte{"whole": frames, "cut off": frames[:len(frames)-1000],
		"followed": append(frames, "other bytes"...), "in UTF-16": z.EncodeAll([]byte("\xff\xfea\x00\n\x00"), nil)} {
		if what == "in UTF-16" {
			data = append(data, frames...)
		}
		set := openSet(t, Options{Args: []string{write(t, dir, "frames.txt.zst", string(data))}})
		want, wantErr := readFrom(t, set, Position{})
		if len(want) < 5 || !set.Decodes() {
			t.Fatal(what, len(want), wantErr)
		}
		for _, workers := range []int{1, 3} {
			set.Spend(Spare{Workers: workers, Bytes: int64(workers) * aheadFile})
			for from := 0; from < len(want); from += 1 + len(want)/2 {
				at, rest := Position{}, want
				if from > 0 {
					at, rest = want[from-1].next, want[from:]
				}
				got, err := readFrom(t, set, at)
				if diff := cmp.Diff(rest, got, cmp.AllowUnexported(piece{})); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%s, %d workers, from record %d: %v, want %v: %s", what, workers, from, err, wantErr, diff)
				}
			}
		}
		r, err := set.Reader(Position{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(nil, new(Record)); err != nil {
			t.Fatal(err)
		}
		raw, o := r.open.raw, &set.opts
		taken := int64(raw.lanes) * (raw.aheadBytes + r.in.Compression.MemoryBytes(raw.window))
		if beside := raw.frames != nil; beside != (what != "in UTF-16") || raw.lanes != 3 || taken > o.spare.Bytes+r.in.readerBytes(o) {
			t.Errorf("%s: frames %v, %d beside each other, which take %d bytes", what, beside, raw.lanes, taken)
		}
		r.Close()
	}
}
