//go:build unix

package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// mapped returns the options of a build of one file through a command.
func mapped(t *testing.T, name, text, command string) option.Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	put(t, path, []byte(text))
	return option.Options{Out: "data", Resources: option.Resources{LoadedTokenizer: small(), Workers: 2},
		Settings: option.Settings{Sources: []string{path}, Map: command, MaxLength: 40}}
}

// shardOf builds and returns the bytes of the shard, and the summary.
func shardOf(t *testing.T, o option.Options) ([]byte, *report.Summary) {
	t.Helper()
	fsys := shardtest.New()
	o.FS = fsys
	s := mustBuild(t, o)
	rows := fsys.Files()["data/train-00000.arrow"]
	if len(rows) == 0 {
		t.Fatal("no shard")
	}
	return rows, s
}

// TestMapTakesEveryFormat sends records through cat: the rows are those of the file itself.
func TestMapTakesEveryFormat(t *testing.T) {
	long := strings.Repeat("many words ", 3*job.PieceBytes/11) // comes whole
	for _, c := range []struct{ name, text, field string }{
		{"a.txt", "one\ttab and \"quotes\"\n\nÜnïcode 漢字 \\ \x01 \xff\xfe.\n" + long + "\n", ""},
		{"a.jsonl", jsonLines(0, 500, -1) + "{\"text\":\"\xff \\u00e9\\ud83d\"}\n", ""},
		{"a.json", "[{\"id\": 1,\n\"text\": \"over\\nlines\"},\r\n {\"text\": \"b\"}]", ""},
		{"a.csv", "id,body\n1,\"a \"\"b\"\"\nc\"\n2,\xff\n", "body"},
	} {
		o := mapped(t, c.name, c.text, "")
		o.TextField = c.field
		want, plain := shardOf(t, o)
		o.Map = "cat"
		got, s := shardOf(t, o)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: rows differ", c.name)
		}
		if s.Mapped != s.Documents || s.Documents != plain.Documents || s.Replaced != plain.Replaced {
			t.Errorf("%s: %d of %d documents through the map, %d parts replaced; without it %d documents, %d parts",
				c.name,
				s.Mapped, s.Documents, s.Replaced, plain.Documents, plain.Replaced)
		}
	}
}

// TestMapTakesColumns sends the rows of files of columns through commands: cat changes nothing, and one that answers
// with another column was sent that.
func TestMapTakesColumns(t *testing.T) {
	arrow := filepath.Join(t.TempDir(), "a.arrow")
	put(t, arrow, []byte(tableOf(t, "score", "text")))
	groups := filepath.Join("testdata", "groups.parquet")
	for _, c := range []struct{ path, column, lines string }{
		{scoresFile, "score", string(scoresAsLines())}, {groups, "", ""},
		{arrow, "score", `{"score":"some words","text":"some words"}`},
	} {
		o := mapped(t, "a.jsonl", c.lines, "")
		lines := o.Sources
		o.Sources = []string{c.path}
		want, plain := shardOf(t, o)
		o.Map = "cat"
		got, s := shardOf(t, o)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: rows differ", c.path)
		}
		if s.Mapped != s.Documents || s.Documents != plain.Documents {
			t.Errorf("%s: %d of %d documents through the map, %d without it", c.path, s.Mapped, s.Documents,
				plain.Documents)
		}
		if c.column == "" {
			continue
		}
		o.Map = `sed -E 's/.*"` + c.column + `": *("[^"]*"|[0-9]+|null).*/{"text":"is \1"}/; s/"is "([^"]*)""/"is \1"/'`
		got, _ = shardOf(t, o)
		o.Sources = lines
		if want, _ = shardOf(t, o); !bytes.Equal(got, want) {
			t.Errorf("%s: its column %s differs from that of lines", c.path, c.column)
		}
	}
}

