package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// DefaultMemory is the default cap of a server. It holds 256 streams of 32 rows of 512 tokens.
const DefaultMemory = 48 << 20

// Options configures what is served. No field changes a batch.
type Options struct {
	// Datasets are folders, each as DIR or NAME=DIR. Queries name a dataset by NAME, which is the
	// folder's own name by default.
	Datasets []string
	// Memory caps the whole process in bytes. Default DefaultMemory, least MinMemory.
	Memory int64
	// Pack and PackLength are the defaults of requests without pack or max_length. Default: none,
	// and the build's.
	Pack       pack.Policy
	PackLength int
	// FS is the file system of the folders. Default: the operating system's.
	FS shardfile.ReadFS
	// Buckets is FS if that reads buckets: streams then read ahead. Otherwise it is nil.
	Buckets *store.Reader

	// Feed is how they are sent, but for what NewServer sets: Backend, Defaults and Ledger.
	Feed feed.Options
}

// Defaults returns the options that a zero Options stands for, but for FS.
func Defaults() Options { return Options{Memory: DefaultMemory, Feed: feed.Defaults()} }

// The fixed parts of a server's cap.
const (
	// processBytes is the program's own pages, the runtime, and garbage between collections. Of the
	// program, resident.DropProgram leaves about 9 MiB.
	processBytes = 15 << 20
	// indexBytes bounds the indexes of closed shards; an open shard's is a few KiB.
	indexBytes = 2 << 20
	// The cache of where rows lie takes 1/locationShare of the cap above MinMemory.
	locationShare = 7
	// openShards is how many shards are open at once.
	openShards = 256
	// streamBytes is the memory of a stream of short rows.
	streamBytes = 2 << 20
	// One in unsparedPart of the bytes for streams is not used to keep record batches, so that not every
	// stream more has to drop some.
	unsparedPart = 16
	// runtimeBytes is what the Go runtime has besides a heap that record batches fill: its tables, stacks, the gaps
	// between objects, and garbage. Its limit counts them, and without room for them it collects all the time.
	runtimeBytes = 6 << 20
	placesName   = "places"
	// MinMemory is the smallest cap with which a server starts.
	MinMemory = 24 << 20
)

// Reader is the read path: open datasets that can be streamed as batches. It implements
// feed.Backend and is safe for concurrent use.
type Reader struct {
	fs       shardfile.ReadFS
	buckets  *store.Reader // see Options
	datasets []*opened
	seal     string
	pack     pack.Policy // for requests that set none
	length   int         // for requests that set none

	shared sampler.Shared

	health  cachedCheck // Check's
	current cachedCheck // checkCurrent's
}

// opened is one folder that is served under a name.
type opened struct {
	name      string
	dir       string
	shards    *shard.Dataset
	manifest  manifestFile
	maxLength int            // the build's longest example in tokens; 0 if the settings do not say
	checked   map[string]int // where the next check of a split with very many shards begins
	sources   map[string]*splitSources
}

// Open opens the datasets. Errors are shard's, with the folder.
func Open(o Options) (*Reader, error) {
	o.FS = cmp.Or[shardfile.ReadFS](o.FS, shardfile.OS())
	if len(o.Datasets) == 0 {
		return nil, fault.BadOption("dataset", nil, "name at least one dataset folder")
	}
	if len(o.Datasets) > sampler.MaxSources {
		return nil, fault.BadOption("dataset", nil,
			"%d datasets, at most %d can be served", len(o.Datasets), sampler.MaxSources)
	}
	r := &Reader{fs: o.FS, buckets: o.Buckets, length: o.PackLength}
	var err error
	if r.pack, err = o.packDefault(); err != nil {
		return nil, err
	}
	for _, arg := range o.Datasets {
		d, err := r.open(&o, arg)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.datasets = append(r.datasets, d)
	}
	r.seal = sealOf(r.datasets)
	return r, nil
}

// open opens the dataset of an argument DIR or NAME=DIR.
func (r *Reader) open(o *Options, arg string) (*opened, error) {
	name, dir := splitName(o.FS, arg)
	if r.find(name) != nil {
		return nil, fault.BadOption("dataset", arg,
			"the name %q is taken; give another one, as NAME=%s", name, dir)
	}
	shards, err := shard.ReaderOptions{
		MaxOpenShards: openShards, MaxIndexBytes: indexBytes,
		MaxOffsetBytes: o.locationBytes() / int64(len(o.Datasets)),
	}.Open(o.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("open dataset %s: %w", dir, err)
	}
	manifest, err := readManifestFile(o.FS, dir, shards.Manifest().Seal())
	if err != nil {
		shards.Close()
		return nil, fmt.Errorf("open dataset %s: %w", dir, err)
	}
	var settings struct {
		MaxLength int `json:"max-length"`
	}
	_ = json.Unmarshal(shards.Manifest().Settings, &settings) // those of another program may have none
	m, sources := shards.Manifest(), map[string]*splitSources{}
	for i := range m.Splits {
		sources[m.Splits[i].Name] = sourcesOf(name, m, &m.Splits[i], max(4, mostCounted/len(o.Datasets)))
	}
	return &opened{name, dir, shards, manifest, settings.MaxLength, map[string]int{}, sources}, nil
}

// locationBytes returns the memory for the cache of where rows lie.
func (o Options) locationBytes() int64 {
	return max(0, cmp.Or(o.Memory, DefaultMemory)-MinMemory) / locationShare
}

// splitName splits NAME=DIR. An argument that is itself a folder has no NAME.
func splitName(fs shardfile.ReadFS, arg string) (name, dir string) {
	if before, after, found := strings.Cut(arg, "="); found && before != "" &&
		!strings.ContainsRune(before, filepath.Separator) {
		if _, err := fs.Stat(arg); err != nil {
			return before, after
		}
	}
	abs, err := filepath.Abs(arg)
	if err != nil {
		abs = arg
	}
	// The characters that a mix parameter is made of cannot be part of a name in it.
	return strings.NewReplacer("=", "_", ",", "_").Replace(filepath.Base(abs)), arg
}

