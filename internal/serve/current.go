package serve

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// A server serves the datasets that it opened. If a folder is rebuilt while it is served, its rows
// are no longer those that the manifest describes. So the manifest's file is checked repeatedly:
// once it has been replaced, every stream ends and every request is refused. The new dataset is
// never read; only a new server, with another seal, serves it.

// manifestFile is manifest.json as it was when the dataset was opened.
type manifestFile struct {
	bytes []byte
	info  fs.FileInfo // the file that has these bytes
}

// readManifestFile reads the manifest, which must have the given seal.
func readManifestFile(fsys shardfile.ReadFS, dir, seal string) (manifestFile, error) {
	path := shardfile.Join(dir, shardfile.ManifestName)
	info, err := fsys.Stat(path)
	if err != nil {
		return manifestFile{}, err
	}
	data, err := shardfile.ReadFile(fsys, path, math.MaxInt64) // shard has read it within its limit
	if err != nil {
		return manifestFile{}, err
	}
	if !bytes.Contains(data[max(0, len(data)-2*len(seal)):], []byte(seal)) {
		return manifestFile{}, fmt.Errorf("read %s: it was replaced while the dataset was opened; try again", path)
	}
	return manifestFile{data, info}, nil
}

// isStill returns an error unless the manifest in the folder is the one that was opened.
func (m *manifestFile) isStill(fsys shardfile.ReadFS, dir string) error {
	path := shardfile.Join(dir, shardfile.ManifestName)
	info, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is gone: the dataset was removed, or is being rebuilt", path)
	}
	if err != nil {
		return err
	}
	if sameFile(info, m.info) {
		return nil
	}
	// Another file may have the same bytes, as after a touch or an equal build.
	if info.Size() == int64(len(m.bytes)) {
		if data, err := shardfile.ReadFile(fsys, path, info.Size()); err != nil {
			return err
		} else if bytes.Equal(data, m.bytes) {
			m.info = info
			return nil
		}
	}
	return fmt.Errorf("%s was replaced: the dataset was rebuilt while it was served", path)
}

// sameFile reports whether two states of a file have equal size, modification time and, where the
// system has one, identity.
func sameFile(a, b fs.FileInfo) bool {
	if v, ok := a.(shardfile.Versioned); ok {
		w, ok := b.(shardfile.Versioned)
		return ok && v.Version() == w.Version()
	}
	if a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) {
		return false
	}
	return os.SameFile(a, b) || a.Sys() == nil && b.Sys() == nil
}

// cachedCheck keeps the result of a check of the disk for checkInterval, so that every request and
// every batch may ask for it.
type cachedCheck struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// checkInterval bounds how often the disk is checked.
const checkInterval = time.Second

// get returns the result of check, unless that is younger than maxAge the result that it had.
func (c *cachedCheck) get(check func() error, maxAge time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) >= maxAge {
		c.err, c.at = check(), time.Now()
	}
	return c.err
}

// checkCurrent returns a *feed.RequestError unless the folders still hold the datasets that were
// opened. It checks at most once in checkInterval. Once there is an error, it stays.
func (r *Reader) checkCurrent() error { return r.current.get(r.compareManifests, checkInterval) }

func (r *Reader) compareManifests() error {
	if replacement, ok := errors.AsType[*feed.RequestError](r.current.err); ok {
		return replacement
	}
	for _, d := range r.datasets {
		if err := d.manifest.isStill(r.fs, d.dir); err != nil {
			return replaced(err)
		}
	}
	return nil
}

// explain returns the reason of a failed read. If the dataset was replaced, it returns that error
// rather than what the read found in the new one.
func (r *Reader) explain(err error) error {
	if err == io.EOF || errors.Is(err, context.Canceled) {
		return err
	}
	if now := r.current.get(r.compareManifests, 0); errors.As(now, new(*feed.RequestError)) {
		return now
	}
	if errors.Is(err, shard.ErrReplaced) {
		return replaced(err)
	}
	return err
}

func replaced(err error) error {
	return &feed.RequestError{Status: http.StatusConflict, Reason: err.Error(),
		Hint: "start the server again to serve what is there now"}
}

// Check returns an error unless the datasets are those that were opened and every shard has its
// size. Its result is kept for checkInterval.
func (r *Reader) Check() error { return r.health.get(r.check, checkInterval) }

func (r *Reader) check() error {
	if err := r.checkCurrent(); err != nil {
		return err
	}
	for _, d := range r.datasets {
		for _, s := range d.shards.Manifest().Splits {
			split, err := d.shards.Split(s.Name)
			if err != nil {
				return err
			}
			if err := d.checkShards(r.fs, split); err != nil {
				return err
			}
		}
	}
	return nil
}

// shardsChecked is the maximum number of shards of a split whose sizes one check compares. In a
// larger split each check continues after the previous one.
const shardsChecked = 100_000

// checkShards compares the sizes of a split's shards with the manifest's.
func (d *opened) checkShards(fsys shardfile.ReadFS, split *shard.Split) error {
	n := split.NumShards()
	first, end := 0, n
	if n > shardsChecked {
		first = d.checked[split.Info().Name] % n
		end = min(n, first+shardsChecked)
		d.checked[split.Info().Name] = end
	}
	for i := first; i < end; i++ {
		sh, err := split.Shard(i)
		if err != nil {
			return err
		}
		path := shardfile.Join(d.dir, sh.Name)
		info, err := fsys.Stat(path)
		if err != nil {
			return fmt.Errorf("check %s: %w", path, err)
		}
		if info.Size() != sh.Bytes {
			return fmt.Errorf("check %s: %d bytes where the manifest says %d: %w", path, info.Size(),
				sh.Bytes, shard.ErrCorrupt)
		}
	}
	return nil
}

// Seal identifies what is served. It is the seal of a single dataset, else the BLAKE3 hash of a line
// "NAME SEAL" for each dataset, in their order, which decides that of the rows of a default mix.
func (r *Reader) Seal() string { return r.seal }

func sealOf(datasets []*opened) string {
	if len(datasets) == 1 {
		return datasets[0].shards.Manifest().Seal()
	}
	var lines []string
	for _, d := range datasets {
		lines = append(lines, d.name+" "+d.shards.Manifest().Seal()+"\n")
	}
	sum := blake3.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// Dataset returns manifest.json of the named dataset, byte for byte. Without a name it returns the
// manifest of the only dataset, or all as {"datasets": {NAME: manifest}}.
func (r *Reader) Dataset(name string) ([][]byte, error) {
	if err := r.checkCurrent(); err != nil {
		return nil, err
	}
	if name == "" && len(r.datasets) > 1 {
		var pieces [][]byte
		for i, d := range r.datasets {
			before := ","
			if i == 0 {
				before = `{"datasets":{`
			}
			name, _ := json.Marshal(d.name) // a string always marshals
			pieces = append(pieces, []byte(before+string(name)+":"), d.manifest.bytes)
		}
		return append(pieces, []byte("}}\n")), nil
	}
	d := r.datasets[0]
	if name != "" {
		if d = r.find(name); d == nil {
			return nil, &feed.RequestError{Status: http.StatusNotFound,
				Reason: fmt.Sprintf("no dataset %q is served", name), Hint: "served are " + r.names()}
		}
	}
	return [][]byte{d.manifest.bytes}, nil
}
