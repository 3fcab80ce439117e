package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// An addition reads further sources into a finished dataset. It is a build of its own, with its own
// sources, budgets, cursor and shards, that begins where the dataset ends: its documents have the
// ordinals after those of the dataset, and what the dataset holds out or has seen counts for it.

// addition is the target of a build that extends a dataset.
type addition struct {
	whole
	manifest *shard.Manifest
	base     int64    // ordinal of the addition's first document
	number   int      // of the addition, from 1 on
	heldOut  []uint64 // hashes of the documents held out for val
	added    bool     // the dataset's last addition is this one

	// Of the sources that the dataset was made from.
	places  map[string]int // by name, and by the whole path of a file
	folders []int          // those that stand for many files without naming them
	times   []string       // modification times; nil if they were not noted
	passed  bool           // files of a folder or a glob were skipped
	changed []string       // files that the dataset has and that are others now
}

// ofAddition lists the settings that an addition has of its own: what it reads, and how much. It
// shares all others with the dataset.
var ofAddition = []string{"sources", "include", "exclude", "format", "records", "text-field", "columns", "delimiter",
	"max-examples", "max-bytes", "max-tokens", "on-bad-record"}

// notCompared lists other settings that may differ: the tokenizer is compared by its fingerprint,
// and an addition holds nothing out.
var notCompared = []string{"tokenizer", "tokenizer-pattern", "max-val-examples", "val", "additions"}

// open reads the manifest of the dataset that is added to.
func (a *addition) open() error {
	o := &a.b.opts
	m, err := shard.ReadManifest(o.FS, o.Out)
	if errors.Is(err, shard.ErrNotFound) {
		what := fault.Textf("build it first, without {append}")
		if errors.Is(err, shard.ErrUnfinished) {
			what = fault.Plain("its build is unfinished: finish it first, with the command that began it")
		} else if near := spelling.NearestFile(o.Out); near != "" {
			what = fault.Textf("%v; did you mean %s?", what, near)
		}
		return fault.BadOption("append", nil, "%s holds no finished dataset to add to; %v", o.Out, what)
	}
	if err != nil {
		return err
	}
	a.read(m)
	a.readTimes(o)
	return nil
}

func (a *addition) choose(_ int, o *source.Options) { o.Has = a.has }

func (a *addition) opened(err error) error { return cmp.Or(a.changedSources(), err) }

// settings compares the settings with those of the dataset that is added to, and reads what it keeps for
// additions.
func (a *addition) settings() error {
	o := &a.b.opts
	rendered, err := a.merged(a.manifest.Settings)
	if err != nil {
		return err
	}
	if err := a.readFirst(o); err != nil {
		return err
	}
	if !a.added {
		if err := a.checkNew(); err != nil {
			return err
		}
	}
	if err := a.readHeldOut(o); err != nil {
		return err
	}
	if o.Dedup != filter.None && a.manifest.File(shard.HashesName(0)) == nil {
		return fault.BadOption("append", nil,
			"%s does not keep the hashes that {dedup} compares: another version built it; "+
				"build it again to add to it", o.Out)
	}
	o.MaxValExamples = 0
	s := &a.b.Shards
	s.Settings, s.Append, s.FirstDocument = rendered, true, a.base
	return nil
}

