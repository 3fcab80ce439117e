package ingest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// MemoryPlan is the memory cap as a sum: what each part is for, and the smallest cap that works for
// the settings. Sizes are bytes.
type MemoryPlan struct {
	Cap      int64          `json:"cap_bytes"`
	Sum      int64          `json:"sum_bytes"`
	Smallest int64          `json:"smallest_cap_bytes"`
	Shares   []budget.Share `json:"parts"`

	cacheBytes int   // of each worker's encoder
	jobLease   int64 // of a usual job
	maxRecords int
	maxShards  int
	seenPool   int64 // pages of the hashes that Dedup compares
	jobs       int64 // jobs that fit in flight
	parcels    int   // of them that may wait for the flusher
	readers    int   // of a plan that counts: inputs that are read at once
}

// CapError means that the settings do not fit under the memory cap.
type CapError struct {
	Cap, Smallest int64        // bytes
	Largest       budget.Share // what needs most besides the process itself
	Workers       int
}

func (e *CapError) Error() string { return e.Message().String() }

// Message returns the error's text.
func (e *CapError) Message() fault.Text {
	advice := fault.Textf("raise {memory}")
	switch {
	case 2*e.Largest.Bytes > e.Smallest || e.Largest.Name == sourceShare:
		advice = fault.Textf("raise {memory}, or do without what takes %v of that: %s",
			units.Size(e.Largest.Bytes), e.Largest.Why)
	case e.Workers > 1:
		advice = fault.Textf("raise {memory}, or lower {workers}")
	}
	return fault.Textf("%v is too small for these settings: they need %v; %v",
		fault.Given("memory", units.Size(e.Cap)), units.Size(e.Smallest+(1<<20)-1)&^(1<<20-1), advice)
}

// Kind returns fault.Limit.
func (e *CapError) Kind() string { return fault.Limit }

const (
	// processBytes is what the process takes before it holds any of our buffers: the runtime, its
	// threads' stacks, the touched pages of the program itself, and the slack of a heap whose
	// garbage has not been collected yet. Measured; see bench/README.md.
	processBytes = 22 << 20

	fullCacheBytes  = 8 << 20   // of a worker's encoder where the cap allows
	leastCacheBytes = 512 << 10 // a smaller cache saves nothing
	tailCacheBytes  = 256 << 10 // of the encoder that cuts the last document of a byte budget
	workerBytes     = 256 << 10 // a worker's scratch: decoded text and its buffers
	// listShare is the part of the cap that the list of the shards' sizes and checksums may take: 1
	// MiB of 64 is room for 13,000 shards.
	listShare   = 64
	leastShards = 2000 // are part of what a Builder takes
	// keepShare is the part of the cap above keepFrom that small files may take until they are read.
	keepShare, keepFrom = 18, 64 << 20
	// gcShare is the part of the cap that garbage may take between two collections.
	gcShare = 16

	sourceShare = "source"
)

