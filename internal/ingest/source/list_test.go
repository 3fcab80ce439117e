package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
)

// manyFiles makes a folder of n files of one line each, by hard links to a few.
func manyFiles(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	var original string
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("d%02d", i%7), fmt.Sprintf("f%06d.txt", i))
		if i%500 < 7 {
			original = write(t, dir, strings.TrimPrefix(name, dir), fmt.Sprintf("line %d\n", i))
		} else if err := os.Link(original, name); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The list of a large folder takes the same memory whatever its size, nothing of it stays on disk,
// and its position and parts do not grow.
func TestLongListsAreBounded(t *testing.T) {
	dir, temp := manyFiles(t, 5*maxListed), t.TempDir()
	set := openSet(t, Options{Args: []string{dir}, Places: Places{ScratchDir: temp}})
	defer set.Close()
	if set.Len() != 5*maxListed || len(set.Known()) != 1 || set.Known()[0].Files != 5*maxListed {
		t.Fatalf("%d inputs, known as %+v", set.Len(), set.Known())
	}
	if limit := int64(maxListed*(inputBytes+200) + scratch.TableBytes); set.list.bytes() > limit {
		t.Errorf("the list takes %d bytes, more than %d", set.list.bytes(), limit)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%s is left", left[0])
	}
	records, err := readFrom(t, set, Position{})
	if err != nil || len(records) != 5*maxListed {
		t.Fatal(len(records), err)
	}
	sum := sha256.New()
	for i, r := range records {
		if name := set.URI(r.Input); r.Input != i || i > 0 && name <= set.URI(i-1) {
			t.Fatalf("record %d is of %s", i, name)
		}
		text, err := os.ReadFile(set.URI(i))
		if err != nil || strings.TrimSuffix(string(text), "\n") != r.data {
			t.Fatalf("%s: %q", set.URI(i), r.data)
		}
		fmt.Fprintf(sum, "%s  %s\n", sumOf(text), set.URI(i))
		if data, _ := json.Marshal(r.next); len(data) > 1000 {
			t.Fatalf("a position of %d bytes: %s", len(data), data)
		}
	}
	// Read past the last record, the list is finished.
	r, err := readToEnd(t, set)
	if err != io.EOF {
		t.Fatal(err)
	}
	parts := set.LinesRead(r.Position())
	if want := fmt.Sprintf("sha256:%x", sum.Sum(nil)); len(parts) != 1 || parts[0].Checksum != want ||
		parts[0].Read != set.TotalBytes() {
		t.Errorf("%+v, want %s", parts, want)
	}
	if parts := set.LinesRead(records[3000].next); parts[0].Checksum != "" {
		t.Errorf("a list that was not read to its end has a checksum: %+v", parts)
	}
}

func sumOf(text []byte) checksum.Sum {
	var w frame.Window
	w.Reset(bytes.NewReader(text), len(text)+1, len(text)+1)
	w.Skip(int64(len(text)))
	return w.Sum()
}

// A long list is resumed from any position, in this process and, through JSON, in another one. A
// changed file among those that were read is found.
func TestLongListsResume(t *testing.T) {
	dir := manyFiles(t, maxListed+500)
	one := write(t, t.TempDir(), "one.txt", "a\nb\nc\n")
	o := Options{Args: []string{one, dir, one}}
	all := readAll(t, o)
	finish := func(from Position) (Position, error) {
		set := openSet(t, o)
		defer set.Close()
		r, err := set.Reader(from)
		if err != nil {
			return Position{}, err
		}
		defer r.Close()
		var rec Record
		for err == nil {
			_, err = r.Next(nil, &rec)
		}
		if err != io.EOF {
			return Position{}, err
		}
		return r.Position(), nil
	}
	want, err := finish(Position{})
	if err != nil {
		t.Fatal(err)
	}
	few, positions := []int{3, 1010, len(all) - 2}, []int{0, 2, 3, 4, 900, 1010, 1400, len(all) - 4, len(all) - 2}
	for _, i := range effort.Of(few, positions, positions) {
		data, err := json.Marshal(all[i].next)
		if err != nil {
			t.Fatal(err)
		}
		var at Position
		if err := json.Unmarshal(data, &at); err != nil {
			t.Fatal(err)
		}
		rest, err := readFrom(t, openSet(t, o), at)
		if err != nil || !slices.Equal(outcome(rest, nil), outcome(all[i+1:], nil)) {
			t.Fatalf("behind record %d: %d records, %v", i, len(rest), err)
		}
		end, err := finish(at)
		if got, want := fmt.Sprint(end.Done), fmt.Sprint(want.Done); err != nil || got != want {
			t.Errorf("behind record %d: %s, %v; want %s", i, got, err, want)
		}
	}
	at := all[1200].next
	var changed *cause.ChangedError
	set := openSet(t, o)
	early, late, current := set.URI(100), set.URI(1400), set.URI(1198)
	for _, c := range []struct {
		name, file string
		text       string
		want       string
	}{{"read", early, "x\n", "content"}, {"unread", late, "another line\n", ""},
		{"just read", current, "another text\n", "content"}} {
		old, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		info, _ := os.Stat(c.file)
		os.Remove(c.file) // it is a link
		if err := os.WriteFile(c.file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = readFrom(t, openSet(t, o), at)
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &changed) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want one about %q", c.name, err, c.want)
		}
		os.WriteFile(c.file, old, 0o600)
		os.Chtimes(c.file, time.Time{}, info.ModTime())
	}
	write(t, dir, "d00/one more.txt", "x\n")
	if _, err = readFrom(t, openSet(t, o), at); !errors.As(err, &changed) || changed.What != "number of files" {
		t.Errorf("one more: %v", err)
	}
}

// Very many files that are named one by one are listed together too.
func TestManyNamedFiles(t *testing.T) {
	dir := manyFiles(t, maxListed+10)
	var args []string
	for _, in := range inputsOf(t, openSet(t, Options{Args: []string{dir}})) {
		args = append(args, in.URI)
	}
	set := openSet(t, Options{Args: append(args, "synth://wikitext?docs=1")})
	if k := set.Known(); len(k) != 1 || k[0].Files != int64(len(args)+1) || !strings.Contains(k[0].URI, " … ") {
		t.Errorf("%+v", k)
	}
	if in := inputsOf(t, set); in[len(args)].Synth == nil || in[len(args)-1].URI != args[len(args)-1] {
		t.Error("the inputs are others")
	}
	if records, err := readFrom(t, set, Position{}); err != nil || len(records) != len(args)+1 {
		t.Error(len(records), err)
	}
}

func TestCanceledWalk(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, Options{Args: []string{manyFiles(t, 10)}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
