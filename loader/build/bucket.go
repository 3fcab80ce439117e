package build

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/remote"
	"github.com/dsload/dsload/shard"
)

// A build into a bucket works in a scratch folder on this machine. The bucket keeps what another
// machine needs to go on:
//
//   - Files of the dataset are uploaded as they become whole, and leave the scratch folder then. The
//     manifest comes last, so readers never see half a dataset.
//   - The checkpoint is uploaded every bucketInterval. The bytes that the unfinished files have
//     gained since are uploaded before it, as new objects. So a shard travels at most twice.
//   - build.remote names the scratch folder that writes. A run on the same machine goes on from its
//     own checkpoints, which are newer; any other takes the bucket's, and the first stops at its
//     next upload.
//
// The bytes depend on the sources and settings alone, so two machines that work at the same time
// for a moment write the same objects.

const (
	// bucketInterval is the shortest time between two uploads of a checkpoint: another machine loses
	// at most that much work.
	bucketInterval = 30 * time.Second
	ownerName      = "build.remote"
	checkpointFile = "build.checkpoint"
	additionFile   = "append.checkpoint"
	seenFile       = "build.seen"
	maxOwnerBytes  = 4 << 10
	// maxManifestBytes limits the manifests that are compared.
	maxManifestBytes = 64 << 20
)

// partName matches the objects that hold a stretch of an unfinished file: the file's name, and the
// offsets where the stretch begins and ends.
var partName = regexp.MustCompile(`^(.+)\.part-(\d{16})-(\d{16})$`)

// bucketFS is the file system of a build into a bucket: a scratch folder, whose finished files lie
// in the bucket. It belongs to one goroutine at a time.
type bucketFS struct {
	shard.FS // the operating system's
	store    *remote.Store
	uri      string // of the folder in the bucket, without a slash at its end
	dir      string // the scratch folder
	id       string // of the scratch folder
	adds     bool   // the build adds to the dataset that is there
	base     []byte // its manifest
	objects  map[string]remote.Object
	grown    map[string]int64 // bytes of unfinished files that lie in the bucket
	saved    time.Time        // of the last upload of a checkpoint
	newer    bool             // the scratch folder has a newer one
	notice   func(string, ...any)
	clock    func() time.Time
}

// owner is what build.remote holds.
type owner struct {
	ID   string    `json:"id"`
	Host string    `json:"host"`
	PID  int       `json:"pid"`
	Time time.Time `json:"time"`
}

// runInto is Run for a folder of a bucket.
func runInto(ctx context.Context, o Options) (_ *Summary, err error) {
	uri := strings.TrimRight(o.Out, "/")
	notice := func(format string, args ...any) {
		if o.Notice != nil {
			o.Notice(fault.Textf(format, args...))
		}
	}
	store := remote.NewStore(remote.Options{Notice: func(text string) { notice("%s", text) }}) // uploads outlive ctx
	defer store.Close()
	b, err := openBucket(ctx, store, uri, o.Append, o.clock, notice)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", uri, err)
	}
	inner := o
	inner.FS, inner.Out, inner.bucket = b, b.dir, true
	s, err := Run(ctx, inner)
	if err != nil {
		return nil, &bucketError{errors.Join(err, b.keep()), b.dir, uri}
	}
	s.Out = uri
	if err := os.RemoveAll(filepath.Dir(b.dir)); err != nil {
		notice("the scratch folder %s could not be removed: %v", b.dir, err)
	}
	return s, nil
}

// bucketError names the bucket where an error names the scratch folder.
type bucketError struct {
	err      error
	dir, uri string
}

func (e *bucketError) Error() string { return strings.ReplaceAll(e.err.Error(), e.dir, e.uri) }
func (e *bucketError) Unwrap() error { return e.err }

// openBucket makes the scratch folder and downloads what it lacks from the bucket.
func openBucket(ctx context.Context, store *remote.Store, uri string, adds bool, clock func() time.Time,
	notice func(string, ...any)) (*bucketFS, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	home := filepath.Join(base, "dsload", "out", scratchName(uri))
	b := &bucketFS{FS: shard.OS(), store: store, uri: uri, dir: filepath.Join(home, "data"), adds: adds,
		objects: map[string]remote.Object{},
		grown:   map[string]int64{}, notice: notice, clock: clock}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w; set XDG_CACHE_HOME to a folder that can be written to", err)
	}
	if err := b.list(ctx); err != nil {
		return nil, err
	}
	idFile := filepath.Join(home, "id")
	id, _ := os.ReadFile(idFile) // a new folder has none
	b.id = string(id)
	held, err := b.owner(ctx)
	if err != nil {
		return nil, err
	}
	_, finished := b.objects[shard.ManifestName]
	pending := !finished
	if b.adds && !finished {
		return b, nil // there is nothing to add to, and what is unfinished stays as it is
	}
	if b.adds {
		// The first checkpoint of an addition is uploaded at once. So without one there is no addition,
		// and anything in the scratch folder belongs to one that ended elsewhere.
		_, pending = b.objects[additionFile]
		if b.base, err = store.ReadAll(ctx, b.object(shard.ManifestName), maxManifestBytes); err != nil {
			return nil, fmt.Errorf("read %s: %w", shard.ManifestName, err)
		}
	}
	if b.id != "" && (held.ID == b.id || !pending && !b.adds) {
		return b, nil
	}
	// The scratch folder is new, or another machine went on since.
	if !pending {
		held = owner{}
	}
	return b, b.takeOver(ctx, idFile, held)
}

