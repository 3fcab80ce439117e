// Package earlier knows what an earlier build left in a folder: whether a finished dataset was made from the sources
// as they are now, and what a build that adds to it has to know of it.
package earlier

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/shard"
)

// An Addition reads further sources into a finished dataset. It is a build of its own, with its own sources, budgets,
// cursor and shards, that begins where the dataset ends: its documents have the ordinals after those of the dataset,
// and what the dataset holds out or has seen counts for it.
type Addition struct {
	Manifest *shard.Manifest // the dataset's
	First    int64           // ordinal of the addition's first document
	Number   int             // the addition's, from 1 on
	HeldOut  []uint64        // hashes of the documents held out for val

	added bool // the dataset's last addition is this one

	// Of the sources that the dataset was made from.
	places  map[string]int // keys: names, and whole paths of files
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

// Open reads the manifest of the dataset that is added to, and gives o its settings.
func Open(o *option.Options) (*Addition, error) {
	m, err := shard.ReadManifest(o.FS, o.Out)
	if errors.Is(err, shard.ErrNotFound) {
		what := fault.Textf("build it first, without {append}")
		if errors.Is(err, shard.ErrUnfinished) {
			what = fault.Plain("its build is unfinished: finish it first, with the command that began it")
		} else if near := spelling.NearestFile(o.Out); near != "" {
			what = fault.Textf("%v; did you mean %s?", what, near)
		}
		return nil, fault.BadOption("append", nil, "%s holds no finished dataset to add to; %v", o.Out, what)
	}
	if err != nil {
		return nil, err
	}
	var s option.Settings
	if err := json.Unmarshal(m.Settings, &s); err != nil {
		return nil, fmt.Errorf("append to %s: read its settings: %w", o.Out, err)
	}
	own := slices.Concat(ofAddition, []string{"val", "max-val-examples"})
	isChat := s.ChatTemplate != ""
	own = slices.DeleteFunc(own, func(name string) bool { // what files are is found, and what of them is wanted is not
		return name == "text-field" || name == "format" && isChat
	})
	if isChat {
		s.Format = source.Chat
	}
	o.Inherit(s, own)
	*o = o.WithDefaults()
	a := &Addition{Manifest: m, Number: 1}
	a.place(m)
	then := readTimes(o.FS, o.Out)
	if times := slices.Concat(then.Earlier, then.Times); len(times) == len(m.Sources) {
		a.times = times
	}
	return a, nil
}

// Narrow leaves out the files that the dataset has.
func (a *Addition) Narrow(_ int, o *source.Options) { o.Has = a.has }

// Settings compares the settings with those of the dataset that is added to, and reads what it keeps for additions. It
// returns the settings of both. A record has each numbers of documents.
func (a *Addition) Settings(o *option.Options, rendered json.RawMessage, known []source.Stat, each int64) (json.RawMessage,
	error) {
	all, err := a.merged(o, rendered, known)
	if err != nil {
		return nil, err
	}
	if err := a.readFirst(o, each); err != nil {
		return nil, err
	}
	if !a.added {
		if err := a.checkNew(o.Out, known); err != nil {
			return nil, err
		}
	}
	if err := a.readHeldOut(o); err != nil {
		return nil, err
	}
	if o.Dedup != filter.None && a.Manifest.File(shardfile.HashesName(0)) == nil {
		return nil, fault.BadOption("append", nil,
			"%s does not keep the hashes that {dedup} compares: another version built it; "+
				"build it again to add to it", o.Out)
	}
	o.MaxValExamples = 0
	return all, nil
}

// merged compares the dataset's settings with those of the addition, and returns the dataset's with the
// addition's appended.
func (a *Addition) merged(o *option.Options, rendered json.RawMessage, known []source.Stat) (json.RawMessage, error) {
	var old, now map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(a.Manifest.Settings, &old), json.Unmarshal(rendered, &now)); err != nil {
		return nil, fmt.Errorf("append to %s: read its settings: %w", o.Out, err)
	}
	if n := o.MaxValExamples; n != 0 && string(old["max-val-examples"]) != fmt.Sprint(n) {
		return nil, fault.BadOption("max-val-examples", n,
			"an addition with {append} adds to train alone; leave the option out")
	}
	if print := "tokenizer-fingerprint"; !bytes.Equal(old[print], now[print]) { // the tokenizer decides about eos and others
		return nil, &AppendError{Dir: o.Out, Name: "tokenizer", Have: tokenizerText(old), Want: tokenizerText(now)}
	}
	diff := dataset.DiffSettings(a.Manifest.Settings, rendered, func(name, _, _ string) bool {
		return name != "pack" // which decides about the overflow
	})
	if diff == nil {
		diff = dataset.DiffSettings(a.Manifest.Settings, rendered, func(name, _, _ string) bool {
			return slices.Contains(ofAddition, name) || slices.Contains(notCompared, name)
		})
	}
	if diff != nil {
		return nil, &AppendError{Dir: o.Out, Name: diff.Name, Have: diff.Have, Want: diff.Want}
	}
	own := map[string]json.RawMessage{}
	for _, name := range ofAddition {
		if value, ok := now[name]; ok {
			own[name] = value
		}
	}
	// Even with equal settings, standard input brings something new on every run, and a folder may have more files.
	fresh := slices.Contains(o.Sources, "-") ||
		a.passed && slices.ContainsFunc(known, func(s source.Stat) bool { return !a.named(s.URI) })
	additions, err := a.add(old["additions"], own, fresh)
	if err != nil {
		return nil, fmt.Errorf("append to %s: read its settings: %w", o.Out, err)
	}
	old["additions"] = additions
	return json.Marshal(old)
}

