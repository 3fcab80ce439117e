package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/loader/build/shape"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// An addition reads further sources into a finished dataset. It is a build of its own, with its own
// sources, budgets, cursor and shards, that begins where the dataset ends: its documents have the
// ordinals after those of the dataset, and what the dataset holds out or has seen counts for it.

// base is the dataset that an addition extends.
type base struct {
	manifest *shard.Manifest
	first    int64    // ordinal of the addition's first document
	number   int      // of the addition, from 1 on
	heldOut  []uint64 // hashes of the documents held out for val
	added    bool     // the dataset's last addition is this one

	// Of the sources that the dataset was made from.
	places  map[string]int // by name, and by the whole path of a file
	folders []int          // those that stand for many files without naming them
	times   []string       // modification times; nil if they were not noted
	skipped bool           // files of a folder or a glob were passed over
	changed []string       // files that the dataset has and that are others now
}

// ofAddition lists the settings that an addition has of its own: what it reads, and how much. It
// shares all others with the dataset.
var ofAddition = []string{"sources", "include", "exclude", "format", "text-field", "columns", "delimiter",
	"max-examples", "max-bytes", "max-tokens"}

// notCompared lists other settings that may differ: the tokenizer is compared by its fingerprint,
// and an addition holds nothing out.
var notCompared = []string{"tokenizer", "tokenizer-pattern", "max-val-examples", "val", "on-bad-record",
	"additions"}

// readBase reads the manifest of the dataset that is added to.
func (b *build) readBase(context.Context) error {
	o := &b.opts
	if !o.Append {
		return nil
	}
	m, err := shard.ReadManifest(o.FS, o.Out)
	if errors.Is(err, shard.ErrNotFound) {
		near := loader.NearestFile(o.Out)
		if near != "" && near != filepath.Clean(o.Out) {
			near = "; did you mean " + near + "?"
		}
		return fault.BadOption("append", nil, "%s holds no finished dataset to add to; build it first, without {append}%s",
			o.Out, near)
	}
	if err != nil {
		return err
	}
	b.base = newBase(m)
	b.base.readTimes(o)
	return nil
}

// openBase compares the settings of the dataset that is added to, and reads what it keeps for additions.
func (b *build) openBase(context.Context) error {
	o := &b.opts
	if b.base == nil {
		return nil
	}
	rendered, err := b.additionSettings(b.base.manifest.Settings)
	if err != nil {
		return err
	}
	if err := b.base.readFirst(o); err != nil {
		return err
	}
	if !b.base.added {
		if err := b.checkNotInBase(); err != nil {
			return err
		}
	}
	if err := b.base.readHeldOut(o); err != nil {
		return err
	}
	if o.Dedup != shape.None && !b.base.keeps(shard.HashesName(0)) {
		return fault.BadOption("append", nil, "%s does not keep the hashes that {dedup} compares: another version built it; "+
			"build it again to add to it", o.Out)
	}
	o.MaxValExamples = 0
	b.shards.Settings = rendered
	return nil
}

// checkAppend refuses options that an addition cannot have.
func (o *Options) checkAppend() error {
	switch {
	case !o.Append:
		return nil
	case len(o.ValSources) > 0:
		return fault.BadOption("val", source.Redact(o.ValSources[0]),
			"an addition with {append} adds to train alone; the split val stays as it is")
	case len(o.Sources) == 0:
		return fault.BadOption("append", nil, "name the sources to add")
	}
	return nil
}

// additionSettings compares the dataset's settings with those of the addition, and returns the
// dataset's with the addition's appended.
func (b *build) additionSettings(have json.RawMessage) (json.RawMessage, error) {
	rendered, err := b.resolved()
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
	additions, err := b.base.add(old["additions"], own, b.bringsNew())
	if err != nil {
		return nil, fmt.Errorf("append to %s: read its settings: %w", b.opts.Out, err)
	}
	old["additions"] = additions
	old["on-bad-record"] = now["on-bad-record"] // kept at the top, where it may change while the addition is unfinished
	return json.Marshal(old)
}

