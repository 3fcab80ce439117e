package earlier

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/xxh3"
)

// A StaleError means that a finished dataset was not, or may not have been, made from the sources
// as they are now.
type StaleError struct {
	Out, URI string
	Reason   string // what of URI changed, or why that cannot be known
	// New reports that the dataset lacks URI and has all other sources: an addition would add it.
	New bool
}

func (e *StaleError) Error() string { return e.Message().String() }

// Message returns the error's text.
func (e *StaleError) Message() fault.Text {
	what := fault.Textf("build %s: it holds a finished dataset, and %s %s", e.Out, e.URI, e.Reason)
	if e.New {
		what = fault.Textf("%v; {append} adds what is new; or", what)
	} else {
		what = fault.Textf("%v;", what)
	}
	return fault.Textf("%v build it afresh with {overwrite}, or choose another {out}", what)
}

// Kind returns fault.Usage.
func (e *StaleError) Kind() string { return fault.Usage }

// maxTimesListed is how many modification times run.json lists: above it a change can be noticed,
// but not named without reading.
const maxTimesListed = 4096

// Times is the part of run.json about the sources, for a later run of the same command.
// Modification times cannot be in the manifest: its bytes depend on content alone.
type Times struct {
	Digest string   `json:"digest"` // XXH3-128 over all names, sizes and times
	Times  []string `json:"modified,omitempty"`
	// Earlier are those of the sources before an addition.
	Earlier []string `json:"earlier,omitempty"`
}

// TimesOf returns the times of inputs.
func TimesOf(inputs []source.Stat) Times {
	h := xxh3.New()
	var t Times
	for _, in := range inputs {
		modified := TimeOf(&in)
		fmt.Fprintf(h, "%q %d %s\n", in.URI, in.Size, modified)
		if len(inputs) <= maxTimesListed {
			t.Times = append(t.Times, modified)
		}
	}
	t.Digest = checksum.Of(h).String()
	return t
}

// TimeOf returns an input's modification time as run.json has it. For a list of files it is the
// latest, with a checksum over them all.
func TimeOf(in *source.Stat) string {
	if in.Files > 0 {
		return formatTime(in.ModTime) + " " + in.Seen.String()
	}
	return formatTime(in.ModTime)
}

// formatTime returns a modification time as run.json has it, "" for an input without one.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Sources are those of a build, to be compared with what the folder out was built from.
type Sources struct {
	FS   shardfile.FS
	Out  string
	Sets []*source.Set
}

// known returns what identifies the inputs, in the order of the manifest's list.
func (b *Sources) known() (stats []source.Stat) {
	for _, set := range b.Sets {
		stats = append(stats, set.Known()...)
	}
	return stats
}

// Unchanged compares the sources with those of a finished dataset: by size and modification time, and by their
// content where the time differs or was not noted. A *StaleError says what changed.
func (b *Sources) Unchanged(m *shard.Manifest) error {
	inputs := b.known()
	stale := func(uri, format string, args ...any) error {
		return &StaleError{Out: b.Out, URI: uri, Reason: fmt.Sprintf(format, args...)}
	}
	if err := b.newSources(inputs, m); err != nil {
		return err
	}
	for i := range max(len(inputs), len(m.Sources)) {
		switch {
		case i >= len(inputs):
			return stale(m.Sources[i].URI, "is no longer among the sources")
		case i >= len(m.Sources) || inputs[i].URI != m.Sources[i].URI:
			return stale(inputs[i].URI, "is now number %d of the sources, in another order than that it was made in",
				i+1)
		case !Rereadable(&inputs[i]):
			return stale(uris.Shown(inputs[i].URI), "cannot be compared with what it was made from")
		case inputs[i].ETag != "" && m.Sources[i].ETag != "" && inputs[i].ETag != m.Sources[i].ETag:
			return stale(inputs[i].URI, "changed: it had the ETag %s and has %s", m.Sources[i].ETag, inputs[i].ETag)
		case inputs[i].Size != m.Sources[i].Bytes:
			return stale(inputs[i].URI, "changed: it had %d bytes and has %d", m.Sources[i].Bytes, inputs[i].Size)
		}
	}
	then := readTimes(b.FS, b.Out)
	if TimesOf(inputs).Digest == then.Digest {
		return nil
	}
	at := 0
	for _, set := range b.Sets {
		for i, in := range set.Known() {
			if err := b.compareContent(set, i, &in, m.Sources[at].Checksum, then.Times, at); err != nil {
				return err
			}
			at++
		}
	}
	return nil
}

// readTimes returns the times that run.json has. Without such a record, from an earlier version or lost, content
// decides.
func readTimes(fsys shardfile.FS, dir string) Times {
	var run struct {
		Sources Times `json:"sources"`
	}
	if data, err := dataset.ReadRun(fsys, dir); err != nil || json.Unmarshal(data, &run) != nil {
		return Times{}
	}
	return run.Sources
}

// newSources returns the error for sources that a finished dataset was not made from.
func (b *Sources) newSources(inputs []source.Stat, m *shard.Manifest) error {
	had := map[string]bool{}
	for _, s := range m.Sources {
		had[s.URI] = true
	}
	var fresh []string
	for _, in := range inputs {
		if !had[in.URI] {
			fresh = append(fresh, uris.Shown(in.URI))
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	e := &StaleError{Out: b.Out, URI: fresh[0], Reason: "is new", New: len(inputs)-len(fresh) == len(m.Sources)}
	if more := len(fresh) - 1; more > 0 {
		e.Reason = fmt.Sprintf("and %d others are new", more)
	}
	return e
}

// compareContent compares input i of a set, number at of all, with its checksum in the manifest,
// unless its time says that it did not change.
func (b *Sources) compareContent(set *source.Set, i int, in *source.Stat, checksum string, times []string, at int) error {
	modified := TimeOf(in)
	if modified == "" || in.ETag != "" || // compared already
		at < len(times) && times[at] == modified {
		return nil
	}
	then := "an unknown time"
	if at < len(times) {
		then = times[at]
	}
	// Without a checksum, a budget ended the build within the input or before it. A list has no checksum
	// of each file. A remote file is not read again.
	what := "may have changed"
	if checksum != "" && in.Files == 0 && !uris.IsRemote(in.URI) {
		what = "changed"
		if now, err := set.Checksum(i); err != nil || now.Sum.Tagged() == checksum {
			return err
		}
	}
	return &StaleError{Out: b.Out, URI: in.URI,
		Reason: fmt.Sprintf("%s: it was modified at %s and is now of %s", what, then, modified)}
}

// Rereadable reports whether an input is the same when it is read again: generated text, or a file.
// For a remote file without ETag and time, the size must do.
func Rereadable(in *source.Stat) bool {
	return strings.HasPrefix(in.URI, "synth://") || !in.ModTime.IsZero() || uris.IsRemote(in.URI) &&
		(in.ETag != "" || in.Size >= 0)
}

// UnseenChanges returns a note on remote sources that are compared with those of a finished dataset by their size alone.
func UnseenChanges(sources []source.Stat) (note fault.Text) {
	unseen := slices.DeleteFunc(sources, func(s source.Stat) bool {
		return !uris.IsRemote(s.URI) || s.ETag != "" || !s.ModTime.IsZero()
	})
	if len(unseen) == 0 {
		return note
	}
	return fault.Textf("not known to be unchanged, as the server gives neither an ETag nor a time: %s, with the first %s; "+
		"{overwrite} reads them again", units.Plural(int64(len(unseen)), "source"), uris.Shown(unseen[0].URI))
}
