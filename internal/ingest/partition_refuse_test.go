package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// TestMergeRefuses damages the parts of a build, each in one way.
func TestMergeRefuses(t *testing.T) {
	source := writeCorpus(t, 400, 8)
	o := option.Options{Settings: option.Settings{Sources: []string{source}, MaxLength: 64, ShardBytes: 64 << 10},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	p := planned(t, o, 3)
	longer := o
	longer.MaxLength = 65
	other := planned(t, longer, 3)
	foreign := filepath.Join(t.TempDir(), "other")
	buildParts(t, other, foreign)
	built := filepath.Join(t.TempDir(), "built")
	buildParts(t, p, built)
	first := func(dir string) string { return filepath.Join(dir, "train-p00001-00000.arrow") }
	part := "part-p00001.json"
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		want   string
		cause  error
	}{
		{"missing part", func(dir string) error { return os.Remove(filepath.Join(dir, part)) }, "--partition 1/3", nil},
		{"missing shard", func(dir string) error { return os.Remove(first(dir)) }, "train-p00001-00000.arrow",
			shard.ErrCorrupt},
		{"flipped bit", func(dir string) error {
			data := must(os.ReadFile(first(dir)))
			data[len(data)/2] ^= 4
			return os.WriteFile(first(dir), data, 0o600)
		}, "train-p00001-00000.arrow", shard.ErrCorrupt},
		{"truncated", func(dir string) error { return os.Truncate(first(dir), 999) }, "999", shard.ErrTruncated},
		{"another build's part", func(dir string) error {
			return os.Link(filepath.Join(foreign, part),
				filepath.Join(dir, "x"))
		},
			"", nil},
		{"another build's manifest", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, part), must(os.ReadFile(filepath.Join(foreign, part))), 0o600)
		}, "max-length = 65", dataset.ErrOtherPart},
		{"a part twice", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, part), must(os.ReadFile(filepath.Join(dir, "part-p00002.json"))),
				0o600)
		}, "not the manifest of part 1", shard.ErrCorrupt},
		{"a shard too many", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "train-p00001-00099.arrow"), must(os.ReadFile(first(dir))), 0o600)
		}, "part 1 has", dataset.ErrOtherPart},
		{"a shard of no part", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "train-p00003-00000.arrow"), nil, 0o600)
		}, "train-p00003-00000.arrow", dataset.ErrOtherPart},
		{"a whole build's shard", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "train-00000.arrow"), nil, 0o600)
		}, "train-00000.arrow", dataset.ErrOtherPart},
		{"no plan", func(dir string) error { return os.Remove(filepath.Join(dir, "plan.json")) }, "--plan", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if err := os.CopyFS(dir, os.DirFS(built)); err != nil {
				t.Fatal(err)
			}
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			_, err := merge.Run(context.Background(), merge.Options{Dir: dir})
			if c.want == "" {
				if err != nil {
					t.Errorf("a file that is none of dsload's: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, shardfile.ManifestName)); err == nil {
				t.Error("a manifest was written")
			}
		})
	}
}

// TestPartRefusesChangedSources changes a source after the plan: its size, or a byte of it.
func TestPartRefusesChangedSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	text := strings.Repeat("a line of text\n", 2000)
	put(t, path, []byte(text))
	o := option.Options{Settings: option.Settings{Sources: []string{path}},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, Memory: 64 << 20}}
	p := planned(t, o, 4)
	out := filepath.Join(t.TempDir(), "out")
	var changed *cause.ChangedError
	put(t, path, []byte(strings.Replace(text, "text", "test", 1)))
	if _, err := buildPart(p, 0, out); !errors.As(err, &changed) || !strings.Contains(err.Error(), path) {
		t.Errorf("a changed byte: %v", err)
	}
	if _, err := buildPart(p, 3, out); err != nil {
		t.Errorf("a partition without the changed byte: %v", err)
	}
	put(t, path, []byte(text+"more\n"))
	if _, err := buildPart(p, 2, out); !errors.As(err, &changed) || !strings.Contains(err.Error(), "size") {
		t.Errorf("a changed size: %v", err)
	}
}

// TestPlanRefuses asks for plans that cannot be.
func TestPlanRefuses(t *testing.T) {
	path := writeCorpus(t, 10, 1)
	for _, c := range []struct {
		name string
		o    option.Options
		n    int
		want string
	}{
		{"none", option.Options{Settings: option.Settings{Sources: []string{path}}}, 0, "from 1 to"},
		{"packed", option.Options{Settings: option.Settings{Sources: []string{path}, Pack: pack.BFD}}, 2,
			"pack while serving"},
		{"a secret", option.Options{Settings: option.Settings{
			Sources: []string{"https://u:pw@127.0.0.1:1/x?X-Amz-Signature=s"}}}, 2,
			"a plan keeps no secrets"},
		{"too many", option.Options{Settings: option.Settings{Sources: []string{path}}}, 1_000_000, "from 1 to"},
		{"stdin", option.Options{Settings: option.Settings{Sources: []string{"-"}},
			Resources: option.Resources{Stdin: strings.NewReader("x")}}, 2, "read only once"},
		{"endless", option.Options{Settings: option.Settings{Sources: []string{"synth://wikitext"}, MaxExamples: 5}}, 2,
			"bound it"},
	} {
		c.o.LoadedTokenizer = small()
		if _, err := MakePlan(context.Background(), c.o, c.n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