// add appends the settings of an addition to those of the ones before, unless the last is equal and
// fresh is not set.
func (b *base) add(before json.RawMessage, own map[string]json.RawMessage, fresh bool) (json.RawMessage, error) {
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
	if n := len(additions); n > 0 && bytes.Equal(additions[n-1], entry) && !fresh {
		b.added = true
		return before, nil
	}
	b.number = len(additions) + 1
	return json.Marshal(append(additions, entry))
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

// tokenizerText describes the tokenizer of settings: its name, and what tells it from another of that name.
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

// checkNotInBase refuses sources that the dataset was made from.
func (b *build) checkNotInBase() error {
	for _, s := range b.known() {
		if b.base.named(s.URI) && s.URI != "-" {
			return fault.BadOption("append", nil, "%s is in %s already, and nothing was added; name only new sources, or a folder or quoted pattern, "+
				"of which new files are added; to add it once more, write its path differently, as in ./%s",
				s.URI, b.opts.Out, filepath.Base(s.URI))
		}
	}
	return nil
}

// readFirst finds the first ordinal after those of the dataset.
func (b *base) readFirst(o *Options) error {
	b.first = counts.Of(b.manifest.Counters, nil).Documents
	d, err := shard.OpenFS(o.FS, o.Out)
	if err != nil {
		return err
	}
	for _, split := range b.manifest.Splits {
		r, err := d.Split(split.Name)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		var last [1]int64
		if err := r.Documents(last[:], r.NumRows()-1); err != nil {
			return errors.Join(err, d.Close())
		}
		b.first = max(b.first, last[0]+1)
	}
	return d.Close()
}

// keeps reports whether the dataset has a file.
func (b *base) keeps(name string) bool {
	return slices.ContainsFunc(b.manifest.Files, func(f shard.FileInfo) bool { return f.Name == name })
}

// heldOutBytes is the length of a hash in the file of held-out documents.
const heldOutBytes = 8

// readHeldOut reads the hashes of the documents that the dataset holds out.
func (b *base) readHeldOut(o *Options) error {
	i := slices.IndexFunc(b.manifest.Files, func(f shard.FileInfo) bool { return f.Name == shard.HeldOutName })
	if i < 0 {
		var s Settings
		if err := json.Unmarshal(b.manifest.Settings, &s); err != nil {
			return err
		}
		if b.manifest.Split(splitVal) != nil && len(s.ValSources) == 0 {
			return fault.BadOption("append", nil, "%s holds documents out and does not keep which: another version built it; "+
				"build it again to add to it", o.Out)
		}
		return nil
	}
	info := b.manifest.Files[i]
	path := filepath.Join(o.Out, info.Name)
	f, err := o.FS.OpenFile(path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	h := blake3.New()
	r := io.TeeReader(io.NewSectionReader(f, 0, info.Bytes), h)
	b.heldOut = make([]uint64, info.Bytes/heldOutBytes)
	err = binary.Read(r, binary.LittleEndian, b.heldOut)
	if err != nil || hex.EncodeToString(h.Sum(nil)) != info.BLAKE3 {
		return &shard.FileError{File: path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: it is not the file that the manifest lists", shard.ErrCorrupt)}
	}
	return nil
}

// writeHeldOut keeps the hashes of held-out documents, for additions.
func (f *flusher) writeHeldOut() error {
	if f.b.base != nil || len(f.hold.documents) == 0 {
		return nil
	}
	return f.builder.WriteFile(shard.HeldOutName, bytes.NewReader(heldOutFile(f.hold.hashes())))
}

// addTo makes the provenance of an addition that of the whole dataset.
func (b *base) addTo(p *shard.Provenance, added counts.Counts) {
	m := b.manifest
	p.Tokenizer = m.Tokenizer
	p.Sources = append(slices.Clone(m.Sources), p.Sources...)
	all := counts.Of(m.Counters, m.Dropped)
	all.Add(added)
	p.Counters, p.Dropped = all.Map(), all.DroppedBy
}

// loadBase tells a new flusher what the dataset holds out and has seen.
func (f *flusher) loadBase() error {
	base := f.b.base
	if base == nil {
		return nil
	}
	f.hold.close(base.heldOut)
	if f.seen == nil {
		return nil
	}
	for i := 0; ; i++ {
		name := shard.HashesName(i)
		at := slices.IndexFunc(base.manifest.Files, func(f shard.FileInfo) bool { return f.Name == name })
		if at < 0 {
			return nil
		}
		if err := f.seen.Load(filepath.Join(f.b.opts.Out, name), base.manifest.Files[at]); err != nil {
			return err
		}
	}
}

// appended returns the summary of an addition that the dataset already holds, if its sources have
// not changed since.
func (b *build) appended() (*Summary, error) {
	m := *b.base.manifest
	whole := m.Sources
	n := len(b.known())
	if len(whole) < n {
		return nil, b.checkNotInBase()
	}
	m.Sources = whole[len(whole)-n:]
	var stale *StaleError
	if err := b.unchangedSince(&m); errors.As(err, &stale) {
		if err := b.checkNotInBase(); err != nil {
			return nil, fmt.Errorf("%w (%s %s)", err, stale.URI, stale.Reason)
		}
		return nil, stale
	} else if err != nil {
		return nil, err
	}
	return b.finishedSummary(b.base.manifest), nil
}

// nameIn returns the name that a dataset's extra file has in this build.
func (b *build) nameIn(name string) string {
	if b.base == nil {
		return b.shards.Part.ExtraName(name)
	}
	return shard.AdditionName(name, b.base.number)
}

// hashesName returns the name of the file of the documents that this build has seen.
func (b *build) hashesName() string {
	if b.base == nil {
		return b.shards.Part.ExtraName(shard.HashesName(0))
	}
	return shard.HashesName(b.base.number)
}

// heldOutPart returns the part of the memory cap for hashes of held-out documents.
func heldOutPart(o *Options, b *base) (documents int64, why string) {
	if b == nil {
		return o.MaxValExamples, fmt.Sprintf("hashes of up to %d held-out documents", o.MaxValExamples)
	}
	n := int64(len(b.heldOut))
	return n, fmt.Sprintf("hashes of the %d documents that the dataset holds out", n)
}