// divideMemory divides the cap. Caches shrink before anything else does: they are speed, the rest is
// need.
func (b *build) divideMemory() (*MemoryPlan, error) {
	o, t, phases := &b.opts, b.tokenizer, b.phases
	p := &MemoryPlan{Cap: o.Memory}
	p.sizeJobs(o, phases[0].formatter, b.chat)
	workers := int64(o.Workers)
	leastJobs := workers + 2 // each worker one, the reader one, the flusher one

	fixed := b.fixedShares()
	var need int64
	if o.Dedup != filter.None {
		need += seenShare(filter.PoolBytes(o.Memory)).Bytes
	}
	for _, share := range fixed {
		need += share.Bytes
	}
	caches := func(bytes int) int64 { return encodersBytes(o, t, bytes) }
	p.cacheBytes = fullCacheBytes
	for p.cacheBytes > leastCacheBytes && need+caches(p.cacheBytes)+leastJobs*p.jobLease > o.Memory {
		p.cacheBytes /= 2
	}
	fixed = append(fixed, budget.Share{Name: "caches", Bytes: caches(p.cacheBytes),
		Why: fmt.Sprintf("%d workers' word caches of %v", workers, units.Size(p.cacheBytes))})

	// The process' share grows with the cap, so the smallest cap solves cap = need + cap/gcShare.
	least := need - o.Memory/gcShare + caches(leastCacheBytes) + leastJobs*p.jobLease
	p.Smallest = least * gcShare / (gcShare - 1)
	need += caches(p.cacheBytes)
	list := p.sizeList(o.Memory, need, leastJobs*p.jobLease)
	fixed = append(fixed, list)
	need += list.Bytes
	if o.Dedup != filter.None { // half of what jobs leave
		p.seenPool = filter.PoolBytes(o.Memory) + max(0, min(o.Memory/4, (o.Memory-need-(4*workers+4)*p.jobLease)/2))
		fixed = append(fixed, seenShare(p.seenPool))
		need += fixed[len(fixed)-1].Bytes - seenShare(filter.PoolBytes(o.Memory)).Bytes
	}
	if kept := phases[0].set.KeptBytes(); o.Memory-need-kept < (4*workers+4)*p.jobLease {
		phases[0].set.Forget() // jobs need the room
	} else if kept > 0 {
		fixed = append(fixed, budget.Share{Name: "small files", Bytes: kept,
			Why: "files that were read to find their format, until their turn comes"})
		need += kept
	}
	p.parcels = 2*o.Workers + 1 // the reader and the flusher have one each besides
	p.jobs = min((o.Memory-need)/p.jobLease, int64(job.ParcelJobs*(p.parcels+2)))
	if p.jobs < leastJobs {
		return nil, &CapError{o.Memory, p.Smallest, largestShare(fixed[1:], phases), o.Workers}
	}
	p.readers = countReaders(o, phases, o.Memory-need)
	fixed = append(fixed, budget.Share{Name: "jobs", Bytes: o.Memory - need,
		Why: fmt.Sprintf("text and ids in flight: up to %d jobs of %v, or longer records", p.jobs, units.Size(p.jobLease))})
	p.Shares, p.Sum = fixed, o.Memory
	return p, nil
}

// sizeList decides how many shards the list may have, where the rest of the build needs need bytes
// and the jobs at least jobs, and returns the list's share.
func (p *MemoryPlan) sizeList(memory, need, jobs int64) budget.Share {
	// While the manifest is written, all that the jobs had is free for it.
	p.maxShards = leastShards + int(max(0, min(memory/listShare/shard.ListBytes, (memory-need-jobs)/shard.ListBytes,
		(memory-need)/(shard.FinishBytes+shard.ListBytes), int64(shard.MaxShards-leastShards))))
	return budget.Share{Name: "list of shards", Bytes: int64(p.maxShards-leastShards) * shard.ListBytes,
		Why: fmt.Sprintf("sizes and checksums of up to %d shards", p.maxShards)}
}

// largestShare returns the one that needs most, or the source where a file in it needs more than usual.
func largestShare(parts []budget.Share, phases []phase) budget.Share {
	i := slices.IndexFunc(parts, func(p budget.Share) bool { return p.Name == sourceShare })
	if slices.ContainsFunc(phases, func(p phase) bool { return p.set.WhyWindow() != "" }) {
		return parts[i]
	}
	return slices.MaxFunc(parts, func(a, b budget.Share) int { return cmp.Compare(a.Bytes, b.Bytes) })
}

// metadataBytes returns what the metadata of a file may take while the sources are opened: what is left of
// the cap by parts that every plan has. The plan refuses a file that needs more.
func (b *build) metadataBytes() int64 {
	o := &b.opts
	parts := processBytes + o.Memory/gcShare + b.tokenizer.Details().ResidentBytes() + o.ExtraBytes + 2*job.PieceBytes +
		encodersBytes(o, b.tokenizer, leastCacheBytes) +
		int64(o.Workers+2)*job.LeaseBytes(job.TextBytes+job.PieceBytes, 1, 0)
	return max(1<<20, o.Memory-parts)
}

// sizeJobs sets the records that a usual job may hold, and its lease.
func (p *MemoryPlan) sizeJobs(o *option.Options, f *example.Formatter, c *work.Conversations) {
	p.maxRecords = job.MaxRecords
	if key := o.Dedup.KeyBytes(); key > 0 { // the keys lie in the room of fewer records
		p.maxRecords = job.MaxRecords * job.RecordBytes / (job.RecordBytes + key)
	}
	templateBytes := f.OverheadBytes()
	if templateBytes > 0 {
		p.maxRecords = int(max(1, min(int64(p.maxRecords), job.TextBytes/templateBytes)))
	}
	p.jobLease = job.LeaseBytes(job.TextBytes+job.PieceBytes, int64(p.maxRecords), templateBytes)
	if c != nil {
		p.maxRecords = int(max(1, min(int64(p.maxRecords), job.TextBytes/c.OverheadBytes())))
		p.jobLease = c.LeaseBytes(job.TextBytes+job.PieceBytes, int64(p.maxRecords))
	}
}

