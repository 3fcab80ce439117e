package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

const endOfText = 50256 // of gpt2

// pieces returns the ids of each segment of packed rows, in order.
func pieces(rows []shard.Row) (out [][]uint32) {
	for _, row := range rows {
		ids := row.AppendInputIDs(nil)
		for _, n := range row.Segments {
			out = append(out, ids[:n])
			ids = ids[n:]
		}
	}
	return out
}

func sorted(pieces [][]uint32) [][]uint32 {
	slices.SortFunc(pieces, slices.Compare[[]uint32])
	return pieces
}

// packOptions returns options of a build with several windows, the last of which is not full.
func packOptions(t testing.TB, policy pack.Policy, lines int, seed uint64) option.Options {
	return option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
		Settings: option.Settings{Sources: []string{writeCorpus(t, lines, seed)}, Pack: policy, MaxLength: 64,
			PackWindow: 2000, ShardBytes: 64 << 10}}
}

// documents returns whole documents with their end, as a build without packing has them.
func documents(t testing.TB, o option.Options) (out [][]uint32) {
	t.Helper()
	o.Pack, o.EOS, o.MaxLength, o.FS = pack.None, option.OwnToken, 1<<20, shardtest.New()
	mustBuild(t, o)
	for _, split := range []string{splitTrain, splitVal} {
		for _, row := range readRows(t, o.FS, "data", split) {
			out = append(out, row.AppendInputIDs(nil))
		}
	}
	return out
}

// TestPackedDocuments: every document is in the rows once, as the policy says.
func TestPackedDocuments(t *testing.T) {
	for _, policy := range pack.Policies[1:] {
		t.Run(string(policy), func(t *testing.T) {
			o := packOptions(t, policy, 600, 11)
			s := mustBuild(t, o)
			whole, rows := documents(t, o), readRows(t, o.FS, "data", splitTrain)
			var want [][]uint32
			var dropped, truncated int64
			for _, d := range whole {
				switch n := len(d); {
				case policy == pack.BFD && n > o.MaxLength:
					want = append(want, d[:o.MaxLength])
					dropped += int64(n - 1 - o.MaxLength) // the end is not text
					truncated++
				default:
					want = slices.AppendSeq(want, slices.Chunk(d, o.MaxLength))
				}
			}
			got := pieces(rows)
			if policy == pack.Wrapped {
				got, want = [][]uint32{slices.Concat(got...)}, [][]uint32{slices.Concat(whole...)}
				for i, row := range rows[:len(rows)-1] {
					if len(row.InputIDs) != 2*o.MaxLength {
						t.Fatalf("row %d of %d is not full", i, len(rows))
					}
				}
				n := 0
				for _, row := range rows { // a segment ends where a document or its row does
					for i, size := range row.Segments {
						n += int(size)
						if last := i == len(row.Segments)-1; !last && got[0][n-1] != endOfText {
							t.Fatalf("a segment ends within a document")
						}
					}
				}
			}
			if fmt.Sprint(sorted(got)) != fmt.Sprint(sorted(want)) {
				t.Error("other pieces of documents")
			}
			p := s.Packing
			if p == nil || p.Policy != policy || p.Length != o.MaxLength || p.DroppedTokens != dropped ||
				p.Truncated != truncated {
				t.Errorf("%+v; dropped %d of %d documents", p, dropped, truncated)
			}
			if f := s.Splits[0].Fill; f < 0.93 || f > 1 ||
				f != float64(s.Splits[0].Tokens)/float64(s.Splits[0].Examples*int64(o.MaxLength)) {
				t.Errorf("fill %v", f)
			}
			if report, err := shard.Verify(t.Context(), o.FS, "data", nil); err != nil || len(report) > 0 {
				t.Errorf("verify: %v, %v", report, err)
			}
		})
	}
}

// TestPackedRowsAreNamedAfterTheirFirstDocument: document and part of a row.
func TestPackedRowsAreNamedAfterTheirFirstDocument(t *testing.T) {
	for _, policy := range pack.Policies[1:] {
		o := packOptions(t, policy, 300, 12)
		mustBuild(t, o)
		whole := documents(t, o)
		for i, row := range readRows(t, o.FS, "data", splitTrain) {
			d := whole[row.Document][int(row.Part)*o.MaxLength:]
			found := false
			for _, piece := range pieces([]shard.Row{row}) {
				for at := 0; at == 0 || policy == pack.Wrapped && at < min(len(d), o.MaxLength); at++ {
					found = found || len(d[at:]) >= len(piece) && slices.Equal(d[at:at+len(piece)], piece)
				}
			}
			if !found {
				t.Fatalf("%s: row %d is not of document %d part %d", policy, i, row.Document, row.Part)
			}
		}
	}
}

