package earlier

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// open opens files as the only set of sources, and returns what a manifest says of them.
func open(t *testing.T, paths ...string) (Sources, *shard.Manifest) {
	t.Helper()
	set, err := source.Open(t.Context(), source.Options{Args: paths, Format: source.Text})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	m := &shard.Manifest{}
	for i, in := range set.Known() {
		sum, err := set.Checksum(i)
		if err != nil {
			t.Fatal(err)
		}
		m.Sources = append(m.Sources, shard.SourceInfo{URI: in.URI, Bytes: in.Size, Checksum: sum.Sum.Tagged()})
	}
	return Sources{FS: shardfile.OS(), Out: t.TempDir(), Sets: []*source.Set{set}}, m
}

// TestUnchanged: which changes of the sources make a dataset stale.
func TestUnchanged(t *testing.T) {
	for _, c := range []struct {
		name        string
		change      func(dir string, paths []string) []string
		stale, adds bool
	}{
		{"nothing", func(_ string, paths []string) []string { return paths }, false, false},
		{"time", func(_ string, paths []string) []string {
			os.Chtimes(paths[0], time.Time{}, time.Unix(1e9, 0))
			return paths
		}, false, false},
		{"size", func(_ string, paths []string) []string {
			os.WriteFile(paths[0], []byte("another length\n"), 0o600)
			return paths
		}, true, false},
		{"content", func(_ string, paths []string) []string {
			os.WriteFile(paths[1], []byte("TWO\n"), 0o600)
			return paths
		}, true, false},
		{"one less", func(_ string, paths []string) []string { return paths[:1] }, true, false},
		{"order", func(_ string, paths []string) []string { return []string{paths[1], paths[0]} }, true, false},
		{"one more", func(dir string, paths []string) []string {
			more := filepath.Join(dir, "more")
			os.WriteFile(more, []byte("more\n"), 0o600)
			return append(paths, more)
		}, true, true},
		{"another", func(dir string, paths []string) []string {
			more := filepath.Join(dir, "more")
			os.WriteFile(more, []byte("more\n"), 0o600)
			return []string{paths[0], more}
		}, true, false},
	} {
		dir := t.TempDir()
		paths := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
		for i, text := range []string{"one\n", "two\n"} {
			if err := os.WriteFile(paths[i], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, m := open(t, paths...)
		now, _ := open(t, c.change(dir, slices.Clone(paths))...)
		err := now.Unchanged(m)
		stale, is := errors.AsType[*StaleError](err)
		if is != c.stale || is && (stale.New != c.adds || fault.KindOf(err) != fault.Usage) || !is && err != nil {
			t.Errorf("%s: stale %v: %v", c.name, is, err)
		}
	}
}

// TestSettings: which settings an addition may have of its own, and which additions are the last one again.
func TestSettings(t *testing.T) {
	old := `{"additions":[{"sources":["a"]},{"on-bad-record":"fail","sources":["b"]}],"max-length":512,"sources":["z"],"tokenizer":"gpt2","tokenizer-fingerprint":"0123456789"}`
	for _, c := range []struct {
		name, now string
		differs   string
		number    int // of the addition; 0 for the last one again
	}{
		{"new", `{"max-length":512,"sources":["c"],"tokenizer":"gpt2","tokenizer-fingerprint":"0123456789"}`, "", 3},
		{"of its own", `{"format":"text","max-examples":3,"max-length":512,"sources":["b"],"tokenizer":"x","tokenizer-fingerprint":"0123456789"}`, "", 3},
		{"again", `{"max-length":512,"on-bad-record":"skip","sources":["b"],"tokenizer-fingerprint":"0123456789"}`, "", 0},
		{"length", `{"max-length":256,"sources":["c"],"tokenizer-fingerprint":"0123456789"}`, "max-length", 0},
		{"one more", `{"dedup":"exact","max-length":512,"sources":["c"],"tokenizer-fingerprint":"0123456789"}`, "dedup", 0},
		{"one less", `{"sources":["c"],"tokenizer-fingerprint":"0123456789"}`, "max-length", 0},
		{"tokenizer", `{"max-length":256,"sources":["c"],"tokenizer-fingerprint":"9876543210"}`, "tokenizer", 0},
	} {
		a := &Addition{Manifest: &shard.Manifest{Settings: json.RawMessage(old)}, Number: 1}
		merged, err := a.merged(&option.Options{Out: "out"}, json.RawMessage(c.now), nil)
		if differs, is := errors.AsType[*AppendError](err); is != (c.differs != "") || is && (differs.Name != c.differs || fault.KindOf(err) != fault.Usage) {
			t.Errorf("%s: %v, want a difference in %q", c.name, err, c.differs)
		}
		if err != nil {
			continue
		}
		var got struct {
			Additions []struct {
				Sources []string `json:"sources"`
			} `json:"additions"`
			MaxLength int      `json:"max-length"`
			Sources   []string `json:"sources"`
		}
		if err := json.Unmarshal(merged, &got); err != nil {
			t.Fatal(err)
		}
		if a.added != (c.number == 0) || !a.added && (a.Number != c.number || len(got.Additions) != c.number) ||
			a.added && len(got.Additions) != 2 || got.MaxLength != 512 || !slices.Equal(got.Sources, []string{"z"}) {
			t.Errorf("%s: added before %v, number %d: %s", c.name, a.added, a.Number, merged)
		}
	}
}

// TestNewFiles: a file of a folder that the dataset has is passed over, a changed one refused, and one of a folder of very
// many files, which the manifest does not name, too.
func TestNewFiles(t *testing.T) {
	many, err := filepath.Abs("many")
	if err != nil {
		t.Fatal(err)
	}
	m := &shard.Manifest{Sources: []shard.SourceInfo{{URI: "d/a.txt", Bytes: 3, Checksum: "sum"}, {URI: "many/*.txt", Files: 9},
		{URI: "hf://datasets/o/n/a.txt", Bytes: 3, ETag: "1"}}}
	for _, c := range []struct {
		in      source.Stat
		sum     string
		has     bool
		changed bool
		option  fault.Option
	}{
		{source.Stat{URI: "d/a.txt", Size: 3}, "sum", true, false, ""},
		{source.Stat{URI: "d/a.txt", Size: 3}, "other", true, true, ""},
		{source.Stat{URI: "d/a.txt", Size: 4}, "sum", true, true, ""},
		{source.Stat{URI: "d/b.txt", Size: 3}, "sum", false, false, ""},
		{source.Stat{URI: filepath.Join(many, "b.txt"), Size: 3}, "sum", false, false, "append"},
		{source.Stat{URI: many + "y/b.txt", Size: 3}, "sum", false, false, ""},
		{source.Stat{URI: "hf://datasets/o/n/a.txt", Size: 3, ETag: "1"}, "", true, false, ""},
		{source.Stat{URI: "hf://datasets/o/n/a.txt", Size: 3, ETag: "2"}, "", true, true, ""},
	} {
		a := &Addition{Manifest: m}
		a.place(m)
		has, err := a.has(c.in, func() (string, error) { return c.sum, nil })
		if has != c.has || fault.OptionOf(err) != c.option || (len(a.changed) > 0) != c.changed {
			t.Errorf("%+v: has %v, changed %v: %v", c.in, has, a.changed, err)
		}
		if explained := a.Explain(nil); (explained != nil) != c.changed || c.changed && fault.OptionOf(explained) != "append" {
			t.Errorf("%+v: %v", c.in, explained)
		}
	}
	a, err := Open(&option.Options{Out: filepath.Join(t.TempDir(), "none"), Resources: option.Resources{FS: shardfile.OS()}})
	if a != nil || fault.OptionOf(err) != "append" {
		t.Error(fmt.Errorf("no dataset: %v, %w", a, err))
	}
}
