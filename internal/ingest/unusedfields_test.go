package ingest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// TestUnusedFields: every field with a value is counted unless something uses it, however records come.
func TestUnusedFields(t *testing.T) {
	long := strings.Repeat("some words ", job.PieceBytes/4)
	named := `{{ m.name }}`
	for _, c := range []struct {
		name, data, want string
		with             func(o *option.Options)
	}{
		{"a.jsonl", `{"id":1,"label":3,"text":"a","note":"","tags":[],"more":{},"none":null}` + "\n" +
			`{"tags":["x"],"text":"b","label":0,"label":1,"url":"u"}` + "\n" + `{"text":"c","l\u0061bel":false}`,
			"label 3, tags 1", nil},
		{"a.jsonl", `{"a":{"b":"text","c":1},"d":2,"e":3}`, "e 1",
			func(o *option.Options) { o.TextField, o.Where = "a.b", []string{"d=2"} }},
		{"a.jsonl", `{"a":"x","b":"y","c":"z"}`, "c 1", func(o *option.Options) { o.TextField = "a,b" }},
		{"a.jsonl", `{"text":"kept","x":1}` + "\n" + `{"text":5,"x":1}` + "\n" + `{"text":"left out","x":2}`, "",
			func(o *option.Options) { o.OnBadRecord, o.Where = option.SkipBadRecord, []string{"x=1"} }},
		{"a.jsonl", `{"before":1,"text":"` + long + `","after":2,"end":null}` + "\n" + `{"text":"b","after":[1]}`,
			"after 2, before 1", nil},
		{"a.json", `[{"text":"a","x":1}, {"x":"","text":"b"}]`, "x 1", nil},
		{"a.csv", "id,text,x,y\n1,a,,2\n2,b,3,4\n", "x 1, y 2", nil},
		{"a.arrow", tableOf(t, "text", "x", "y", "source"), "x 1, y 1", nil},
		{"a.arrow", tableOf(t, "text", "x", "y"), "y 1", func(o *option.Options) { o.Where = []string{"x=some words"} }},
		{"a.txt", "a line\n", "", nil},
		{"chat.jsonl", `{"messages":[{"role":"user","content":"q","name":"Ann","mood":"sad"},` +
			`{"role":"assistant","content":"a","mood":"gay","id":7}],"persona":"pirate","messages2":null}`,
			"messages[].mood 2, messages[].name 1, persona 1", nil},
		{"parts.jsonl", `{"messages":[{"role":"user","content":[{"type":"text","text":"q","note":"n"},{"text":"r","note":1,"id":7}]},` +
			`{"role":"assistant","content":"a"}]}`, "messages[].content[].note 2", nil},
		{"named.jsonl", `{"messages":[{"role":"user","content":"q","name":"Ann"},{"role":"assistant","content":"a"}]}`, "", nil},
		{"kwargs.jsonl", `{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":{"m":0,"thinking":false,"none":null,"tools":[{}]}}` + "\n" +
			`{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":"{\"thinking\":true}"}` + "\n" +
			`{"messages":[{"role":"user","content":"q"}],"chat_template_kwargs":"thinking"}`,
			"chat_template_kwargs 1, chat_template_kwargs.thinking 2", nil},
		{"turns.jsonl", `{"messages":[{"human":"q","model":"lost","assistant":"a","mood":"sad"}]}`,
			"messages[].model 1, messages[].mood 1", nil},
		{"sharegpt.jsonl", `{"messages":[{"from":"human","value":"q","content":"other"},{"from":"gpt","role":"user","value":"a"}]}`,
			"messages[].content 1, messages[].role 1", nil},
		{"chosen.jsonl", `{"prompt":"other ","chosen":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}` + "\n" +
			`{"prompt":"q\n","chosen":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, "prompt 1", nil},
		{"chosen.jsonl", `{"prompt":"q","chosen":"a","rejected":"b","margin":2,"label":true}`, "margin 1", nil},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, c.name), []byte(c.data))
		o := option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New()},
			Settings: option.Settings{Sources: []string{filepath.Join(dir, c.name)}, MaxLength: 64}}
		if strings.Contains(c.data, "messages") || strings.Contains(c.data, "chosen") {
			o.Format, o.TrainOn, o.ChatTemplate = source.Chat, chat.TrainAll, filepath.Join(dir, "t.jinja")
			body := `{% for m in messages %}{{ m.role }}{{ m.content }}` + map[bool]string{true: named}[c.name == "named.jsonl"]
			put(t, o.ChatTemplate, []byte(body+`{% endfor %}`))
		}
		if c.with != nil {
			c.with(&o)
		}
		wantUnused(t, c.name+" "+c.data[:min(len(c.data), 60)], mustBuild(t, o).Unused, c.want)
		o.Out = "other"
		p, err := Preview(context.Background(), o, 9)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(fault.Join(p.Notes, "\n").String(), "nothing used"); said != (c.want != "") {
			t.Errorf("%s: the preview has the notes %q", c.name, p.Notes)
		}
	}
}

// wantUnused compares the counts of fields, whose names come in order.
func wantUnused(t *testing.T, what string, got map[string]int64, want string) {
	t.Helper()
	have := fmt.Sprint(got)
	want = "map[" + strings.ReplaceAll(strings.ReplaceAll(want, ", ", ","), " ", ":") + "]"
	if want = strings.ReplaceAll(want, ",", " "); have != want {
		t.Errorf("%s:\n%s, want\n%s", what, have, want)
	}
}

// writeOddRecords writes records that have fields in any order, and more names than can be counted.
func writeOddRecords(t *testing.T, n int) (path string) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var b strings.Builder
	for i := range n {
		fields := []string{fmt.Sprintf(`"text":"document number %d"`, i)}
		for _, name := range []string{"label", "rubric", "persona"} {
			if rnd.IntN(3) > 0 {
				fields = append(fields, fmt.Sprintf(`%q:%s`, name, []string{"null", "1", `""`, `"x"`}[rnd.IntN(4)]))
			}
		}
		if i > n/2 {
			fields = append(fields, fmt.Sprintf(`"made up %d":true`, rnd.IntN(9000)))
		}
		rnd.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		b.WriteString("{" + strings.Join(fields, ",") + "}\n")
	}
	path = filepath.Join(t.TempDir(), "odd.jsonl")
	put(t, path, []byte(b.String()))
	return path
}

// TestUnusedFieldsAnyway: what is counted does not depend on workers, memory, interrupts and partitions.
func TestUnusedFieldsAnyway(t *testing.T) {
	records := effort.Of(4000, 20_000, 20_000)
	o := option.Options{Out: "data",
		Settings: option.Settings{Sources: []string{writeOddRecords(t, records)}, MaxLength: 48, MaxExamples: int64(records * 3 / 4), ShardBytes: 16 << 10,
			Dedup: filter.Exact},
		Resources: option.Resources{LoadedTokenizer: small(), Workers: 3, Memory: 80 << 20, CheckpointEvery: 10,
			CheckpointInterval: 1}}
	want, ops := builtWhole(t, o)
	wantSameWithAnyResources(t, o, want)
	for _, k := range []int{ops / 4, ops / 2, ops * 3 / 4} {
		if !wantSameAfterCrash(t, o, k, want) {
			t.Errorf("no crash at operation %d of %d", k, ops)
		}
	}

	o.MaxExamples, o.Out = 0, filepath.Join(t.TempDir(), "whole")
	whole := mustBuild(t, o)
	if len(whole.Unused) != 256 || whole.MoreUnused == 0 || whole.Unused["label"] == 0 {
		t.Errorf("%d names are counted, and %d more fields", len(whole.Unused), whole.MoreUnused)
	}
	out := filepath.Join(t.TempDir(), "parts")
	buildParts(t, planned(t, o, 3), out)
	if _, err := merge.Run(context.Background(), merge.Options{Dir: out}); err != nil {
		t.Fatal(err)
	}
	m, err := shard.ReadManifest(shardfile.OS(), out)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"label", "rubric", "persona"} {
		if got := m.Counters["unused_"+name]; got != whole.Unused[name] {
			t.Errorf("%s: %d in partitions, %d in one build", name, got, whole.Unused[name])
		}
	}
	if s := mustBuild(t, o); !s.AlreadyBuilt || !maps.Equal(s.Unused, whole.Unused) {
		t.Error("the finished dataset does not say the same")
	}
}
