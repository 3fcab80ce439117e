package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

// writeCorpus makes a text file of some lines: a few longer than a piece, some empty, some equal.
func writeCorpus(t testing.TB, lines int, seed uint64) string {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	word := func() {
		for range 1 + rnd.IntN(9) {
			b.WriteByte(byte('a' + rnd.IntN(26)))
		}
	}
	for i := range lines {
		n := rnd.IntN(30)
		if i%500 == 250 {
			n = 3 * job.PieceBytes / 6
		}
		for j := range n {
			if j > 0 {
				b.WriteByte(' ')
			}
			word()
		}
		if i%7 == 3 {
			b.WriteString("the same words")
		}
		if i%11 == 5 {
			b.WriteString(" Ünïcode 漢字 \xff\xfe.")
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gpt2 is loaded once for all tests.
var gpt2 = sync.OnceValue(func() *tokenize.Tokenizer {
	return must(tokenizers.Open("gpt2", tokenizers.Options{}))
})

// small is a tokenizer with the first tokens of gpt2. Each worker of each build puts the vocabulary
// into its cache, which takes longer than the small builds of most tests.
var small = sync.OnceValue(func() *tokenize.Tokenizer {
	v := must(builtin.Ranks("gpt2"))
	return must(tokenize.FromRanks(tokenize.Ranks{Name: "small", Pattern: v.Split, Tokens: v.Tokens[:2000],
		Special: v.Special}))
})

func mustBuild(t testing.TB, o option.Options) *report.Summary {
	t.Helper()
	s, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files returns the bytes of a finished dataset in an in-memory file system, without run.json.
func files(fsys *shardtest.FS) map[string][]byte {
	all := fsys.Files()
	for name := range all {
		if strings.HasSuffix(name, shardfile.RunName) {
			delete(all, name)
		}
	}
	return all
}

func wantSame(t testing.TB, what string, want, got map[string][]byte) {
	t.Helper()
	for name, data := range want {
		if !bytes.Equal(data, got[name]) {
			t.Fatalf("%s: %s differs (%d bytes, want %d)", what, name, len(got[name]), len(data))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Fatalf("%s: %s is left over", what, name)
		}
	}
}

func TestBytesDependOnOutputOptionsOnly(t *testing.T) {
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small()},
		Settings: option.Settings{Sources: []string{writeCorpus(t, 3000, 1),
			writeCorpus(t, 500, 2)}, MaxValExamples: 100, ShardBytes: 100 << 10, MaxLength: 100}}
	want, _ := builtWhole(t, base)
	wantSameWithAnyResources(t, base, want)
}

func TestResumeAfterInterruptsGivesTheSameBytes(t *testing.T) {
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 1, Memory: 48 << 20, CheckpointEvery: 100,
			CheckpointInterval: 1},
		Settings: option.Settings{Sources: []string{writeCorpus(t, 8000, 3)}, MaxValExamples: 50, ShardBytes: 100 << 10,
			MaxLength: 64}}
	want, _ := builtWhole(t, base)
	wantSameWhenInterrupted(t, base, 30, want)
}

// cancelling ends a context at an operation of the file system.
type cancelling struct {
	shardfile.FS
	after  int64
	calls  atomic.Int64
	cancel context.CancelFunc
}

func (c *cancelling) SyncDir(name string) error {
	if c.calls.Add(1) == c.after {
		c.cancel()
	}
	return c.FS.SyncDir(name)
}

// TestCrashAtEveryOperation stops whole builds at operation after operation of the file system,
// loses what was not synced, and continues.
func TestCrashAtEveryOperation(t *testing.T) {
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, CheckpointEvery: 60, CheckpointInterval: 1},
		Settings: option.Settings{Sources: []string{writeCorpus(t, 700, 5)}, MaxValExamples: 20, ShardBytes: 24 << 10,
			MaxLength: 64}}
	want, ops := builtWhole(t, base)
	crashes := 0
	for k := 1; k <= ops && wantSameAfterCrash(t, base, k, want); k += effort.Of(19, 7, 1) {
		crashes++
	}
	t.Logf("%d crashes in a build of %d operations", crashes, ops)
}

// TestFaultsLoseNothing makes one operation fail after another; the same build afterwards completes to the same bytes.
func TestFaultsLoseNothing(t *testing.T) {
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, CheckpointEvery: 60, CheckpointInterval: 1},
		Settings:  option.Settings{Sources: []string{writeCorpus(t, 700, 6)}, ShardBytes: 24 << 10, MaxLength: 64}}
	want, ops := builtWhole(t, base)
	failed := 0
	for k := 1; k <= ops; k += effort.Of(41, 11, 1) {
		for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
			fsys := shardtest.New()
			fsys.FailAt(k, fault, k%2 == 0)
			o := base
			o.FS = fsys
			_, err := Run(context.Background(), o)
			if err == nil {
				continue // the failure had no effect, such as that of a close
			}
			if !errors.Is(err, fault) {
				t.Fatalf("%v at operation %d: the build says %v", fault, k, err)
			}
			failed++
			if _, err := Run(context.Background(), o); err != nil {
				t.Fatalf("after %v at operation %d: %v", fault, k, err)
			}
			wantSame(t, fmt.Sprintf("%v at operation %d", fault, k), want, files(fsys))
		}
	}
	if failed == 0 {
		t.Error("no fault was noticed")
	}
	t.Logf("%d faults in a build of %d operations", failed, ops)
}