// takeOver empties the scratch folder, gives it a new id, and goes on from the checkpoint in the
// bucket unless held is zero.
func (b *bucketFS) takeOver(ctx context.Context, idFile string, held owner) error {
	if err := errors.Join(os.RemoveAll(b.dir), os.Mkdir(b.dir, 0o700)); err != nil {
		return err
	}
	if held.ID != "" {
		b.notice("going on from the checkpoint of %s, of %s", cmp.Or(held.Host, "another machine"),
			held.Time.Format(time.RFC3339))
		if err := b.fetchCheckpoint(ctx); err != nil {
			return err
		}
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	b.id = hex.EncodeToString(random)
	if err := os.WriteFile(idFile, []byte(b.id), 0o600); err != nil {
		return err
	}
	if held.ID != "" {
		return b.own(ctx)
	}
	return nil
}

// list reads what the bucket's folder holds.
func (b *bucketFS) list(ctx context.Context) error {
	parts := map[string][][2]int64{}
	err := b.store.List(ctx, b.uri, func(name string, o remote.Object) error {
		if strings.Contains(name, "/") {
			return nil // of another folder
		}
		b.objects[name] = o
		if m := partName.FindStringSubmatch(name); m != nil {
			from, _ := strconv.ParseInt(m[2], 10, 64)
			to, _ := strconv.ParseInt(m[3], 10, 64)
			parts[m[1]] = append(parts[m[1]], [2]int64{from, to})
		}
		return nil
	})
	for name, list := range parts {
		slices.SortFunc(list, func(x, y [2]int64) int { return cmp.Compare(x[0], y[0]) })
		for _, p := range list {
			if p[0] <= b.grown[name] {
				b.grown[name] = max(b.grown[name], p[1])
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is there yet
	}
	return err
}

// owner returns which scratch folder writes to the bucket, the zero owner if none does.
func (b *bucketFS) owner(ctx context.Context) (held owner, err error) {
	if _, ok := b.objects[ownerName]; !ok {
		return held, nil
	}
	data, err := b.store.ReadAll(ctx, b.object(ownerName), maxOwnerBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &held)
	}
	if err != nil {
		return held, fmt.Errorf("read %s: %w", ownerName, err)
	}
	return held, nil
}

// checkpoint returns the name of the build's checkpoint.
func (b *bucketFS) checkpoint() string {
	if b.adds {
		return additionFile
	}
	return checkpointFile
}

// own makes this scratch folder the owner, which writes to the bucket.
func (b *bucketFS) own(ctx context.Context) error {
	host, _ := os.Hostname() // a hint for people
	data, err := json.Marshal(owner{ID: b.id, Host: host, PID: os.Getpid(),
		Time: b.clock().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return b.putBytes(ctx, ownerName, data)
}

// fetchCheckpoint downloads the bucket's checkpoint and the unfinished files that it needs.
func (b *bucketFS) fetchCheckpoint(ctx context.Context) error {
	for _, name := range []string{b.checkpoint(), seenFile} {
		if _, ok := b.objects[name]; ok {
			if err := b.download(name, name); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(keysOf(b.grown)) {
		if err := b.join(name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (b *bucketFS) object(name string) string { return b.uri + "/" + name }
func (b *bucketFS) local(name string) string  { return filepath.Join(b.dir, name) }

// hidden reports whether an object serves the bucket alone and is no file of a builder.
func hidden(name string) bool { return name == ownerName || partName.MatchString(name) }

// put uploads a stretch of a local file as an object.
func (b *bucketFS) put(ctx context.Context, name, local string, from, to int64) error {
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer f.Close()
	uri := b.object(name)
	if err := b.store.Put(ctx, uri, to-from, func() (io.Reader, error) {
		return io.NewSectionReader(f, from, to-from),
			nil
	}); err != nil {
		return fmt.Errorf("upload %s: %w", uri, err)
	}
	b.objects[name] = remote.Object{URI: uri, Size: to - from}
	return nil
}

func (b *bucketFS) putBytes(ctx context.Context, name string, data []byte) error {
	uri := b.object(name)
	if err := b.store.Put(ctx, uri, int64(len(data)), func() (io.Reader, error) {
		return bytes.NewReader(data),
			nil
	}); err != nil {
		return fmt.Errorf("upload %s: %w", uri, err)
	}
	b.objects[name] = remote.Object{URI: uri, Size: int64(len(data))}
	return nil
}

// download brings an object into the scratch folder.
func (b *bucketFS) download(name, local string) error { return b.downloadTo(name, b.local(local)) }

func (b *bucketFS) downloadTo(name, path string) error {
	in := b.store.Open(b.objects[name])
	defer in.Close()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 64<<10)); err != nil {
		return fmt.Errorf("download %s: %w", b.object(name), err)
	}
	return errors.Join(out.Sync(), out.Close())
}

// join puts an unfinished file together from its parts.
func (b *bucketFS) join(name string) error {
	type part struct {
		name     string
		from, to int64
	}
	var parts []part
	for object := range b.objects {
		if m := partName.FindStringSubmatch(object); m != nil && m[1] == name {
			from, _ := strconv.ParseInt(m[2], 10, 64)
			to, _ := strconv.ParseInt(m[3], 10, 64)
			parts = append(parts, part{object, from, to})
		}
	}
	slices.SortFunc(parts, func(x, y part) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(y.to, x.to)) })
	out, err := os.Create(b.local(name))
	if err != nil {
		return err
	}
	defer out.Close()
	at := int64(0)
	for _, p := range parts {
		if p.from > at || p.to <= at {
			continue
		}
		in := b.store.Open(b.objects[p.name])
		_, err := io.CopyBuffer(io.NewOffsetWriter(out, p.from), struct{ io.Reader }{in}, make([]byte, 64<<10))
		in.Close()
		if err != nil {
			return fmt.Errorf("download %s: %w", b.object(p.name), err)
		}
		at = p.to
	}
	return errors.Join(out.Sync(), out.Close())
}
