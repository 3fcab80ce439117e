package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/earlier"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/klauspost/compress/zstd"
)

// jsonLines returns records from..to, each with a text. The one numbered bad is broken.
func jsonLines(from, to, bad int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if i == bad {
			b.WriteString("{\"text\": \"not closed\n")
			continue
		}
		fmt.Fprintf(&b, "{\"text\": \"document number %d%s\"}\n", i, strings.Repeat(" and more", i%13))
	}
	return b.String()
}

// packers write a text as it may be stored, by the end of the file's name.
var packers = map[string]func(t *testing.T, text string) []byte{
	".jsonl": func(_ *testing.T, text string) []byte { return []byte(text) },
	".jsonl.gz": func(t *testing.T, text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	},
	".jsonl.zst": func(t *testing.T, text string) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.EncodeAll([]byte(text), nil)
	},
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// stoppedAtBadRecord builds until the broken record of the source and returns the folder's file system.
func stoppedAtBadRecord(t *testing.T, o option.Options) *shardtest.FS {
	t.Helper()
	fsys := shardtest.New()
	o.FS = fsys
	_, err := Run(context.Background(), o)
	var record *source.RecordError
	if !errors.As(err, &record) {
		t.Fatalf("a build of a broken record: %v", err)
	}
	if u, err := ReadUnfinished(fsys, o.Out); err != nil || u.Examples < 2000 {
		t.Fatalf("kept of 3000 documents: %+v, %v", u, err)
	}
	return fsys
}

// TestCuresOfABadRecord follows each advice of the error, and compares the result with a new build.
func TestCuresOfABadRecord(t *testing.T) {
	const bad = 3000
	broken := jsonLines(0, 5000, bad)
	mended := jsonLines(0, bad, -1) + "{\"text\": \"mended\"}\n" + jsonLines(bad+1, 5000, -1)
	for kind, pack := range packers {
		for _, held := range []int64{0, 40} {
			if held > 0 && kind != ".jsonl" {
				continue
			}
			for _, cure := range []string{"skip", "mend", "mend and skip"} {
				t.Run(fmt.Sprintf("%s, %s, %d held out", kind, cure, held), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "source"+kind)
					put(t, path, pack(t, broken))
					o := option.Options{Out: "data",
						Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, CheckpointEvery: 100},
						Settings:  option.Settings{Sources: []string{path}, MaxValExamples: held, MaxLength: 16}}
					fsys := stoppedAtBadRecord(t, o)
					if strings.Contains(cure, "skip") {
						o.OnBadRecord = "skip"
					}
					if strings.Contains(cure, "mend") {
						put(t, path, pack(t, mended))
					}
					o.FS = fsys
					s := mustBuild(t, o)
					if s.ResumedAt < 2000 {
						t.Errorf("resumed at example %d", s.ResumedAt)
					}
					fresh := shardtest.New()
					o.FS = fresh
					mustBuild(t, o)
					wantSame(t, "cured", files(fresh), files(fsys))
				})
			}
		}
	}
}

// TestCuresThatAreNone changes what was read already, or what decides about it.
func TestCuresThatAreNone(t *testing.T) {
	const bad = 3000
	broken := jsonLines(0, 5000, bad)
	for _, c := range []struct {
		name   string
		held   int64
		text   string // in place of the broken source
		change func(*option.Options)
		want   string
	}{
		{"another beginning", 0, strings.Replace(broken, "number 7", "number 8", 1), nil, "content"},
		{"a shorter source", 0, jsonLines(0, 20, -1), nil, "size"},
		{"text instead", 0, strings.Repeat("plain text\n", 9000), nil, "format"},
		{"so much more that other documents are held out", 400, broken + jsonLines(5000, 50000, -1), nil,
			"number of documents, by which some are chosen for val"},
		{"another length", 0, broken, func(o *option.Options) { o.MaxLength = 17 }, "max-length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "source") // only its content shows the format
			put(t, path, []byte(broken))
			o := option.Options{Out: "data",
				Resources: option.Resources{LoadedTokenizer: small(), CheckpointEvery: 100},
				Settings:  option.Settings{Sources: []string{path}, MaxValExamples: c.held, MaxLength: 16}}
			fsys := stoppedAtBadRecord(t, o)
			put(t, path, []byte(c.text))
			refused := o
			refused.FS = fsys
			if c.change != nil {
				c.change(&refused)
			}
			if _, err := Run(context.Background(), refused); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "overwrite") {
				t.Errorf("%v, want one about %q", err, c.want)
			}
			// The refusal lost nothing.
			put(t, path, []byte(broken))
			o.FS, o.OnBadRecord = fsys, "skip"
			if s := mustBuild(t, o); s.ResumedAt < 2000 {
				t.Errorf("resumed at example %d", s.ResumedAt)
			}
			fresh := shardtest.New()
			o.FS = fresh
			mustBuild(t, o)
			wantSame(t, "after the refusal", files(fresh), files(fsys))
		})
	}
}