func TestBudgetsAreExact(t *testing.T) {
	effort.RacedElsewhere(t)
	corpus := writeCorpus(t, 2000, 7)
	base := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small()},
		Settings:  option.Settings{Sources: []string{corpus}, MaxLength: 50}}
	total := func(s *report.Summary) (examples, tokens int64) {
		for _, split := range s.Splits {
			examples += split.Examples
			tokens += split.Tokens
		}
		return
	}
	for _, n := range []int64{1, 37, 1000} {
		o := base
		o.FS, o.MaxExamples = shardtest.New(), n
		s := mustBuild(t, o)
		if examples, _ := total(s); examples != n || !strings.Contains(s.Stopped.String(), "`max-examples`") {
			t.Errorf("--max-examples %d gave %d, stopped: %s", n, examples, s.Stopped)
		}
		o = base
		o.FS, o.MaxTokens = shardtest.New(), n
		s = mustBuild(t, o)
		if _, tokens := total(s); tokens != n || !strings.Contains(s.Stopped.String(), "`max-tokens`") {
			t.Errorf("--max-tokens %d gave %d, stopped: %s", n, tokens, s.Stopped)
		}
		o = base
		o.FS, o.MaxBytes = shardtest.New(), 10*n
		s = mustBuild(t, o)
		if s.TextBytes > 10*n || s.TextBytes < 10*n-3 || !strings.Contains(s.Stopped.String(), "`max-bytes`") {
			t.Errorf("--max-bytes %d gave %d, stopped: %s", 10*n, s.TextBytes, s.Stopped)
		}
		o = base
		o.FS, o.MaxValExamples = shardtest.New(), n/3+1
		s = mustBuild(t, o)
		if got := s.Splits[len(s.Splits)-1]; got.Name != "val" || got.Examples != n/3+1 ||
			s.Stopped.String() != stoppedAtEnd {
			t.Errorf("--max-val-examples %d gave %+v, stopped: %s", n/3+1, got, s.Stopped)
		}
	}
}

// TestEveryDocumentOnce compares a build with the plain reading of its source: documents in order,
// ids as the tokenizer gives them.
func TestEveryDocumentOnce(t *testing.T) {
	effort.RacedElsewhere(t)
	corpus := writeCorpus(t, 1500, 8)
	fsys := shardtest.New()
	mustBuild(t, option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
		Settings:  option.Settings{Sources: []string{corpus}, MaxLength: 77}})
	data, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	encoder := small().NewEncoder(tokenize.EncoderOptions{})
	rows := readRows(t, fsys, "data", splitTrain)
	at, document := 0, int64(0)
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		want := encoder.AppendTokens(nil, []byte(strings.ToValidUTF8(string(line), "\uFFFD")))
		if bytes.Contains(line, []byte("\xff\xfe")) { // one U+FFFD for each ill-formed byte
			want = encoder.AppendTokens(nil, bytes.ReplaceAll(line, []byte("\xff\xfe"), []byte("\uFFFD\uFFFD")))
		}
		var got []uint32
		for part := int32(0); len(got) < len(want); part++ {
			if at == len(rows) {
				t.Fatalf("%d rows end within document %d", at, document)
			}
			row := rows[at]
			if row.Document != document || row.Part != part {
				t.Fatalf("row %d is document %d part %d, want %d part %d", at, row.Document, row.Part, document, part)
			}
			got = row.AppendInputIDs(got)
			at++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("document %d: ids differ", document)
		}
		document++
	}
	if at != len(rows) {
		t.Errorf("%d rows for %d in the dataset", at, len(rows))
	}
}

func TestSettingsMustMatchToResume(t *testing.T) {
	fsys := shardtest.New()
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
		Settings:  option.Settings{Sources: []string{writeCorpus(t, 100, 9)}}}
	mustBuild(t, o)
	if s := mustBuild(t, o); !s.AlreadyBuilt {
		t.Error("the same build again did not find the dataset finished")
	}
	o.MaxLength = 99
	var settings *dataset.SettingsError
	if _, err := Run(context.Background(), o); !errors.As(err, &settings) || settings.Name != "max-length" {
		t.Errorf("another --max-length: %v", err)
	}
	o.Overwrite = true
	if s := mustBuild(t, o); s.AlreadyBuilt {
		t.Error("--overwrite found the dataset finished")
	}
}

func TestChangedSourceIsRefused(t *testing.T) {
	corpus := writeCorpus(t, 8000, 10)
	fsys := shardtest.New()
	ctx, cancel := context.WithCancel(context.Background())
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 1, Memory: 48 << 20, CheckpointEvery: 10,
			CheckpointInterval: 1},
		Settings: option.Settings{Sources: []string{corpus}, MaxLength: 64}}
	o.FS = &cancelling{FS: fsys, after: 8, cancel: cancel}
	if _, err := Run(ctx, o); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	data, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(corpus)
	data[10] ^= 1
	if err := os.WriteFile(corpus, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(corpus, time.Now(), info.ModTime()); err != nil { // only the content shows the change
		t.Fatal(err)
	}
	o.FS = fsys
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "content changed") {
		t.Errorf("a changed source: %v", err)
	}
}

func TestRunRecordIsTheOnlyFileThatDiffers(t *testing.T) {
	fsys := shardtest.New()
	mustBuild(t, option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: fsys},
		Settings:  option.Settings{Sources: []string{writeCorpus(t, 50, 11)}}})
	var run map[string]any
	for name, data := range fsys.Files() {
		if strings.HasSuffix(name, shardfile.RunName) {
			if err := json.Unmarshal(data, &run); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, field := range []string{"finished", "host", "seconds", "workers"} {
		if run[field] == nil {
			t.Errorf("run.json lacks %s", field)
		}
	}
}