// TestPackedBytes: workers, memory, checkpoints and interruptions change no byte of a packed dataset.
func TestPackedBytes(t *testing.T) {
	for _, policy := range pack.Policies[1:] {
		t.Run(string(policy), func(t *testing.T) {
			base := packOptions(t, policy, effort.Of(1000, 3000, 3000), 13)
			base.MaxValExamples, base.CheckpointEvery = 20, 20
			mustBuild(t, base)
			want := files(base.FS.(*shardtest.FS))
			if n := len(readRows(t, base.FS, "data", splitVal)); n != 20 {
				t.Fatalf("%d rows of val", n)
			}
			wantSameWithAnyResources(t, base, want)
			base.Workers, base.Memory, base.CheckpointInterval = 1, 64<<20, 1
			wantSameWhenInterrupted(t, base, 4, want)
		})
	}
}

// TestPackedCrashes stops packed builds at operations of the file system, and resumes them.
func TestPackedCrashes(t *testing.T) {
	for i, policy := range pack.Policies[1:] {
		base := packOptions(t, policy, 200, 14)
		base.MaxValExamples, base.Workers, base.CheckpointEvery, base.CheckpointInterval = 5, 2, 20, 1
		want, ops := builtWhole(t, base)
		for k := 1 + i; k <= ops && wantSameAfterCrash(t, base, k, want); k += effort.Of(37, 17, 1) {
		}
	}
}

// TestPackedBudgets: budgets of rows, tokens and bytes are exact, and rows stay full where one ends the build.
func TestPackedBudgets(t *testing.T) {
	for _, policy := range pack.Policies[1:] {
		for _, n := range effort.Of([]int64{29}, []int64{1, 29, 90}, []int64{1, 2, 29, 30, 90}) {
			t.Run(fmt.Sprint(policy, n), func(t *testing.T) {
				base := packOptions(t, policy, 700, 15)
				total := func(o option.Options) (s *report.Summary, rows, tokens int64) {
					o.FS = shardtest.New()
					s = mustBuild(t, o)
					for _, split := range s.Splits {
						rows += split.Examples
						tokens += split.Tokens
					}
					return s, rows, tokens
				}
				o := base
				o.MaxExamples = n
				s, rows, tokens := total(o)
				full := n * int64(o.MaxLength) * 9 / 10
				if n < 10 { // the documents that would fill so few rows leave more of them open
					full = n * int64(o.MaxLength) / 2
				}
				if rows != n || !slices.Equal(s.CutBy, []string{"max-examples"}) || n > 1 && tokens < full {
					t.Errorf("max-examples: %d rows of %d tokens, cut by %v", rows, tokens, s.CutBy)
				}
				o = base
				o.MaxTokens, o.MaxValExamples = 64*n+7, min(n, 3)
				if s, _, tokens = total(o); tokens != o.MaxTokens || len(s.Splits) != 2 {
					t.Errorf("max-tokens %d: %d tokens, %+v", o.MaxTokens, tokens, s.Splits)
				}
				o = base
				o.MaxBytes = 100 * n
				if s, _, _ = total(o); s.TextBytes > o.MaxBytes || s.TextBytes < o.MaxBytes-3 ||
					!strings.Contains(s.Stopped.String(), "`max-bytes`") {
					t.Errorf("max-bytes: %d, stopped: %s", s.TextBytes, s.Stopped)
				}
				o = base
				o.MaxValExamples = n
				if s, _, _ = total(o); s.Splits[1].Examples != n || s.Stopped.String() != stoppedAtEnd {
					t.Errorf("max-val-examples: %+v, stopped: %s", s.Splits, s.Stopped)
				}
				o.ValSources = []string{writeCorpus(t, 700, 16)}
				if s, _, _ = total(o); s.Splits[1].Examples != n {
					t.Errorf("max-val-examples of val: %+v", s.Splits)
				}
			})
		}
	}
}

// TestPackedBudgetAtTheEnd: a budget that the last window reaches leaves nothing of the sources unread.
func TestPackedBudgetAtTheEnd(t *testing.T) {
	o := packOptions(t, pack.BFD, 200, 17)
	all := mustBuild(t, o).Splits[0].Examples
	o.MaxExamples, o.FS = all-1, shardtest.New()
	s := mustBuild(t, o)
	m, err := shard.ReadManifest(o.FS, "data")
	if err != nil {
		t.Fatal(err)
	}
	if s.Splits[0].Examples != all-1 || m.Sources[0].Checksum == "" {
		t.Errorf("%+v, %+v", s.Splits, m.Sources)
	}
}

