package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/shard"
)

// A part that another process is building is built a second time in a folder of its own, and moved
// into place when it is whole: the other process may be slow, or hang on a machine that is gone.
// Both make the same bytes, so the first that is whole commits the part; the other finds the part's
// manifest and stops.

// runTwin builds a second copy of a part while another process holds its lock.
func (p *part) runTwin(ctx context.Context, held *shard.LockedError) (_ *report.Summary, err error) {
	o := p.b.opts
	twin := o
	twin.Out, err = os.MkdirTemp(o.Out, fmt.Sprintf("%sp%05d-", shard.TwinPrefix, p.Number))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(twin.Out)) }()
	p.b.notice("process %d on %s is building this partition; building a second copy", held.PID, held.Host)
	b := newBuild(twin, p.Chosen)
	b.bucket = p.b.bucket
	s, err := b.run(ctx)
	lost := false
	if err == nil {
		lost, err = p.publish(twin.Out)
	}
	if lost || err != nil && p.committed() { // a merge removes the folders of twins
		return p.overtaken()
	}
	if err != nil {
		return nil, err
	}
	s.Out = o.Out
	return s, nil
}

// publish moves a whole part into the folder, its manifest last. It reports whether the part was
// there before.
func (p *part) publish(from string) (lost bool, err error) {
	o := &p.b.opts
	if p.committed() {
		return true, nil
	}
	m, err := shard.ReadPartManifest(o.FS, from, p.Number)
	if err != nil {
		return false, err
	}
	names := []string{}
	for _, s := range m.Splits {
		for i := range s.Shards {
			names = append(names, s.Shards[i].Name)
		}
	}
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	manifest := m.Part.ManifestNameOf()
	for _, name := range append(names, shard.PlanName, manifest) {
		if name == manifest {
			if err := o.FS.SyncDir(o.Out); err != nil {
				return false, err
			}
		}
		if err := o.FS.Rename(filepath.Join(from, name), filepath.Join(o.Out, name)); err != nil {
			return false, err
		}
	}
	return false, o.FS.SyncDir(o.Out)
}

// committed reports whether the part has a manifest, or was merged.
func (p *part) committed() bool {
	o := &p.b.opts
	m, err := shard.ReadPartManifest(o.FS, o.Out, p.Number)
	if err == nil {
		return m.Part.Plan == p.Plan.Seal()
	}
	have, err := shard.ReadManifest(o.FS, o.Out)
	return err == nil && have.Merged != nil && have.Merged.Plan == p.Plan.Seal()
}

// giveUp ends the build of a part that another process has committed meanwhile.
func (p *part) giveUp(builder *shard.Builder) (*report.Summary, error) {
	if err := builder.Discard(); err != nil {
		return nil, err
	}
	return p.overtaken()
}

// overtaken returns the summary of a part that another process has committed meanwhile.
func (p *part) overtaken() (*report.Summary, error) {
	s, err := p.finished()
	if err == nil {
		s.Stopped = fault.Plain("another process committed the partition first")
	}
	return s, err
}