// encodersBytes returns the memory of all encoders, where those of the workers have word caches of
// the given size.
func encodersBytes(o *option.Options, t *tokenize.Tokenizer, cacheBytes int) int64 {
	n := int64(o.Workers) * t.Details().EncoderBytes(work.EncoderOptions(cacheBytes))
	if o.MaxBytes > 0 {
		n += t.Details().EncoderBytes(work.EncoderOptions(tailCacheBytes))
	}
	return n
}

// fixedShares returns the shares of the cap that are there whatever is left for the others.
func (b *build) fixedShares() []budget.Share {
	o, t, phases, builder := &b.opts, b.tokenizer, b.phases, b.shards
	builder.MaxShards = leastShards
	f, workers := phases[0].formatter, int64(o.Workers)
	heldOut, whyHeldOut, ofTarget := b.target.memory()
	shares := []budget.Share{
		{Name: "process", Bytes: processBytes + o.Memory/gcShare,
			Why: "runtime, program, stacks, garbage between collections"},
		{Name: "vocabulary", Bytes: t.Details().ResidentBytes(), Why: "tables of " + t.Name()},
		{Name: sourceShare, Bytes: sourceBytes(phases) + 2*job.PieceBytes + 4*origins.PageBytes, Why: whySource(phases)},
		{Name: "shards", Bytes: shard.BuilderBytes(builder), Why: "open record batches, checksums, checkpoint"},
		{Name: "held out", Bytes: 2 * heldout.DocumentBytes * heldOut, Why: whyHeldOut},
		{Name: "partial example", Bytes: 16 * int64(min(o.MaxLength, job.MaxRecordBytes)),
			Why: fmt.Sprintf("a chunk carried on, up to %d tokens", o.MaxLength)},
		{Name: "scratch", Bytes: workers*(workerBytes+f.ScratchBytes(job.PieceBytes)) + f.ResidentBytes(),
			Why: whyScratch(workers, f)},
	}
	if b.bucket {
		shares = append(shares, budget.Share{Name: "bucket", Bytes: remote.StoreBytes, Why: "connections, uploads"})
	}
	if o.Pack != pack.None {
		shares = append(shares, b.packingMemory(builder.Schema))
	}
	if o.Map != "" {
		shares = append(shares, read.MapShare())
	}
	shares = append(shares, filterShares(o, b.filter)...)
	if b.chat != nil {
		shares = append(shares, b.chat.MemoryShare(workers))
	}
	if o.ExtraBytes > 0 {
		shares = append(shares, budget.Share{Name: "extras", Bytes: o.ExtraBytes,
			Why: "a live page, messages: what the process holds besides the build"})
	}
	return append(shares, ofTarget...)
}

func whyScratch(workers int64, f *example.Formatter) string {
	if n := f.ScratchBytes(job.PieceBytes); n > 0 {
		return fmt.Sprintf("%d workers' decoded text, each with %v for what the template computes", workers, units.Size(n))
	}
	return fmt.Sprintf("%d workers' decoded text", workers)
}

// sourceBytes returns the memory of the sets of all phases and of one reader.
func sourceBytes(phases []phase) (n int64) {
	for _, p := range phases {
		n += p.set.MemoryBytes()
	}
	return n
}

func whySource(phases []phase) string {
	var window int64
	for _, p := range phases {
		window = max(window, p.set.LargestWindow())
	}
	for _, p := range phases {
		if why := p.set.WhyWindow(); why != "" {
			return "reading " + why
		}
	}
	if window > 0 {
		return fmt.Sprintf("decompressor with a zstd window of %v, staged record", units.Size(window))
	}
	return "decompressor, window, staged record"
}

// ledger reserves the fixed parts; what is left is leased to jobs.
func (p *MemoryPlan) ledger() (*budget.Ledger, error) {
	l := budget.New(p.Cap)
	for _, part := range p.Shares {
		if part.Name == "jobs" {
			continue
		}
		if err := l.Reserve(part); err != nil {
			return nil, err
		}
	}
	return l, nil
}