// merged compares the dataset's settings with those of the addition, and returns the dataset's with the
// addition's appended.
func (a *addition) merged(have json.RawMessage) (json.RawMessage, error) {
	b := a.b
	rendered, err := b.Settings()
	if err != nil {
		return nil, err
	}
	var old, now map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(have, &old), json.Unmarshal(rendered, &now)); err != nil {
		return nil, fmt.Errorf("append to %s: read its settings: %w", b.opts.Out, err)
	}
	if n := b.opts.MaxValExamples; n != 0 && string(old["max-val-examples"]) != fmt.Sprint(n) {
		return nil, fault.BadOption("max-val-examples", n,
			"an addition with {append} adds to train alone; leave the option out")
	}
	if print := "tokenizer-fingerprint"; !bytes.Equal(old[print], now[print]) { // which decides about eos and others
		return nil, &AppendError{Dir: b.opts.Out, Name: "tokenizer", Have: tokenizerText(old), Want: tokenizerText(now)}
	}
	all := maps.Clone(old)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(ofAddition, name) || slices.Contains(notCompared, name) {
			continue
		}
		if !bytes.Equal(old[name], now[name]) {
			return nil, &AppendError{Dir: b.opts.Out, Name: name, Have: settingText(old[name]),
				Want: settingText(now[name])}
		}
	}
	own := map[string]json.RawMessage{}
	for _, name := range ofAddition {
		if value, ok := now[name]; ok {
			own[name] = value
		}
	}
	// Standard input brings something new on every run.
	additions, err := a.add(old["additions"], own, a.bringsNew())
	if err != nil {
		return nil, fmt.Errorf("append to %s: read its settings: %w", b.opts.Out, err)
	}
	old["additions"] = additions
	return json.Marshal(old)
}

// add appends the settings of an addition to those of the ones before, unless the last is equal and
// fresh is not set.
func (a *addition) add(before json.RawMessage, own map[string]json.RawMessage, fresh bool) (json.RawMessage, error) {
	var additions []json.RawMessage
	if before != nil {
		if err := json.Unmarshal(before, &additions); err != nil {
			return nil, err
		}
	}
	entry, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	if n := len(additions); n > 0 && readsTheSame(additions[n-1], entry) && !fresh {
		a.added = true
		return before, nil
	}
	a.number = len(additions) + 1
	return json.Marshal(append(additions, entry))
}