// TestPackedMasks: the mask of a causal pair stays with its tokens, and rows without a target are left out.
func TestPackedMasks(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	rnd := rand.New(rand.NewPCG(5, 5))
	for i := range 400 {
		prompt := strings.Repeat("ask ", 1+rnd.IntN(12))
		if i%50 == 7 {
			prompt = strings.Repeat("ask ", 300)
		}
		fmt.Fprintf(&lines, "{\"p\": %q, \"t\": %q}\n", prompt, strings.Repeat(" answer", 1+rnd.IntN(9)))
	}
	source, template := filepath.Join(dir, "pairs.jsonl"), filepath.Join(dir, "pair.jinja")
	put(t, source, []byte(lines.String()))
	put(t, template, []byte(`{% block prompt %}{{ p }}{% endblock %}{% block target %}{{ t }}{% endblock %}`))
	for _, policy := range pack.Policies[1:] {
		o := packOptions(t, policy, 1, 1)
		o.Sources, o.Template, o.CausalPairs, o.LoadedTokenizer = []string{source}, template, true, gpt2()
		s := mustBuild(t, o)
		for i, row := range readRows(t, o.FS, "data", splitTrain) {
			ids := row.AppendInputIDs(nil)
			if !slices.Contains(row.LossMask, true) {
				t.Errorf("%s: nothing of row %d is trained on", policy, i)
			}
			for j, id := range ids {
				token, _ := gpt2().Token(id)
				if row.LossMask[j] != (strings.Contains(token, "answer") || id == endOfText) {
					t.Fatalf("%s: row %d, token %q: mask %v", policy, i, token, row.LossMask[j])
				}
			}
		}
		if s.WithoutTarget == 0 {
			t.Errorf("%s: rows of prompts alone are not counted", policy)
		}
		if _, err := Run(context.Background(), func() option.Options {
			o.CausalPairs, o.FS = false,
				shardtest.New()
			return o
		}()); err == nil ||
			!strings.Contains(err.Error(), "causal-pairs") {
			t.Errorf("targets in a column of their own: %v", err)
		}
	}
}

func TestPackRefusals(t *testing.T) {
	corpus := writeCorpus(t, 5, 1)
	for _, c := range []struct {
		o      option.Options
		option string
	}{
		{option.Options{Settings: option.Settings{Pack: "nosuch"}}, "pack"},
		{option.Options{Settings: option.Settings{Pack: pack.BFD, Overflow: example.Chunk}}, "overflow"},
		{option.Options{Settings: option.Settings{Pack: pack.BFD, Overflow: example.Drop}}, "overflow"},
		{option.Options{Settings: option.Settings{Pack: pack.BFDSplit, Overflow: example.Truncate}}, "overflow"},
		{option.Options{Settings: option.Settings{Pack: pack.Wrapped, Overflow: example.Truncate}}, "overflow"},
		{option.Options{Settings: option.Settings{Pack: pack.Wrapped, SpecialTokens: option.SpecialOfChunk}},
			"special-tokens"},
		{option.Options{Settings: option.Settings{Pack: pack.BFD, MaxLength: pack.MaxLength + 1}}, "max-length"},
	} {
		o := c.o
		o.Out, o.LoadedTokenizer, o.Sources, o.FS = "data", small(), []string{corpus}, shardtest.New()
		var option *fault.Error
		if _, err := Run(context.Background(), o); !errors.As(err, &option) || string(option.Option) != c.option {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	for _, s := range []option.Settings{{Pack: pack.BFD, Overflow: example.Truncate}, {Pack: "bestfit"},
		{Pack: "concat"},
		{Pack: pack.None, Overflow: example.Drop}} {
		o := option.Options{Settings: s}
		o.Out, o.LoadedTokenizer, o.Sources, o.FS = "data", small(), []string{corpus}, shardtest.New()
		mustBuild(t, o)
	}
}

// TestPackedEnds: packed documents end with the tokenizer's own token unless another is named, or none is wanted.
func TestPackedEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for eos, end := range map[string]int{"": endOfText, option.OwnToken: endOfText, option.NoToken: -1, "50256": endOfText} {
		for _, policy := range []pack.Policy{pack.BFD, pack.Wrapped} {
			o := option.Options{Out: "data",
				Resources: option.Resources{LoadedTokenizer: gpt2(), FS: shardtest.New()},
				Settings:  option.Settings{Sources: []string{path}, Pack: policy, EOS: option.Token(eos)}}
			mustBuild(t, o)
			row := readRows(t, o.FS, "data", splitTrain)[0]
			for _, ids := range pieces([]shard.Row{row}) {
				if len(row.Segments) != 2 || end < 0 && len(ids) != 1 || end >= 0 && int(ids[len(ids)-1]) != end {
					t.Errorf("%s, eos %q: %v, segments %v", policy, eos, row.AppendInputIDs(nil), row.Segments)
				}
			}
		}
	}
}