// add appends the settings of an addition to those of the ones before, unless the last is equal and
// fresh is not set.
func (a *Addition) add(before json.RawMessage, own map[string]json.RawMessage, fresh bool) (json.RawMessage, error) {
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
	mayChange := func(name, _, _ string) bool { return name == "on-bad-record" } // it reads the same
	if n := len(additions); n > 0 && !fresh && dataset.DiffSettings(additions[n-1], entry, mayChange) == nil {
		a.added = true
		return before, nil
	}
	a.Number = len(additions) + 1
	return json.Marshal(append(additions, entry))
}

// An AppendError means that a setting of an addition differs from its dataset's.
type AppendError struct {
	Dir, Name, Have, Want string // the values as JSON, "unset" for none
}

func (e *AppendError) Error() string { return e.Message().String() }

// Message returns the error's text.
func (e *AppendError) Message() fault.Text {
	return fault.Textf("append to %s: it was built with %v = %s, not %s; leave %v out to take the dataset's, "+
		"or build another one", e.Dir, fault.Option(e.Name), e.Have, e.Want, fault.Option(e.Name))
}

// Kind returns fault.Usage.
func (e *AppendError) Kind() string { return fault.Usage }

// tokenizerText describes the tokenizer of settings: its name, and what distinguishes it from another of that name.
func tokenizerText(settings map[string]json.RawMessage) string {
	name, print := "unset", ""
	if value := settings["tokenizer"]; value != nil {
		name = string(value)
	}
	if json.Unmarshal(settings["tokenizer-fingerprint"], &print) != nil || len(print) < 8 {
		return name
	}
	return fmt.Sprintf("%s (fingerprint %s…)", name, print[:8])
}

// checkNew refuses sources that the dataset was made from.
func (a *Addition) checkNew(out string, known []source.Stat) error {
	for _, s := range known {
		if a.named(s.URI) && s.URI != "-" {
			again := ""
			if !strings.Contains(s.URI, "://") { // an address cannot be added twice
				folder, file := filepath.Split(s.URI)
				again = "; to add it once more, write its path differently, as in " + shell.Quote(folder+"./"+file)
			}
			return fault.BadOption("append", nil,
				"%s is in %s already, and nothing was added; name only new sources, or a folder or quoted pattern, "+
					"of which new files are added%s", s.URI, out, again)
		}
	}
	return nil
}

// readFirst finds the first ordinal after those of the dataset.
func (a *Addition) readFirst(o *option.Options, each int64) error {
	a.First = counts.Of(a.Manifest.Counters, nil).Documents
	d, err := shard.OpenFS(o.FS, o.Out)
	if err != nil {
		return err
	}
	for _, split := range a.Manifest.Splits {
		r, err := d.Split(split.Name)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		var last [1]int64
		if err := r.Documents(last[:], r.NumRows()-1); err != nil {
			return errors.Join(err, d.Close())
		}
		a.First = max(a.First, last[0]/each+1)
	}
	return d.Close()
}

// readHeldOut reads the hashes of the documents that the dataset holds out.
func (a *Addition) readHeldOut(o *option.Options) error {
	file := a.Manifest.File(shardfile.HeldOutName)
	if file == nil {
		var s option.Settings
		if err := json.Unmarshal(a.Manifest.Settings, &s); err != nil {
			return err
		}
		if a.Manifest.Split("val") != nil && len(s.ValSources) == 0 {
			return fault.BadOption("append", nil,
				"%s holds documents out and does not keep which: another version built it; "+
					"build it again to add to it", o.Out)
		}
		return nil
	}
	var err error
	a.HeldOut, err = heldout.Read(o.FS, o.Out, *file)
	return err
}

// Unchanged compares the sources with those of the dataset's last addition, which this one is.
func (a *Addition) Unchanged(s Sources) error {
	m, known := *a.Manifest, s.known()
	whole := m.Sources
	n := len(known)
	if len(whole) < n {
		return a.checkNew(s.Out, known)
	}
	m.Sources = whole[len(whole)-n:]
	err := s.Unchanged(&m)
	var stale *StaleError
	if errors.As(err, &stale) {
		if err := a.checkNew(s.Out, known); err != nil {
			return fmt.Errorf("%w (%s %s)", err, stale.URI, stale.Reason)
		}
	}
	return err
}