// readsTheSame reports whether the settings of two additions differ in nothing but what is done about bad records.
func readsTheSame(a, b json.RawMessage) bool {
	var settings [2]map[string]json.RawMessage
	for i, entry := range []json.RawMessage{a, b} {
		if json.Unmarshal(entry, &settings[i]) != nil {
			return false
		}
		delete(settings[i], "on-bad-record")
	}
	return maps.EqualFunc(settings[0], settings[1], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// An AppendError means that a setting of an addition differs from its dataset's.
type AppendError struct {
	Dir, Name, Have, Want string // the values as JSON, "unset" for none
}

func (e *AppendError) Error() string {
	return fmt.Sprintf("append to %s: it was built with %s = %s, not %s; "+
		"give the dataset's settings, or build another one",
		e.Dir, e.Name, e.Have, e.Want)
}

// Kind returns fault.Usage.
func (e *AppendError) Kind() string { return fault.Usage }

// tokenizerText describes the tokenizer of settings: its name, and what distinguishes it from another of that name.
func tokenizerText(settings map[string]json.RawMessage) string {
	var print string
	if json.Unmarshal(settings["tokenizer-fingerprint"], &print) != nil || len(print) < 8 {
		return settingText(settings["tokenizer"])
	}
	return fmt.Sprintf("%s (fingerprint %s…)", settingText(settings["tokenizer"]), print[:8])
}

func settingText(value json.RawMessage) string {
	if value == nil {
		return "unset"
	}
	return string(value)
}

// checkNew refuses sources that the dataset was made from.
func (a *addition) checkNew() error {
	for _, s := range a.b.Known() {
		if a.named(s.URI) && s.URI != "-" {
			return fault.BadOption("append", nil,
				"%s is in %s already, and nothing was added; name only new sources, or a folder or quoted pattern, "+
					"of which new files are added%s", s.URI, a.b.opts.Out, onceMore(s.URI))
		}
	}
	return nil
}

// onceMore returns how a file is added twice, which an address cannot be.
func onceMore(name string) string {
	if strings.Contains(name, "://") {
		return ""
	}
	folder, file := filepath.Split(name)
	return "; to add it once more, write its path differently, as in " + shell.Quote(folder+"./"+file)
}

// readFirst finds the first ordinal after those of the dataset.
func (a *addition) readFirst(o *option.Options) error {
	a.base = counts.Of(a.manifest.Counters, nil).Documents
	d, err := shard.OpenFS(o.FS, o.Out)
	if err != nil {
		return err
	}
	for _, split := range a.manifest.Splits {
		r, err := d.Split(split.Name)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		var last [1]int64
		if err := r.Documents(last[:], r.NumRows()-1); err != nil {
			return errors.Join(err, d.Close())
		}
		if o.SplitTurns {
			last[0] /= turnNumbers
		}
		a.base = max(a.base, last[0]+1)
	}
	return d.Close()
}

// readHeldOut reads the hashes of the documents that the dataset holds out.
func (a *addition) readHeldOut(o *option.Options) error {
	file := a.manifest.File(shard.HeldOutName)
	if file == nil {
		var s option.Settings
		if err := json.Unmarshal(a.manifest.Settings, &s); err != nil {
			return err
		}
		if a.manifest.Split(splitVal) != nil && len(s.ValSources) == 0 {
			return fault.BadOption("append", nil,
				"%s holds documents out and does not keep which: another version built it; "+
					"build it again to add to it", o.Out)
		}
		return nil
	}
	var err error
	a.heldOut, err = heldout.Read(o.FS, o.Out, *file)
	return err
}

func (a *addition) memory() (heldOut int64, why string, more []budget.Share) {
	n := int64(len(a.heldOut))
	return n, fmt.Sprintf("hashes of the %d documents that the dataset holds out", n), nil
}

// checkpoint keeps no held-out documents: the dataset has them.
func (a *addition) checkpoint(f *flusher) error { return f.save() }

// finish makes the manifest of the whole dataset from that of the dataset and what was added.
func (a *addition) finish(f *flusher) (*report.Summary, error) {
	if err := f.checkRows(); err != nil {
		return nil, err
	}
	s, m := &f.state, a.manifest
	sum, err := f.commit(func(p *shard.Provenance, run map[string]any) {
		p.Tokenizer = m.Tokenizer
		p.Sources = append(slices.Clone(m.Sources), p.Sources...)
		all := counts.Of(m.Counters, m.Dropped)
		all.Add(s.Counts)
		p.Counters, p.Dropped = all.Map(), all.DroppedBy
		run["sources"] = a.sourceTimes()
	})
	if err != nil {
		return nil, err
	}
	sum.Added = s.Examples
	notes := []fault.Text{fault.Textf("added: %s, %s; existing shards are unchanged",
		units.Plural(s.Examples, "example"), units.Plural(s.Tokens, "token"))}
	if s.Rejected > 0 {
		notes = append(notes, fault.Textf("bad records are listed in %s", a.extraName(shard.RejectsName)))
	}
	sum.Notes = append(notes, sum.Notes...)
	return sum, nil
}

// begin gives a new flusher what the dataset holds out and has seen.
func (a *addition) begin(f *flusher) error {
	f.first = a.base
	f.hold.Close(a.heldOut)
	if err := a.whole.begin(f); err != nil || f.seen == nil {
		return err
	}
	for i := 0; ; i++ {
		file := a.manifest.File(shard.HashesName(i))
		if file == nil {
			return nil
		}
		if err := f.seen.Load(filepath.Join(f.b.opts.Out, file.Name), *file); err != nil {
			return err
		}
	}
}

// notOpened returns the summary of an addition that the dataset already holds, if its sources have
// not changed since.
func (a *addition) notOpened(ctx context.Context, err error) (*report.Summary, error) {
	if !errors.Is(err, shard.ErrFinished) {
		return a.whole.notOpened(ctx, err)
	}
	b, m := a.b, *a.manifest
	whole := m.Sources
	n := len(b.Known())
	if len(whole) < n {
		return nil, a.checkNew()
	}
	m.Sources = whole[len(whole)-n:]
	var stale *StaleError
	if err := b.unchangedSince(&m); errors.As(err, &stale) {
		if err := a.checkNew(); err != nil {
			return nil, fmt.Errorf("%w (%s %s)", err, stale.URI, stale.Reason)
		}
		return nil, stale
	} else if err != nil {
		return nil, err
	}
	return b.finishedSummary(a.manifest), nil
}

// extraName numbers the names by the addition.
func (a *addition) extraName(name string) string {
	if name == shard.HashesName(0) {
		return shard.HashesName(a.number)
	}
	return shard.AdditionName(name, a.number)
}
