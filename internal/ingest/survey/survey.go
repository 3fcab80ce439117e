// Package survey says what the files of folders and buckets are, what a build would leave out of them, and which
// commands build them.
//
//	arguments -> source.Open (Options.Each) -> look (the records of one file) -> File -> commands
//
// It reads by the stages of a build, package source and package example, and has no rules of its own for formats,
// encodings or conversations: a file is what a build takes it for.
//
// Concurrency: a survey runs on the goroutine of its caller, one file after another.
//
// Invariants:
//
//	I1  No file ends a survey: what is wrong with one is said of it.
//	I2  One record is in memory at a time, at most job.MaxRecordBytes, and what is kept of a file does not grow with it.
package survey

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// Options are what is surveyed.
type Options struct {
	Paths            []string // see source.Options.Args
	Include, Exclude []string // see source.Options
	Limit            int64    // bytes of records that are read of a file; 0 for all
	Memory           int64    // the most that reading a file may take
	Stdin            io.Reader
	// Each is called with each file once it was read. Lines says that it is enough: the report lacks the details.
	Each  func(*File)
	Lines bool
	// Notice, where not nil, takes what a user wants to know while a remote file is waited for.
	Notice func(string)
}

// MaxFiles is how many files a report has room for.
const MaxFiles = 50_000

// A Report is what there is.
type Report struct {
	Files     []*File      `json:"files"`
	MoreFiles int64        `json:"more_files,omitempty"` // there are then no commands
	Notes     []fault.Text `json:"notes,omitempty"`      // what was passed over, counted
	Commands  []Command    `json:"commands"`
}

type surveyor struct {
	Options
	report  *Report
	seen    map[string]bool
	failed  []error // arguments' errors
	damaged skip.Sample
}

// Run surveys all paths. The report is not nil; an error is about what could not be listed or reached, or says that
// some files are damaged.
func Run(ctx context.Context, o Options) (*Report, error) {
	s := &surveyor{Options: o, report: &Report{Files: []*File{}, Commands: []Command{}}, seen: map[string]bool{}}
	for _, path := range o.Paths {
		if err := s.path(ctx, path); err != nil {
			if ctx.Err() != nil {
				return s.report, fault.Kindf(fault.Interrupted, "survey: %w", ctx.Err())
			}
			s.failed = append(s.failed, err)
		}
	}
	if s.report.MoreFiles == 0 {
		s.commands()
	}
	if n := s.damaged.N; n > 0 {
		s.failed = append(s.failed, fault.Kindf(fault.Corrupt, "survey: %s of %d cannot be read whole, the first is %s",
			units.Plural(n, "file"), int64(len(s.report.Files))+s.report.MoreFiles, s.damaged.First))
	}
	return s.report, errors.Join(s.failed...)
}

// path surveys what an argument leads to.
func (s *surveyor) path(ctx context.Context, path string) error {
	if !uris.IsAddress(path) && dataset.HoldsBuild(shardfile.OS(), path) {
		s.built(path)
		return nil
	}
	o := s.options(ctx, path)
	o.Each = func(set *source.Set, in *source.Input, why skip.Kind, err error) error {
		text := []skip.Kind{skip.Readable, skip.UTF16, skip.Archive, skip.Unread}
		if s.seen[in.URI] || in.Listed && !slices.Contains(text, why) { // what is no text is counted in a note
			return nil
		}
		if len(s.Paths) > 1 {
			s.seen[in.URI] = true
		}
		f := s.file(ctx, set, in, err)
		f.arg, f.name, f.refused = path, in.Path, why != skip.Readable
		if f.name == "" {
			f.name = in.URI
		}
		if s.add(f); fault.KindOf(f.err) == fault.Unreachable { // each further file would be waited for as long
			return f.err
		}
		return ctx.Err()
	}
	o.Passed = func(uri string, err error) {
		if err == nil {
			s.built(uri)
			return
		}
		f := &File{URI: uri, Bytes: -1, arg: path, name: uri}
		f.fail(err)
		s.add(f)
	}
	set, err := source.Open(ctx, o)
	if err != nil {
		return err
	}
	s.report.Notes = append(s.report.Notes, set.Notes()...)
	return set.Close()
}

// options are those by which a build without options reads its sources, but for columns and damage.
func (s *surveyor) options(ctx context.Context, path string) source.Options {
	return source.Options{Args: []string{path}, Format: source.Auto,
		Framing: frame.Options{PieceBytes: job.PieceBytes, MaxPieceBytes: 2 * job.PieceBytes,
			MaxRecordBytes: job.MaxRecordBytes, TextField: defaultField, Fields: []string{defaultField}},
		Places: source.Places{Stdin: s.Stdin, Built: setup.BuiltFiles, Marks: setup.MarksBuild},
		IsPair: func(names []string) bool {
			_, answer, _ := chat.PairOf(names)
			return answer != ""
		},
		FindChat: true, AllColumns: true, SkipDamaged: true, Include: s.Include, Exclude: s.Exclude,
		MetadataBytes: s.Memory / 2, Done: ctx.Done(), Notice: s.Notice}
}

// defaultField is the field that a build takes without options.
const defaultField = "text"

func (s *surveyor) add(f *File) {
	f.URI = uris.Shown(f.URI)
	if s.Each(f); f.Damaged() {
		s.damaged.Add(f.URI)
	}
	if len(s.report.Files) == MaxFiles {
		s.report.MoreFiles++
		return
	}
	if s.report.Files = append(s.report.Files, f); s.Lines {
		f.Members, f.Problems, f.Notes = nil, nil, nil
		for i := range f.Fields {
			f.Fields[i].Types = nil
		}
	}
}

// built adds a folder that holds a dataset of dsload, or an unfinished one.
func (s *surveyor) built(dir string) {
	f := &File{URI: dir, Format: "dataset of dsload", refused: true}
	if uris.IsAddress(dir) {
		s.add(f)
		return
	}
	m, err := shard.ReadManifest(shardfile.OS(), dir)
	switch {
	case errors.Is(err, shard.ErrUnfinished):
		f.Format = Unfinished
	case err != nil:
		f.fail(err)
		f.refused = false
	default:
		for _, split := range m.Splits {
			f.Records += split.Examples
		}
	}
	s.add(f)
}
