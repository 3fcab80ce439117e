package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// nameOf returns the name of the function of an entry of the list.
func nameOf(i int) string {
	name := runtime.FuncForPC(reflect.ValueOf(list[i].advise).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// advised returns the entries of the list that took part in what it makes of an error, the options that the result
// names, in order, and the result.
func advised(stage Stage, f Facts, err error) (by []string, options []fault.Option, out error) {
	was := err
	for i, entry := range list {
		if entry.stages&stage == 0 {
			continue
		}
		text := err.Error()
		next, done := entry.advise(f, err)
		if done || next != err || next.Error() != text {
			by = append(by, nameOf(i))
		}
		if err = next; done {
			break
		}
	}
	fault.Show(err, func(option fault.Option, _ any) string {
		options = append(options, option)
		return string(option)
	})
	other, isSettings := errors.AsType[*dataset.SettingsError](err) // a copy, with its values as they are typed
	if !errors.Is(err, was) && fault.OptionOf(err) == "" && (!isSettings || other.Dir != "out") {
		err = fmt.Errorf("lost %v", was)
	}
	return by, options, err
}

// TestList: for each error that may end a build, who advises, of which kind the result is and which options it
// leads to. Each entry of the list has a case that fails where the entry, or its place, is another.
func TestList(t *testing.T) {
	dir := t.TempDir()
	put := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines := put("lines.csv", "{\"text\": \"a line\"}\n{\"text\": \"and one more\"}\n")
	put("near.jsonl", "{}")
	if err := os.Mkdir(filepath.Join(dir, "built"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("built/manifest.json", "{}")
	bad := func(c error) error { return &source.RecordError{URI: "a.jsonl", Row: 1, Cause: c} }
	later := func(c error) error { return &source.RecordError{URI: "a.jsonl", Row: 2, Cause: c} }
	input := func(uri string, c error) *cause.InputError { return &cause.InputError{URI: uri, Offset: -1, Err: c} }
	settings := func(name string) error {
		return &dataset.SettingsError{Dir: "out", Name: name, Have: `["a"]`, Want: `["b"]`}
	}
	with := func(change func(o *option.Options)) Facts {
		o := option.Options{Settings: option.Settings{Format: source.Auto, Dedup: filter.None},
			Resources: option.Resources{FS: shardfile.OS()}, Out: filepath.Join(dir, "out")}
		change(&o)
		return Facts{Options: &o}
	}
	own := with(func(*option.Options) {})
	mapped, judged := with(func(o *option.Options) { o.Map = "jq" }), with(func(o *option.Options) { o.Dedup = filter.Exact })
	planned, listed := with(func(*option.Options) {}), with(func(*option.Options) {})
	planned.Partition = true
	lists := put("lists.json", `{"a": [{"text": "one"}], "b": [{"text": "two"}]}`)
	set, err := source.Open(t.Context(), source.Options{Args: []string{lists}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	listed.Sets = []*source.Set{set}
	templated := with(func(o *option.Options) { o.Template = "gec" })
	skipping := with(func(o *option.Options) { o.OnBadRecord = option.SkipBadRecord })
	over := with(func(o *option.Options) { o.Overwrite = true })
	adding := with(func(o *option.Options) { o.Append = true })
	damaged := input("a.gz", cause.Malformed)
	damaged.Damaged = true
	broken := input("a.gz", fmt.Errorf("%w", syscall.EIO))
	broken.Damaged = true

	type opts = []fault.Option
	met := map[string]bool{}
	for _, c := range []struct {
		name  string
		stage Stage
		facts Facts
		err   error
		by    string
		kind  string
		leads opts
	}{
		{"share", Sources, with(func(o *option.Options) { o.ValSources = []string{"0.1"} }),
			input("0.1", fs.ErrNotExist), "numberAsSource", fault.Usage, opts{"val", "max-val-examples"}},
		{"no share", Sources, with(func(o *option.Options) { o.ValSources = []string{"x"} }),
			input("x", fs.ErrNotExist), "", fault.Usage, nil},
		{"given CSV", Sources, with(func(o *option.Options) { o.Format = source.CSV }), input(lines, cause.Malformed),
			"formatOfFile", fault.Corrupt, opts{"format"}},
		{"named CSV", Rows, with(func(o *option.Options) { o.Format = source.Auto }),
			&source.RecordError{URI: lines, Row: 1, Cause: cause.Malformed}, "formatOfRecord", fault.Corrupt, opts{"format"}},
		{"named CSV, later", Rows, own, &source.RecordError{URI: lines, Row: 2, Cause: cause.Malformed}, "badRecord",
			fault.Corrupt, opts{"on-bad-record"}},

		{"field", Rows, own, bad(&example.FieldError{Has: []string{"body"}, Likely: "body"}), "wantedField", fault.Corrupt,
			opts{"text-field"}},
		{"field, later", Rows, own, later(&example.FieldError{Likely: "body"}), "wantedField", fault.Corrupt,
			opts{"text-field", "on-bad-record"}},
		{"pair", Rows, own, bad(&example.FieldError{Has: []string{"question", "solution"}, Likely: "solution"}), "wantedField",
			fault.Corrupt, opts{"causal-pairs", "prompt", "target"}},
		{"conversation", Rows, own, bad(&example.FieldError{Chat: "messages"}), "wantedField", fault.Corrupt, opts{"format"}},
		{"field of a template", Rows, templated, bad(&example.FieldError{Likely: "body"}), "badRecord", fault.Corrupt,
			opts{"on-bad-record"}},
		{"not text", Rows, own, bad(&example.NotTextError{Kind: "a list"}), "notText", fault.Corrupt,
			opts{"template", "on-bad-record"}},
		{"null", Rows, own, bad(&example.NotTextError{Kind: example.Null}), "badRecord", fault.Corrupt, opts{"on-bad-record"}},
		{"not text, later", Rows, own, later(&example.NotTextError{Kind: "a list"}), "badRecord", fault.Corrupt,
			opts{"on-bad-record"}},
		{"path", Rows, own, bad(fmt.Errorf("%w", cause.Records)), "recordsPath", fault.Usage, opts{"records", "on-bad-record"}},
		{"lists", Rows, listed, &source.RecordError{URI: lists, Row: 1, Cause: cause.TooLarge}, "recordsInside",
			fault.Corrupt, opts{"records", "records"}},
		{"of a partition", Rows, planned, bad(cause.Malformed), "plannedRecord", fault.Corrupt,
			opts{"on-bad-record", "out"}},
		{"mapped", Rows, mapped, bad(cause.TooLarge), "tooLongToMap", fault.Corrupt, opts{"map", "on-bad-record"}},
		{"mapped to too much", Rows, mapped, bad(fmt.Errorf("%w %w", cause.TooLarge, example.ErrTooLarge)), "badRecord",
			fault.Corrupt, opts{"on-bad-record"}},
		{"judged", Rows, judged, bad(cause.TooLarge), "tooLongToJudge", fault.Corrupt, opts{"dedup", "on-bad-record", "dedup"}},
		{"too large", Rows, own, bad(cause.TooLarge), "badRecord", fault.Corrupt, opts{"on-bad-record"}},
		{"skipped", Rows, skipping, bad(cause.Malformed), "", fault.Corrupt, nil},
		{"command of map", Rows, mapped, read.ErrCommand, "failedCommand", "", nil},

		{"no folder", Folder, own, &fs.PathError{Op: "mkdir", Path: "/x/y", Err: fs.ErrNotExist}, "noFolder", fault.Usage,
			opts{"out"}},
		{"settings", Folder, own, settings("max-length"), "otherSettings", fault.Usage, opts{"out", "overwrite"}},
		{"sources", Folder, own, settings("sources"), "otherSettings", fault.Usage, opts{"out", "overwrite"}},
		{"additions", Folder, own, settings("additions"), "otherSettings", fault.Usage, opts{"append", "overwrite", "out"}},
		{"unfinished addition", Folder, adding, settings("additions"), "otherSettings", fault.Usage,
			opts{"append", "overwrite"}},
		{"locked", Folder, own, &shardfile.LockedError{Dir: "out"}, "lockedFolder", "", opts{"out"}},
		{"locked partition", Folder, planned, &shardfile.LockedError{Dir: "out"}, "lockedFolder", "", nil},
		{"foreign", Folder, own, dataset.ErrForeign, "foreignFolder", fault.Usage, opts{"out"}},
		{"foreign, overwriting", Folder, over, dataset.ErrForeign, "foreignFolder", fault.Usage, opts{"out"}},
		{"damaged folder", Folder, own, &shardfile.FileError{Cause: shard.ErrCorrupt}, "damagedFolder",
			fault.Corrupt, opts{"overwrite"}},
		{"damaged folder while reading", Rows, own, &shardfile.FileError{Cause: shard.ErrCorrupt}, "",
			fault.Corrupt, nil},

		{"missing", Sources, own, input(filepath.Join(dir, "neer.jsonl"), fs.ErrNotExist), "missingFile", fault.Usage, nil},
		{"columns", Sources, own, &source.ColumnError{Has: []string{"body"}}, "missingColumn", fault.Corrupt,
			opts{"text-field"}},
		{"columns of a pair", Sources, own, &source.ColumnError{Has: []string{"question", "solution"}}, "missingColumn",
			fault.Corrupt, opts{"causal-pairs", "prompt", "target"}},
		{"later columns", Sources, own, &source.ColumnError{Later: true}, "missingColumn", fault.Corrupt,
			opts{"template", "append", "exclude"}},

		{"changed", Rows, own, fmt.Errorf("%w: %w", &cause.ChangedError{}, syscall.EIO), "systemError", fault.Corrupt, opts{"overwrite"}},
		{"list of shards", Rows, own, dataset.ErrShardList, "systemError", fault.Limit, opts{"memory", "shard-bytes"}},
		{"full", Rows, own, syscall.ENOSPC, "systemError", fault.Limit, nil},
		{"large file", Rows, own, syscall.EFBIG, "systemError", fault.Limit, opts{"shard-bytes"}},
		{"read only", Folder, own, syscall.EROFS, "systemError", "", opts{"out"}},
		{"unreadable source", Sources, own, input("a", fs.ErrPermission), "systemError", "", nil},
		{"disk", Rows, own, syscall.EIO, "systemError", "", nil},

		{"damaged source", Rows, own, damaged, "damagedSource", fault.Corrupt, opts{"on-bad-record"}},
		{"damaged source, skipped", Rows, skipping, damaged, "", fault.Corrupt, nil},
		{"damaged disk", Rows, own, broken, "systemError damagedSource", "", opts{"on-bad-record"}},
	} {
		by, leads, err := advised(c.stage, c.facts, c.err)
		if got := strings.Join(by, " "); got != c.by || fault.KindOf(err) != c.kind || !slices.Equal(leads, c.leads) {
			t.Errorf("%s: by %q, of kind %q, leads to %q: %v;\nwant %q, %q, %q", c.name, got, fault.KindOf(err), leads, err,
				c.by, c.kind, c.leads)
		}
		if got := Of(c.stage, c.facts, c.err); got.Error() != err.Error() {
			t.Errorf("%s: %v, and one by one %v", c.name, got, err)
		}
		resuming := c.facts
		resuming.Resumes = true
		system := strings.HasPrefix(c.by, "systemError") && c.name != "changed"
		again := c.stage == Rows && system || c.by == "badRecord" || c.by == "failedCommand"
		if err := Of(c.stage, resuming, c.err); strings.Contains(err.Error(), "resumes from") != again {
			t.Errorf("%s, of a build that resumes: %v", c.name, err)
		}
		for _, name := range by {
			met[name] = true
		}
	}
	for i := range list {
		if name := nameOf(i); !met[name] {
			t.Errorf("no case is advised by %s", name)
		}
	}
}
