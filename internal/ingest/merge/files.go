package merge

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// A merge joins the small files of the parts into those that a single build has: where documents came
// from, and the hashes by which Dedup compared them. It copies them as streams and holds no list of
// documents.

// extraNames are the files that are joined.
var extraNames = []string{shardfile.OriginsName, shardfile.ValOriginsName, shardfile.HashesName(0)}

// partFile is a file of a part.
type partFile struct {
	part int
	info shard.FileInfo
}

// noteFiles notes which of a part's files must be joined.
func (g *merged) noteFiles(part int, m *shard.Manifest) {
	p := shardfile.Part{Number: part, Of: g.plan.Partitions}
	for _, name := range extraNames {
		own := m.File(p.ExtraName(name))
		if own == nil {
			continue
		}
		if g.extras == nil {
			g.extras = map[string][]partFile{}
		}
		g.extras[name] = append(g.extras[name], partFile{part, *own})
	}
}

// files returns the content of the files that the merge writes. Call end when they are written.
func (g *merged) files(o Options) (files map[string]io.Reader, end func()) {
	files = map[string]io.Reader{}
	var pipes []*io.PipeReader
	for name, parts := range g.extras {
		r, w := io.Pipe()
		pipes = append(pipes, r)
		join := g.joinHashes
		if name != shardfile.HashesName(0) {
			join = g.joinOrigins
		}
		go func() { w.CloseWithError(join(o, parts, w)) }()
		files[name] = r
	}
	if len(g.plan.Held) > 0 {
		files[shardfile.HeldOutName] = bytes.NewReader(heldout.File(g.plan.Held))
	}
	if len(g.bad.List) > 0 {
		if lines, err := g.bad.Lines(); err == nil { // strings and numbers can be encoded
			files[shardfile.RejectsName] = bytes.NewReader(lines)
		}
	}
	return files, func() {
		for _, r := range pipes {
			r.Close() // ends the writer where the file could not be written
		}
	}
}

// read passes a file of a part to a function, and compares its checksum.
func (f *partFile) read(o Options, use func(io.Reader) error) error {
	path := filepath.Join(o.Dir, f.info.Name)
	file, err := o.FS.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	h := blake3.New()
	r := io.TeeReader(io.NewSectionReader(file, 0, math.MaxInt64), h)
	err = use(r)
	_, unread := io.Copy(io.Discard, r)
	if sum := hex.EncodeToString(h.Sum(nil)); unread == nil && sum != f.info.BLAKE3 {
		// Whatever else is wrong with it follows from that.
		err = fmt.Errorf("%w: its BLAKE3 is %s, its part's manifest says %s", shard.ErrCorrupt, sum, f.info.BLAKE3)
	}
	if err = cmp.Or(err, unread); err != nil {
		return fmt.Errorf("read %s: %w; remove the files of part %d and build its partition again", path, err, f.part)
	}
	return nil
}

// joinHashes writes the hashes of all parts, in order.
func (g *merged) joinHashes(o Options, parts []partFile, w io.Writer) error {
	for i := range parts {
		if err := parts[i].read(o, func(r io.Reader) error {
			_, err := io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 64<<10))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// joinOrigins writes the origins of all parts as a single build does.
func (g *merged) joinOrigins(o Options, parts []partFile, w io.Writer) error {
	if _, err := io.WriteString(w, origins.Magic); err != nil {
		return err
	}
	var all origins.Writer
	input, name := 0, ""
	emit := func(page []byte) error {
		_, err := w.Write(page)
		return err
	}
	for i := range parts {
		// A part that begins inside an input continues it.
		goesOn := g.plan.Parts[parts[i].part].From.Offset > 0
		if err := parts[i].read(o, func(r io.Reader) error {
			return origins.Scan(r, func(run origins.Run) error {
				if run.Begins && !(goesOn && run.Name == name) {
					input++
				}
				goesOn, name = false, run.Name
				return all.AddRun(run, input, emit)
			})
		}); err != nil {
			return err
		}
	}
	if all.Failed {
		return fmt.Errorf("join the origins: %w: document numbers do not increase", shard.ErrCorrupt)
	}
	_, err := w.Write(all.Rest())
	return err
}
