package merge

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// parts is a folder of parts, of which a test writes the small files.
type parts struct {
	t *testing.T
	Options
	g *merged
}

func newParts(t *testing.T, of int) *parts {
	p := plan.New(of)
	p.Parts = make([]plan.Entry, of)
	return &parts{t, Options{Dir: t.TempDir(), FS: shardfile.OS()}, &merged{plan: p}}
}

// put writes a file of a part, and tells the merge of it.
func (p *parts) put(part int, name string, data []byte) (path string) {
	p.t.Helper()
	own := shardfile.Part{Number: part, Of: p.g.plan.Partitions}.ExtraName(name)
	path = filepath.Join(p.Dir, own)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		p.t.Fatal(err)
	}
	sum := blake3.Sum256(data)
	p.g.noteFiles(part, &shard.Manifest{Files: []shard.FileInfo{{Name: own, Bytes: int64(len(data)), BLAKE3: hex.EncodeToString(sum[:])}}})
	return path
}

// joined returns what the merge makes of a file of the parts.
func (p *parts) joined(name string) ([]byte, error) {
	files, end := p.g.files(p.Options)
	defer end()
	return io.ReadAll(files[name])
}

// TestJoinedHashes: the hashes of the parts follow each other, and a changed byte of one is found.
func TestJoinedHashes(t *testing.T) {
	rng := effort.Random(t)
	p := newParts(t, 5)
	var want []byte
	var last string
	for part := range 5 {
		data := make([]byte, rng.IntN(200_000)+1)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		last = p.put(part, shardfile.HashesName(0), data)
		want = append(want, data...)
	}
	if got, err := p.joined(shardfile.HashesName(0)); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, want %d: %v", len(got), len(want), err)
	}
	data, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	data[rng.IntN(len(data))] ^= 1
	if err := os.WriteFile(last, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.joined(shardfile.HashesName(0)); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a changed byte: %v", err)
	}
}

// TestJoinedOrigins: the origins of parts, cut between inputs or inside one, are those of the single build.
func TestJoinedOrigins(t *testing.T) {
	rng := effort.Random(t)
	for range 20 {
		p := newParts(t, 4)
		var single, of origins.Writer
		var whole, pages []byte
		part, first, record := 0, 0, int64(0)
		input := 0
		end := func() {
			p.put(part, shardfile.OriginsName, slices.Concat([]byte(origins.Magic), pages, of.Rest()))
			of, pages = origins.Writer{}, nil
		}
		for ordinal := range int64(20_000) {
			begins := rng.IntN(3000) == 0
			if begins {
				input, record = input+1, 0
			}
			if part < 3 && ordinal > 0 && rng.IntN(4000) == 0 {
				end()
				part++
				first = input
				if !begins {
					p.g.plan.Parts[part].From.Offset = 1
				}
			}
			record += int64(1 + rng.IntN(2))
			name := func() string { return "file " + strconv.Itoa(input) }
			if err := single.Add(ordinal, input, record, name, func(page []byte) error { whole = append(whole, page...); return nil }); err != nil {
				t.Fatal(err)
			}
			if err := of.Add(ordinal, input-first, record, name, func(page []byte) error { pages = append(pages, page...); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		end()
		want := slices.Concat([]byte(origins.Magic), whole, single.Rest())
		if got, err := p.joined(shardfile.OriginsName); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d parts: %d bytes, want %d: %v", part+1, len(got), len(want), err)
		}
	}
}

// TestVisit: what the parts counted adds up, and a part that read other documents than the plan counted is corrupt.
func TestVisit(t *testing.T) {
	p := newParts(t, 3)
	p.g.plan.Phases = []plan.Phase{{Inputs: make([]source.Listed, 3), Documents: 30}}
	for i := range p.g.plan.Parts {
		p.g.plan.Parts[i].From = source.Mark{Input: i, Ordinal: int64(10 * i)}
	}
	visit := func(part int, change func(l *plan.Left)) error {
		l := plan.Left{Ordinals: []int64{int64(10 * (part + 1))}, Seconds: 1}
		l.Counts = counts.Counts{Numbers: counts.Numbers{Documents: 10, Rejected: int64(part)}, DroppedBy: map[string]int64{"match": 2}}
		l.Bad.Add(report.Reject{Source: fmt.Sprint(part), Reason: "bad", Records: int64(part)})
		change(&l)
		state, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return p.g.visit(part, &shard.Manifest{Part: &shard.PartitionInfo{State: state}})
	}
	for part := range 3 {
		if err := visit(part, func(*plan.Left) {}); err != nil {
			t.Fatal(err)
		}
	}
	c := p.g.counts
	if c.Documents != 30 || c.Rejected != 3 || !maps.Equal(c.DroppedBy, map[string]int64{"match": 6}) || p.g.seconds != 3 ||
		len(p.g.bad.List) != 3 {
		t.Errorf("%+v in %v seconds, bad %+v", c, p.g.seconds, p.g.bad.List)
	}
	if err := visit(1, func(l *plan.Left) { l.Ordinals[0]++ }); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("another number of documents: %v", err)
	}
	for name, change := range map[string]func(l *plan.Left){
		"stopped": func(l *plan.Left) { l.Ordinals[0]--; l.Stopped = "max-examples" },
		"cut":     func(l *plan.Left) { l.Ordinals[0]--; l.Counts.CutBy = []string{"max-examples"} },
	} {
		if err := visit(1, change); err != nil {
			t.Errorf("%s by a budget: %v", name, err)
		}
	}
}

// TestNoParts: a folder without a plan is a wrong call.
func TestNoParts(t *testing.T) {
	if _, err := Run(t.Context(), Options{Dir: t.TempDir()}); fault.KindOf(err) != fault.Usage {
		t.Errorf("kind %q: %v", fault.KindOf(err), err)
	}
}
