package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dsload/dsload/internal/dataset"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// originFiles writes where documents came from, a file for each phase. Full pages go to a file
// next to the shards; what is not yet a page is part of the checkpoint.
type originFiles struct {
	b     *build
	phase int                      // the phase of file and dirty
	file  shardfile.File           // nil before the first full page of the phase in this run
	dirty bool                     // pages were written since the last sync
	path  func(name string) string // where the pages are; nil if nothing is noted
}

// originNames are the files of the phases.
var originNames = [...]string{setup.Train: shardfile.OriginsName, setup.Val: shardfile.ValOriginsName}

// note takes the records of n documents like d, in the order of reading. Only the first piece of a document counts.
func (o *originFiles) note(s *cursor, d *job.Document, n int64) error {
	if o.path == nil {
		return nil
	}
	for len(s.Origins) <= s.Phase {
		// A checkpoint of a version without origins has nothing about the documents before.
		s.Origins = append(s.Origins, origins.Writer{Failed: s.Documents > 0 && s.Phase == setup.Train})
	}
	w := &s.Origins[s.Phase]
	first := o.b.number(d.Ordinal)
	if first+1 == w.Next {
		return nil // a further piece of the document
	}
	name := func() string { return o.b.Phases[s.Phase].Set.URI(d.Input) }
	write := func(page []byte) error { return o.write(s, page) }
	if n > 1 {
		run := origins.Run{Name: w.Name, Ordinal: first, Record: d.Row, Step: 1, N: n}
		if d.Input != w.Input || run.Name == "" {
			run.Name = name()
		}
		return w.AddRun(run, d.Input, write)
	}
	for k := range max(1, d.Turns.End-d.Turns.Start) {
		if err := w.Add(first+int64(k), d.Input, d.Row, name, write); err != nil {
			return err
		}
	}
	return nil
}

// write puts the page that was counted last into the file.
func (o *originFiles) write(s *cursor, page []byte) error {
	if o.phase != s.Phase {
		if err := o.close(); err != nil {
			return err
		}
		o.phase = s.Phase
	}
	path := o.path(originNames[s.Phase])
	at := (s.Origins[s.Phase].Pages - 1) * origins.PageBytes
	var err error
	if o.file == nil && at == 0 {
		// A file of this name is left from work that is in no checkpoint.
		if o.file, err = shardfile.CreateNew(o.b.opts.FS, path); err == nil {
			err = o.b.opts.FS.SyncDir(o.b.opts.Out)
		}
	} else if o.file == nil {
		o.file, err = o.b.opts.FS.OpenFile(path, os.O_RDWR)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	o.dirty = true
	return shardfile.WriteAt(o.file, path, page, at)
}

// sync makes durable the pages that a checkpoint counts.
func (o *originFiles) sync() error {
	if !o.dirty {
		return nil
	}
	o.dirty = false
	return shardfile.Sync(o.file, o.path(originNames[o.phase]))
}

func (o *originFiles) close() error {
	if o.file == nil {
		return nil
	}
	err := errors.Join(o.sync(), o.file.Close())
	o.file = nil
	return err
}

// restore checks that the pages that the checkpoint counts are there. Later ones are written again.
func (o *originFiles) restore(s *cursor) error {
	for phase := range s.Origins {
		want := s.Origins[phase].Pages * origins.PageBytes
		if want == 0 {
			continue
		}
		info, err := o.b.opts.FS.Stat(o.path(originNames[phase]))
		if err == nil && info.Size() < want {
			err = fmt.Errorf("%w: %d bytes where the checkpoint says %d", shard.ErrTruncated, info.Size(), want)
		}
		if err != nil {
			return fault.Errorf("resume from %s: %w; {overwrite} builds afresh", o.path(originNames[phase]), err)
		}
	}
	return nil
}

// finish writes the files of the dataset and removes those of the build.
func (o *originFiles) finish(s *cursor, out dataset.Writer) error {
	if err := o.close(); err != nil {
		return err
	}
	for phase := range s.Origins {
		w := &s.Origins[phase]
		if w.Failed {
			continue
		}
		if err := o.finishPhase(w, phase, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *originFiles) finishPhase(w *origins.Writer, phase int, out dataset.Writer) error {
	parts := []io.Reader{bytes.NewReader([]byte(origins.Magic))}
	full := w.Pages * origins.PageBytes
	if full > 0 {
		f, err := o.b.opts.FS.OpenFile(o.path(originNames[phase]), os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		parts = append(parts, io.NewSectionReader(f, 0, full))
	}
	rest := *w // the state may be used after an error
	rest.Page = bytes.Clone(w.Page)
	return out.File(originNames[phase],
		io.MultiReader(append(parts, bytes.NewReader(rest.Rest()))...))
}
