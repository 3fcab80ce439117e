package ingest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// countedSlowly counts what each source gave to a split whose rows are not packed, from the rows and the origins of
// their documents, without the figures of text.
func countedSlowly(t *testing.T, fsys *shardtest.FS, m *shard.Manifest, split string) (want []shard.SourceCounts) {
	t.Helper()
	found := must(origins.OpenSplit(fsys, "data", m, split))
	defer found.Close()
	last := int64(-1)
	for _, row := range readRows(t, fsys, "data", split) {
		o, ok, err := found.Find(row.Document)
		if err != nil || !ok {
			t.Fatal(row.Document, ok, err)
		}
		if n := len(want); n == 0 || want[n-1].URI != o.Source {
			want = append(want, shard.SourceCounts{URI: o.Source})
		}
		c := &want[len(want)-1]
		c.Rows++
		c.Tokens += int64(len(row.AppendInputIDs(nil)))
		if row.Document != last {
			last = row.Document
			c.Documents++
		}
		switch {
		case m.Schema.Labels:
			c.LossTokens += int64(len(row.AppendLabels(nil)))
		case m.Schema.LossMask:
			for _, on := range row.LossMask {
				if on {
					c.LossTokens++
				}
			}
		default:
			c.LossTokens = c.Tokens
		}
	}
	return want
}

// withoutText leaves out sources without rows, and what the texts of the others had.
func withoutText(sources []shard.SourceCounts) (out []shard.SourceCounts) {
	for _, c := range sources {
		if c.TextBytes, c.TextTokens = 0, 0; c.Rows > 0 {
			out = append(out, c)
		}
	}
	return out
}

// TestSourcesAreCounted compares what the manifest says of sources and loss with the rows.
func TestSourcesAreCounted(t *testing.T) {
	effort.RacedElsewhere(t)
	texts := partitionSources(t)
	pair := filepath.Join(t.TempDir(), "pair.jinja")
	put(t, pair, []byte(`{% block prompt %}{{ n }}{% endblock %}{% block target %}{{ text }}{% endblock %}`))
	chats, template := writeChats(t, 200)
	more, _ := writeChats(t, 90)
	for name, s := range map[string]option.Settings{
		"texts":   {MaxLength: 16, EOS: option.OwnToken},
		"val":     {MaxLength: 48, MaxValExamples: 60, MaxExamples: 500},
		"sources": {ValSources: texts[1:3], MaxLength: 48, MaxTokens: 9000},
		"copies":  {Dedup: filter.Exact, Overflow: "drop", MaxLength: 30},
		"pairs":   {Sources: texts[1:2], Template: pair, MaxLength: 48},
		"causal":  {Sources: texts[1:2], Template: pair, CausalPairs: true, MaxLength: 20},
		"chats":   {Sources: []string{chats, more}, ChatTemplate: template, Format: source.Chat, MaxLength: 100, MaxValExamples: 30},
	} {
		t.Run(name, func(t *testing.T) {
			o := option.Options{Out: "data", Settings: s, Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()}}
			if len(s.Sources) == 0 {
				o.Sources = texts
			}
			fsys := o.FS.(*shardtest.FS)
			sum := mustBuild(t, o)
			m := must(shard.ReadManifest(fsys, "data"))
			for i := range m.Splits {
				split := &m.Splits[i]
				want := countedSlowly(t, fsys, m, split.Name)
				if got := withoutText(split.Sources); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s:\n%+v, want\n%+v", split.Name, got, want)
				}
				loss := int64(0)
				for _, c := range want {
					loss += c.LossTokens
				}
				if said := sum.Splits[i]; *said.LossTokens != loss || *said.LossShare != float64(loss)/float64(said.Tokens) {
					t.Errorf("%s: loss on %d (%v), want %d", split.Name, *said.LossTokens, *said.LossShare, loss)
				}
			}
		})
	}
}

// TestSourcesOfPackedRows: documents, tokens and loss of each source are those of the documents that were packed, also
// where a build is interrupted with open windows.
func TestSourcesOfPackedRows(t *testing.T) {
	effort.RacedElsewhere(t)
	for _, policy := range []pack.Policy{pack.Wrapped, pack.BFDSplit} {
		t.Run(string(policy), func(t *testing.T) {
			o := packOptions(t, policy, effort.Of(1500, 3000, 3000), 3)
			o.Sources = append(o.Sources, writeCorpus(t, 4, 4), writeCorpus(t, effort.Of(1000, 2000, 2000), 5))
			o.EOS = option.OwnToken
			plain := o
			plain.Pack, plain.FS = pack.None, shardtest.New()
			mustBuild(t, plain)
			want := must(shard.ReadManifest(plain.FS, "data")).Splits[0].Sources
			files, _ := builtWhole(t, o)
			m := must(shard.ParseManifest("manifest.json", files["data/manifest.json"]))
			got := m.Splits[0].Sources
			for i := range got {
				if got[i].Rows == 0 || got[i].Rows > m.Splits[0].Examples {
					t.Errorf("%s is in %d of %d rows", got[i].URI, got[i].Rows, m.Splits[0].Examples)
				}
				got[i].Rows = want[i].Rows // of packed rows it is another figure
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v, want\n%+v", got, want)
			}
			wantSameWithAnyResources(t, o, files)
			o.Workers, o.Memory, o.CheckpointEvery, o.CheckpointInterval = 1, 64<<20, 100, 1
			wantSameWhenInterrupted(t, o, 4, files)
		})
	}
}
