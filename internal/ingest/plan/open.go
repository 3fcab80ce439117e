package plan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
)

// A partition keeps only the part of its plan that it needs: the file is read from one end to the other, and of
// its long lists only the partition's own entries are kept. So a plan of many inputs takes no more memory than the
// inputs of one partition.

// planFile is an open plan.
type planFile struct {
	io.ReaderAt
	size  int64
	close func() error
}

// mayBePlan reports whether a file, damaged or not, begins as a plan does: only the name of a folder comes
// before its format.
func (f *planFile) mayBePlan() bool {
	head, err := io.ReadAll(io.NewSectionReader(f, 0, 8<<10))
	return err != nil || bytes.Contains(head, []byte(shardfile.PlanFormat))
}

// IsPlan reports whether the file at path, damaged or not, begins as a plan does.
func IsPlan(path string) (bool, error) {
	f, err := openPlanFile(path)
	if err != nil {
		return false, err
	}
	return f.mayBePlan(), f.close()
}

// openPlanFile opens a plan on this machine, or at an address of s3://, gs:// or az://.
func openPlanFile(path string) (*planFile, error) {
	places, err := store.NewReader(store.ReaderOptions{NoCache: true})
	if err != nil {
		return nil, err
	}
	f, err := openPlanIn(places, path)
	if err != nil {
		return nil, errors.Join(err, places.Close())
	}
	file := f.close
	f.close = func() error { return errors.Join(file(), places.Close()) }
	return f, nil
}

func openPlanIn(fsys shardfile.ReadFS, path string) (*planFile, error) {
	info, err := fsys.Stat(path) // before it is opened: a pipe would wait
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.BadOption("plan", path, "there is no such file; make it with 'dsload plan'")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(), info.Size() > maxPlanBytes:
		return nil, notAPlan(path)
	}
	file, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &planFile{file, info.Size(), file.Close}, nil
}

func notAPlan(path string) error {
	return fault.BadOption("plan", path, "is not a plan; make one with 'dsload plan'")
}

// Open reads the part of a plan that building one of its partitions takes. If there is no partition of
// that number, the plan has none of its lists.
func Open(path string, number int) (*Plan, error) {
	if err := remote.CheckSigned(path); err != nil {
		return nil, fault.BadOption("plan", nil, "%v", err)
	}
	if !remote.Writable(path) {
		whole, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		path = whole
	}
	f, err := openPlanFile(path)
	if err != nil {
		return nil, err
	}
	p, err := readPlan(path, f, number, "make it again")
	if err = errors.Join(err, f.close()); err != nil {
		return nil, err
	}
	p.path = path
	return p, nil
}

// What is read of a plan in place of a partition.
const (
	headOnly  = -1 - iota // none of its lists
	wholePlan             // all of it
)

// ReadHead reads what identifies the copy of a plan in a folder of parts.
func ReadHead(fsys shardfile.FS, dir string) (*Plan, error) { return readCopy(fsys, dir, headOnly) }

// ReadFolder reads the copy of the plan in a folder of parts, and checks it.
func ReadFolder(fsys shardfile.FS, dir string) (*Plan, error) { return readCopy(fsys, dir, wholePlan) }

func readCopy(fsys shardfile.FS, dir string, number int) (*Plan, error) {
	path := filepath.Join(dir, shardfile.PlanName)
	f, err := openPlanIn(fsys, path)
	if err != nil {
		return nil, err
	}
	p, err := readPlan(path, f, number, "replace it with the plan that the parts were built from")
	if err = errors.Join(err, f.close()); err != nil {
		return nil, err
	}
	return p, nil
}

func readPlan(path string, f *planFile, number int, advice string) (*Plan, error) {
	p := &Plan{first: max(0, number)}
	r := planReader{p: p, number: number}
	seal, sealErr := shardfile.CheckSealedFile(path, f, f.size)
	r.d = json.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(f, 0, f.size), 64<<10))
	err := r.read()
	switch {
	case !f.mayBePlan(), sealErr == nil && p.Format != shardfile.PlanFormat:
		return nil, notAPlan(path)
	case p.Version > planVersion:
		return nil, fault.BadOption("plan", path, "has the version %d; this dsload reads %d, use a later one",
			p.Version, planVersion)
	case sealErr != nil:
		return nil, fmt.Errorf("read plan %w; %s", sealErr, advice)
	case err != nil:
		return nil, fmt.Errorf("read plan %s: %w", path, err)
	}
	p.seal = seal
	return p, nil
}

// planReader reads a plan: for one partition, or whole.
type planReader struct {
	d      *json.Decoder
	p      *Plan
	number int // the partition, headOnly or wholePlan
}