// TestSkipIsNotTakenBack: records that were left out cannot be demanded afterwards.
func TestSkipIsNotTakenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "source.jsonl")
	put(t, path, []byte(jsonLines(0, 50_000, 10)))
	fsys := shardtest.New()
	ctx, cancel := context.WithCancel(context.Background())
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), CheckpointEvery: 1, CheckpointInterval: 1, Workers: 1,
			Memory: 48 << 20},
		Settings: option.Settings{Sources: []string{path}, OnBadRecord: "skip"}}
	o.FS = &cancelling{FS: fsys, after: 4, cancel: cancel}
	if _, err := Run(ctx, o); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	o.FS, o.OnBadRecord = fsys, "fail"
	var settings *dataset.SettingsError
	if _, err := Run(context.Background(), o); !errors.As(err, &settings) || settings.Name != "on-bad-record" {
		t.Errorf("back to fail: %v", err)
	}
}

// TestTrainSourcesChangeWhileValIsBuilt: a resume in the second phase looks at the sources of the first, too.
func TestTrainSourcesChangeWhileValIsBuilt(t *testing.T) {
	dir := t.TempDir()
	train, val := filepath.Join(dir, "train.jsonl"), filepath.Join(dir, "val.jsonl")
	put(t, train, []byte(jsonLines(0, 100, -1)))
	put(t, val, []byte(jsonLines(0, 5000, 3000)))
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), CheckpointEvery: 100},
		Settings:  option.Settings{Sources: []string{train}, ValSources: []string{val}}}
	o.FS = stoppedAtBadRecord(t, o)
	o.OnBadRecord = "skip"
	put(t, train, []byte(jsonLines(1000, 1100, -1)))
	var changed *cause.ChangedError
	if _, err := Run(context.Background(), o); !errors.As(err, &changed) || changed.URI != train {
		t.Errorf("a source of train that changed: %v", err)
	}
}