// runToCheckpoint runs a build, to its fourth checkpoint if it is to be stopped.
func runToCheckpoint(o option.Options, stop bool) (*report.Summary, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	saved := 0
	o.Now = func() time.Time { // asked for at checkpoints
		if saved++; saved == 4 && stop {
			cancel()
		}
		return time.Now()
	}
	return Run(ctx, o)
}

// TestMapResumes interrupts a build again and again: its bytes are those of one run.
func TestMapResumes(t *testing.T) {
	lines := jsonLines(0, 20_000, 2000) // many more jobs than may be in flight
	o := mapped(t, "a.jsonl", lines, "sed 's/document/record of/'")
	o.OnBadRecord, o.CheckpointEvery, o.CheckpointInterval = option.SkipBadRecord, 1, 1
	whole := shardtest.New()
	o.FS = whole
	if s := mustBuild(t, o); s.Mapped != 19_999 || s.Rejected != 1 {
		t.Fatalf("%d records through the map, %d rejected", s.Mapped, s.Rejected)
	}
	fsys := shardtest.New()
	o.FS = fsys
	interrupted := 0
	for ; ; interrupted++ {
		s, err := runToCheckpoint(o, interrupted < 3)
		if err == nil {
			if s.Mapped != 19_999 {
				t.Errorf("%d records through the map", s.Mapped)
			}
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
	if interrupted == 0 {
		t.Error("nothing was interrupted")
	}
	wantSame(t, "resumed", files(whole), files(fsys))
}

// TestMapThatFails builds through commands that break the rules, then through the same one mended.
func TestMapThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		kept         bool
	}{
		"dies":    {`NR>1500{print "boom" > "/dev/stderr"; exit 3} {print}`, "exit status 3.*1,500.*boom", true},
		"fewer":   {`NR%1000 {print}`, "fewer", false},
		"more":    {`{print} NR==2500 {print}`, "more answers than the 3,000.*3,001 or more", false},
		"within":  {`NR>1500{printf "{\"text\": \"ha"; exit} {print}`, `within a line, after.*ha.*1,500 of`, false},
		"breaks":  {`NR>1500{printf "{\"te"; exit 2} {print}`, `failed within a line, after.*te.*(exit status 2)`, true},
		"exits":   {`NR>1500{exit} {print}`, "fewer.*1,500", false},
		"no JSON": {`NR==1500{print "Loading"} {print}`, "not a JSON object", true},
		"blank":   {`NR==1500{print ""} {print}`, "not a JSON object", true},
		"status":  {`{print} END {exit 4}`, "answered all 3,000.*exit status 4", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := mapped(t, "a.jsonl", jsonLines(0, 3000, -1), "")
			script := filepath.Join(t.TempDir(), "script")
			o.Map, o.CheckpointEvery, o.CheckpointInterval = "awk -f "+script, 1, 1
			put(t, script, []byte(c.script))
			fsys := shardtest.New()
			o.FS = fsys
			_, err := Run(context.Background(), o)
			if err == nil || !matches(c.want, err.Error()) {
				t.Fatalf("the build ended with %v", err)
			}
			u, err := ReadUnfinished(fsys, o.Out)
			if kept := err == nil && u.Documents > 0; kept != c.kept {
				t.Errorf("documents kept: %v", kept)
			}
			put(t, script, []byte(`{print}`))
			mustBuild(t, o)
			want := o
			fresh := shardtest.New()
			want.FS = fresh
			mustBuild(t, want)
			wantSame(t, "mended", files(fresh), files(fsys))
		})
	}
}