// read reads the members, which are sorted by name: the partitions come before the inputs.
func (r *planReader) read() error {
	p := r.p
	if r.number == wholePlan {
		if err := r.d.Decode(p); err != nil {
			return err
		}
		if p.Partitions != len(p.Parts) || p.Partitions < 1 || len(p.Phases) < 1 || len(p.Phases) > 2 {
			return fmt.Errorf("%d partitions, %d listed, %d phases: %w", p.Partitions, len(p.Parts), len(p.Phases),
				shard.ErrCorrupt)
		}
		return p.checkParts()
	}
	err := r.members(func(name string) error {
		scalars := map[string]any{"folder": &p.Folder, "format": &p.Format, "held": &p.Held, "given": &p.Given,
			"checkpoint-every": &p.CheckpointEvery,
			"partitions":       &p.Partitions, "settings": &p.Settings, "share": &p.Share, "version": &p.Version}
		switch into := scalars[name]; {
		case into != nil:
			return r.d.Decode(into)
		case name == "parts":
			return r.elements(r.part)
		case name == "phases":
			return r.elements(r.phase)
		case name == "sources":
			return r.elements(func(int) error { return r.skip() })
		}
		return r.skip()
	})
	if err == nil && r.number >= 0 && r.number < p.Partitions {
		if len(p.Parts) == 0 || len(p.Phases) < 1 || len(p.Phases) > 2 {
			return fmt.Errorf("partition %d, %d phases: %w", r.number, len(p.Phases), shard.ErrCorrupt)
		}
		err = p.checkParts()
	}
	return err
}

// part keeps the partition, and where the next one begins.
func (r *planReader) part(i int) error {
	if r.number == headOnly || i != r.number && i != r.number+1 {
		return r.skip()
	}
	var part Entry
	if err := r.d.Decode(&part); err != nil {
		return err
	}
	if i != r.number {
		part.Copies = nil
	}
	r.p.Parts = append(r.p.Parts, part)
	return nil
}

// phase keeps the inputs of the partition, and how many there are.
func (r *planReader) phase(i int) error {
	var phase Phase
	from, to := r.wanted(i)
	phase.before = from
	err := r.members(func(name string) error {
		switch name {
		case "documents":
			return r.d.Decode(&phase.Documents)
		case "inputs":
			return r.elements(func(at int) error {
				phase.total++
				if at < from || to >= 0 && at >= to {
					return r.skip()
				}
				phase.Inputs = append(phase.Inputs, source.Listed{})
				return r.d.Decode(&phase.Inputs[len(phase.Inputs)-1])
			})
		}
		return r.skip()
	})
	r.p.Phases = append(r.p.Phases, phase)
	return err
}

// wanted returns which inputs of a phase the partition reads; to is -1 for all that follow.
func (r *planReader) wanted(phase int) (from, to int) {
	if len(r.p.Parts) == 0 {
		return 0, 0
	}
	to = -1
	if first := &r.p.Parts[0]; phase < first.Phase {
		to = 0
	} else if phase == first.Phase {
		from = first.From.Input
	}
	if len(r.p.Parts) > 1 {
		next := &r.p.Parts[1]
		switch {
		case phase > next.Phase:
			to = 0
		case phase == next.Phase && next.From.Offset > 0:
			to = next.From.Input + 1
		case phase == next.Phase:
			to = next.From.Input
		}
	}
	return from, to
}

// members calls visit for each member of an object, which it must read.
func (r *planReader) members(visit func(name string) error) error {
	token, err := r.d.Token()
	if err == nil && token != json.Delim('{') {
		err = fmt.Errorf("%v in place of {: %w", token, shard.ErrCorrupt)
	}
	for err == nil && r.d.More() {
		if token, err = r.d.Token(); err == nil {
			name, _ := token.(string) // a member's name is nothing else
			err = visit(name)
		}
	}
	if err == nil {
		_, err = r.d.Token()
	}
	return err
}

// elements calls visit for each element of a list, which it must read. A null is an empty list.
func (r *planReader) elements(visit func(i int) error) error {
	token, err := r.d.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return fmt.Errorf("%v in place of a list: %w", token, shard.ErrCorrupt)
	}
	for i := 0; r.d.More(); i++ {
		if err := visit(i); err != nil {
			return err
		}
	}
	_, err = r.d.Token()
	return err
}

func (r *planReader) skip() error {
	var value json.RawMessage
	return r.d.Decode(&value)
}

// Bytes returns the memory of what is held of the plan, and of the range of a partition that is made of it.
func (p *Plan) Bytes() int64 {
	n := int64(len(p.Held)) * heldTextBytes
	for i := range p.Phases {
		for j := range p.Phases[i].Inputs {
			l := &p.Phases[i].Inputs[j]
			n += listedBytes + int64(len(l.URI)+len(l.ETag)+len(l.Revision)+len(l.Hash)+len(l.Format))
		}
	}
	for i := range p.Parts {
		for _, list := range p.Parts[i].Copies {
			n += 4 * int64(len(list)) // it was read as text
		}
	}
	return n + int64(len(p.Sources))*listedBytes
}

// heldTextBytes is what the hash of a held-out document takes while the list is read.
const heldTextBytes = 40

// listedBytes is what an input takes in the plan, in the range and while they grow.
const listedBytes = 1 << 10

// CopyTo writes the file of the plan to path, through a temporary one.
func (p *Plan) CopyTo(fsys shardfile.FS, temp, path string) (err error) {
	if p.path == "" {
		data, err := p.encode()
		if err != nil {
			return err
		}
		return shardfile.WriteFile(fsys, temp, path, bytes.NewReader(data))
	}
	f, err := openPlanFile(p.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if seal, err := shardfile.CheckSealedFile(p.path, f, f.size); err != nil || seal != p.seal {
		return errors.Join(err, fault.Kindf(fault.Usage, "plan %s: it was replaced while partition %d was built; "+
			"run the same command again", p.path, p.first))
	}
	return shardfile.WriteFile(fsys, temp, path, io.NewSectionReader(f, 0, f.size))
}