// TestFinishedComparesSources builds, changes something, and builds again: "already built" only
// where the sources are what they were.
func TestFinishedComparesSources(t *testing.T) {
	later := time.Now().Add(time.Hour)
	text := strings.Repeat("some words of a line\n", 50)
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string, fsys *shardtest.FS, o *option.Options)
		stale  string // in the error; "" where the dataset is the right one
	}{
		{"nothing", func(*testing.T, string, *shardtest.FS, *option.Options) {}, ""},
		{"touched", func(t *testing.T, dir string, _ *shardtest.FS, _ *option.Options) {
			if err := os.Chtimes(filepath.Join(dir, "a.txt"), later, later); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"run.json lost", func(_ *testing.T, _ string, fsys *shardtest.FS,
			_ *option.Options) {
			fsys.Remove("data/run.json")
		}, ""},
		{"size", func(t *testing.T, dir string, _ *shardtest.FS, _ *option.Options) {
			put(t, filepath.Join(dir, "b.txt"), []byte(text+"more\n"))
		}, "b.txt changed: it had 1050 bytes and has 1055"},
		{"content", func(t *testing.T, dir string, _ *shardtest.FS, _ *option.Options) {
			put(t, filepath.Join(dir, "a.txt"), []byte("S"+text[1:]))
			if err := os.Chtimes(filepath.Join(dir, "a.txt"), later, later); err != nil {
				t.Fatal(err)
			}
		}, "a.txt changed: it was modified at "},
		{"content, run.json lost", func(t *testing.T, dir string, fsys *shardtest.FS, _ *option.Options) {
			put(t, filepath.Join(dir, "a.txt"), []byte("S"+text[1:]))
			fsys.Remove("data/run.json")
		}, "a.txt changed"},
		{"one more", func(t *testing.T, dir string, _ *shardtest.FS, _ *option.Options) {
			put(t, filepath.Join(dir, "c.txt"), []byte(text))
		}, "c.txt is new; `append` adds what is new"},
		{"one less", func(t *testing.T, dir string, _ *shardtest.FS, _ *option.Options) {
			if err := os.Remove(filepath.Join(dir, "b.txt")); err != nil {
				t.Fatal(err)
			}
		}, "b.txt is no longer among the sources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, fsys := t.TempDir(), shardtest.New()
			put(t, filepath.Join(dir, "a.txt"), []byte(text))
			put(t, filepath.Join(dir, "b.txt"), []byte(text))
			o := option.Options{Out: "data",
				Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
				Settings:  option.Settings{Sources: []string{dir}}}
			mustBuild(t, o)
			c.change(t, dir, fsys, &o)
			s, err := Run(context.Background(), o)
			var stale *earlier.StaleError
			switch {
			case c.stale == "" && (err != nil || !s.AlreadyBuilt):
				t.Errorf("%+v, %v; want it built already", s, err)
			case c.stale != "" && (!errors.As(err, &stale) || !strings.Contains(err.Error(), c.stale) ||
				!strings.Contains(err.Error(), "`overwrite`")):
				t.Errorf("%v; want one with %q", err, c.stale)
			}
			if o.Overwrite = true; c.stale != "" {
				if s := mustBuild(t, o); s.AlreadyBuilt {
					t.Error("--overwrite did not build")
				}
			}
		})
	}
}

// A remote source without an ETag and a time is compared by its size, and a note says so.
func TestFinishedComparesSizesAlone(t *testing.T) {
	srv := remotetest.New()
	defer srv.Close()
	for tag, noted := range map[string]bool{"-": true, "": false} {
		srv.Put("/a.txt", remotetest.File{Data: []byte("a line\n"), ETag: tag})
		o := remoteOptions(srv.URL + "/a.txt")
		o.Out, o.FS = "data", shardtest.New()
		if s := mustBuild(t, o); strings.Contains(fault.Join(s.Notes, "\n").String(), "ETag") {
			t.Errorf("the first build has the notes %q", s.Notes)
		}
		s := mustBuild(t, o)
		said := strings.Contains(fault.Join(s.Notes, "\n").String(), "neither an ETag nor a time: 1 source, with the first "+srv.URL)
		if !s.AlreadyBuilt || said != noted {
			t.Errorf("ETag %q: built already is %v, notes %q", tag, s.AlreadyBuilt, s.Notes)
		}
	}
}

// A source that a budget left half read has no checksum: only its time shows a change.
func TestFinishedComparesSourcesThatABudgetCut(t *testing.T) {
	path, fsys := filepath.Join(t.TempDir(), "a.txt"), shardtest.New()
	put(t, path, []byte(strings.Repeat("a line\n", 100)))
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
		Settings:  option.Settings{Sources: []string{path}, MaxExamples: 10}}
	mustBuild(t, o)
	if s := mustBuild(t, o); !s.AlreadyBuilt || len(s.CutBy) != 1 {
		t.Errorf("%+v", s)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	var stale *earlier.StaleError
	if _, err := Run(context.Background(), o); !errors.As(err, &stale) {
		t.Errorf("touched: %v", err)
	}
}

func TestStandardInputIsNeverAlreadyBuilt(t *testing.T) {
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings:  option.Settings{Sources: []string{"-"}}}
	o.Stdin = strings.NewReader("one\ntwo\n")
	mustBuild(t, o)
	o.Stdin = strings.NewReader("one\ntwo\n")
	var stale *earlier.StaleError
	if _, err := Run(context.Background(), o); !errors.As(err, &stale) || stale.URI != "standard input" {
		t.Errorf("standard input again: %v", err)
	}
}