// TestMapThatAnswersTooMuch: a command that waits for somebody to read its answers before it reads on, and one that
// answers without reading, end the build, which keeps nothing of them.
func TestMapThatAnswersTooMuch(t *testing.T) {
	for _, command := range []string{"sed p", `while :; do echo '{"text": "x"}'; done`,
		`exec 0<&-; while :; do echo '{"text": "x"}'; done`} {
		o := mapped(t, "a.jsonl", jsonLines(0, 20_000, -1), command)
		fsys := shardtest.New()
		o.FS, o.CheckpointEvery, o.CheckpointInterval = fsys, 1, 1
		_, err := Run(context.Background(), o)
		if !errors.Is(err, read.ErrMiscounted) ||
			!matches("more answers than the .* records it got: .* or more", err.Error()) {
			t.Errorf("%s: the build ended with %v", command, err)
		}
		if u, err := ReadUnfinished(fsys, o.Out); err == nil && u.Documents > 0 {
			t.Errorf("%s: %d documents are kept", command, u.Documents)
		}
	}
}

// TestMapLeavesOut: a record that is answered with null is left out and counted, whatever interrupts the build.
func TestMapLeavesOut(t *testing.T) {
	o := mapped(t, "a.jsonl", jsonLines(0, 5000, -1), `awk '/[37]"/{print " null"; next} {print}'`)
	o.Dedup = filter.Exact
	want := o
	want.Map, want.NoMatch = "cat", []string{"[37]$"}
	whole, plain := shardtest.New(), shardtest.New()
	o.FS, want.FS = whole, plain
	s, other := mustBuild(t, o), mustBuild(t, want)
	if s.DroppedBy["map"] == 0 || s.DroppedBy["map"] != other.DroppedBy["no-match"] || s.Mapped != 5000 ||
		s.Documents != other.Documents {
		t.Errorf("%+v, by a filter %+v", s.Counts, other.Counts)
	}
	if !bytes.Equal(whole.Files()["data/train-00000.arrow"], plain.Files()["data/train-00000.arrow"]) {
		t.Error("other rows than where a filter leaves them out")
	}
	o.CheckpointEvery, o.CheckpointInterval, o.FS = 1, 1, shardtest.New()
	for interrupted := 0; ; interrupted++ {
		s, err := runToCheckpoint(o, interrupted < 3)
		if err == nil {
			if s.DroppedBy["map"] != other.DroppedBy["no-match"] || s.Mapped != 5000 {
				t.Errorf("resumed: %+v", s.Counts)
			}
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
	wantSame(t, "resumed", files(whole), files(o.FS.(*shardtest.FS)))
	o.Map, o.FS, o.Where, o.Now = "sed 's/.*/null/'", shardtest.New(), []string{"id>=0"}, nil
	if _, err := Run(context.Background(), o); err == nil || !matches("no document is left: documents left out by "+
		"`map`, which answered null: 5,000 of 5,000 read", err.Error()) || strings.Contains(err.Error(), `"id"`) {
		t.Errorf("nothing is left: %v", err)
	}
}

func matches(pattern, text string) bool {
	for part := range strings.SplitSeq(pattern, ".*") {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// TestMapThatChanged resumes through a command whose answers are not those that the checkpoint was made of.
func TestMapThatChanged(t *testing.T) {
	for name, scripts := range map[string][2]string{
		"other answers": {`NR>1500{exit 1} {print}`, `{sub("document", "text"); print}`},
		"left one out":  {`NR>1500{exit 1} NR!=7{print}`, `{print}`},
		"counts what was": {`NR>1500{exit 1} {sub("document", "text " NR); print}`,
			`{sub("document", "text " NR); print}`},
	} {
		o := mapped(t, "a.jsonl", jsonLines(0, 3000, -1), "")
		script := filepath.Join(t.TempDir(), "script")
		o.Map, o.FS, o.CheckpointEvery, o.CheckpointInterval = "awk -f "+script, shardtest.New(), 1, 1
		put(t, script, []byte(scripts[0]))
		if _, err := Run(context.Background(), o); err == nil {
			t.Fatalf("%s: no error", name)
		}
		put(t, script, []byte(scripts[1]))
		_, err := Run(context.Background(), o)
		if !errors.Is(err, read.ErrOtherAnswer) {
			t.Errorf("%s: resumed with %v", name, err)
		}
		o.Overwrite = true
		mustBuild(t, o)
	}
}

// TestInterruptMapThatHangs ends a build whose command answers no more, and all that the command started.
func TestInterruptMapThatHangs(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	o := mapped(t, "a.jsonl", jsonLines(0, 5000, -1), "head -n 1000; sleep 1000 & echo $! >"+pid+"; wait")
	o.FS = shardtest.New()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for {
			if data, err := os.ReadFile(pid); err == nil && len(data) > 1 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	began := time.Now()
	_, err := Run(ctx, o)
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("the build ended with %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	data, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // until its new parent has taken notice
		if err = syscall.Kill(n, 0); err != nil {
			break
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)); err == nil &&
			bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	if err == nil {
		t.Error("what the command started is left")
	}
}

func TestMapIsRefused(t *testing.T) {
	o := mapped(t, "a.jsonl", jsonLines(0, 3, -1), "nosuchcommand-zz --x")
	fsys := shardtest.New()
	o.FS = fsys
	_, err := Run(context.Background(), o)
	if fault.OptionOf(err) != "map" || !strings.Contains(err.Error(), "nosuchcommand-zz: command not found") ||
		len(fsys.Files()) > 0 {
		t.Errorf("%v, %d files", err, len(fsys.Files()))
	}
	o.Map = "cat"
	_, err = MakePlan(context.Background(), o, 2)
	if fault.OptionOf(err) != "map" {
		t.Errorf("plan: %v", err)
	}
	if _, err = setup.Identify(context.Background(), o); fault.OptionOf(err) != "map" {
		t.Errorf("cache: %v", err)
	}
}

// TestMapMakesFields uses what comes back as the records of JSON lines are used, whatever the source is.
func TestMapMakesFields(t *testing.T) {
	o := mapped(t, "a.txt", "one\ntwo\nthree\n",
		`awk '{print "{\"body\": " substr($0, 9, length($0)-9) ", \"n\": " NR "}"}'`)
	o.TextField, o.Where = "body", []string{"n>=2"}
	_, s := shardOf(t, o)
	if s.Documents != 3 || s.Splits[0].Examples != 2 || s.Mapped != 3 {
		t.Errorf("%+v", s.Counts)
	}
	o.TextField, o.Where = "", nil
	o.FS = shardtest.New()
	if _, err := Run(context.Background(), o); err == nil ||
		!matches(`a.txt, row 1 at byte 0: in the answer of .*: no field "text".*"body"`, err.Error()) {
		t.Errorf("answers without a text: %v", err)
	}
	o.Map = `sed 's/.*/{\n}/'`
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "one line of JSON, as jq -c writes it") {
		t.Errorf("answers of several lines: %v", err)
	}
	o.Map = `sed 's/.*/{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}/'`
	o.Format = source.Chat
	o.ChatTemplate = filepath.Join(t.TempDir(), "chat.jinja")
	put(t, o.ChatTemplate, []byte("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"))
	if _, s = shardOf(t, o); s.Shapes["messages"] != 3 {
		t.Errorf("conversations: %+v", s.Counts)
	}
}

// TestPreviewOfMap looks at the first answers of each input, and ends the command there.
func TestPreviewOfMap(t *testing.T) {
	o := mapped(t, "a.jsonl", jsonLines(0, 9000, -1), "sed 's/document number/text/'")
	o.Sources = append(o.Sources, o.Sources[0])
	p, err := Preview(context.Background(), o, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range p.Inputs {
		if len(in.Documents) != 2 || in.Documents[0].Bytes != int64(len("text 0")) || in.Ended {
			t.Errorf("%+v", in)
		}
	}
	o.Map = "awk 'NR==2{exit 3} {print}'"
	if _, err = Preview(context.Background(), o, 2); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a command that fails: %v", err)
	}
}