// Close closes all datasets. Streams that still read get errors.
func (r *Reader) Close() error {
	var errs []error
	for _, d := range r.datasets {
		errs = append(errs, d.shards.Close())
	}
	return errors.Join(errs...)
}

// tooSmall is the error for a memory cap.
func tooSmall(memory int64, format string, args ...any) error {
	return &fault.Error{Class: fault.Limit, Option: "memory", Value: units.Size(memory),
		What: fault.Textf(format, args...)}
}

// CheckMemory returns the error of NewServer for a cap that no server starts with.
func (o *Options) CheckMemory() error {
	if memory := cmp.Or(o.Memory, DefaultMemory); memory < MinMemory {
		return tooSmall(memory, "a server needs at least %v", units.Size(MinMemory))
	}
	return nil
}

// NewServer makes a server for r under o's memory cap. It reserves the fixed parts and leases the
// rest to streams.
func NewServer(r *Reader, o Options) (*feed.Server, error) {
	if err := o.CheckMemory(); err != nil {
		return nil, err
	}
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	ledger := budget.New(o.Memory)
	fixed := append([]budget.Share{
		{Name: "process", Bytes: processBytes, Why: "program, runtime, garbage between collections"},
		{Name: placesName, Bytes: o.locationBytes(), Why: "where rows lie, so that a row takes one read"},
		feed.PageMemory(),
	}, r.memory()...)
	for _, p := range fixed {
		if err := ledger.Reserve(p); err != nil {
			return nil, tooSmall(o.Memory, "%v; serve fewer datasets at once, or give at least %v", err,
				units.Size(smallestMemory(fixed)))
		}
	}
	r.share(ledger, runtimeBytes)
	o.Feed.Backend, o.Feed.Defaults, o.Feed.Ledger = r, r.defaults(), ledger
	return feed.NewServer(o.Feed), nil
}

// memory returns the fixed parts of the reader's memory.
func (r *Reader) memory() []budget.Share {
	var manifests int64
	for _, d := range r.datasets {
		manifests += int64(len(d.manifest.bytes))
	}
	return []budget.Share{
		{Name: "indexes", Bytes: indexBytes + r.manifestEntryBytes(),
			Why: "12 bytes a record batch of open shards, and what manifests say"},
		{Name: "manifests", Bytes: manifests, Why: "as they are sent to clients, which share them"},
		{Name: "buckets", Bytes: r.buckets.MemoryBytes(), Why: "connections, blocks in flight, what is known of each object"},
	}
}

// share lets the datasets keep record batches in memory, if they leave so much beside them, until streams need it.
func (r *Reader) share(l *budget.Ledger, beside int64) {
	leave := (l.Cap() - l.Used()) / unsparedPart
	spare := l.Spare(leave, beside, func(bytes int64) {
		left := bytes + leave
		for _, d := range r.datasets {
			left -= d.shards.GiveBack(left)
		}
		for i := 0; i < len(r.datasets) && left > leave; i++ {
			r.datasets[i].shards.DropBatches()
		}
		debug.FreeOSMemory() // the streams that come have memory of other sizes, and the kernel's
	})
	for _, d := range r.datasets {
		d.shards.KeepBatches(spare)
	}
}

// smallestMemory returns the smallest cap, in whole MiB, that has room for the fixed parts and a
// stream. The cache of where rows lie is left out of the sum, because it grows with the cap.
func smallestMemory(fixed []budget.Share) int64 {
	need := int64(streamBytes)
	for _, p := range fixed {
		if p.Name != placesName {
			need += p.Bytes
		}
	}
	need = MinMemory + max(0, need-MinMemory)*locationShare/(locationShare-1)
	return (need + 1<<20 - 1) >> 20 << 20
}

// manifestEntryBytes returns the memory of the entries of the open datasets' manifests.
func (r *Reader) manifestEntryBytes() (n int64) {
	const perSource = 200 // an entry of the manifest with its strings
	for _, d := range r.datasets {
		m := d.shards.Manifest()
		for i := range m.Splits {
			n += m.Splits[i].HeldBytes(openShards) + int64(len(m.Splits[i].Lengths))*24
			for _, s := range m.Splits[i].Sources {
				n += perSource + int64(len(s.URI))
			}
		}
		for i := range m.Sources {
			n += perSource + int64(len(m.Sources[i].URI))
		}
	}
	return n
}

func (r *Reader) names() string {
	var names []string
	for _, d := range r.datasets {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ")
}

// DatasetDir returns the folder of an argument DIR or NAME=DIR.
func DatasetDir(arg string) string {
	_, dir := splitName(shardfile.OS(), arg)
	return dir
}

// About describes the datasets for people.
func (r *Reader) About() (out []feed.About) {
	for _, d := range r.datasets {
		m := d.shards.Manifest()
		about := feed.About{Name: d.name, Tokenizer: m.Tokenizer.Name, MaxLength: d.maxLength}
		for i := range m.Splits {
			s := &m.Splits[i]
			split := feed.AboutSplit{Name: s.Name, Rows: s.Examples, Tokens: s.Tokens, Longest: s.MaxLength,
				Sources: d.sources[s.Name].counted}
			for _, bucket := range s.Lengths {
				low, high := shard.BucketBounds(bucket[0])
				split.Lengths = append(split.Lengths, [3]int64{low, high, bucket[1]})
			}
			about.Splits = append(about.Splits, split)
		}
		out = append(out, about)
	}
	return out
}
