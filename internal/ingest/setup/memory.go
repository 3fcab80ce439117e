package setup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/rows"
	"github.com/dsload/dsload/internal/ingest/source"
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

	CacheBytes int   `json:"-"` // a worker's encoder's cache
	JobLease   int64 `json:"-"` // a usual job's
	MaxRecords int   `json:"-"` // in a job
	SeenPool   int64 `json:"-"` // pages of the hashes that Dedup compares
	Jobs       int64 `json:"-"` // maximum number in flight
	Parcels    int   `json:"-"` // maximum number that wait for the flusher
	Readers    int   `json:"-"` // inputs that a plan that counts reads at once
	Ahead      int64 `json:"-"` // what is decompressed before its turn
	MaxShards  int   `json:"-"` // in the list
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
	processBytes = 19 << 20

	fullCacheBytes  = 8 << 20   // a worker's encoder, where the cap allows
	leastCacheBytes = 512 << 10 // a smaller cache saves nothing
	cacheShare      = 8         // the words of a byte of text take no more of a cache
	TailCacheBytes  = 256 << 10 // the encoder that cuts the last document of a byte budget
	workerBytes     = 256 << 10 // a worker's scratch: decoded text and its buffers
	// listShare is the part of the cap that the list of the shards' sizes and checksums may take: 1
	// MiB of 64 is room for 13,000 shards.
	listShare   = 64
	leastShards = 2000 // are part of what a Builder takes
	// keepShare is the part of the cap above keepFrom that small files may take until they are read.
	keepShare, keepFrom = 18, 64 << 20
	// gcShare is the part of the cap that garbage may take between two collections.
	gcShare = 16

	// aheadBytes is what each worker may have decompressed ahead, where the cap allows.
	aheadBytes = 16 << 20

	sourceShare = "source"
)

// Needs is what the place of the rows needs of the cap besides what reads and makes them.
type Needs struct {
	HeldOut    int64 // documents of the split val whose hashes are held
	WhyHeldOut string
	More       []budget.Share
	Bucket     bool // the place is in a bucket
}

// DivideMemory plans the memory of a build, and reserves what is not leased to jobs.
func (p *Prepared) DivideMemory(n Needs) (err error) {
	if p.Memory, err = p.divide(n); err != nil {
		return err
	}
	p.Shards.MaxShards = p.Memory.MaxShards
	for i := range p.Phases {
		p.Phases[i].Set.Spend(source.Spare{Workers: p.Options.Workers, Bytes: p.Memory.Ahead})
	}
	p.Ledger, err = p.Memory.ledger()
	return err
}

// divide divides the cap. Caches shrink before anything else does: they are speed, the rest is
// need.
func (from *Prepared) divide(n Needs) (*MemoryPlan, error) {
	o, t, phases := from.Options, from.Tokenizer, from.Phases
	p := &MemoryPlan{Cap: o.Memory}
	p.sizeJobs(o, phases[0].Formatter, from.Chat, job.TextBytes)
	workers := int64(o.Workers)
	leastJobs := workers + 2 // each worker one, the reader one, the flusher one

	fixed := from.fixedShares(n)
	var need int64
	if o.Dedup != filter.None {
		need += seenShare(filter.PoolBytes(o.Memory)).Bytes
	}
	for _, share := range fixed {
		need += share.Bytes
	}
	caches := func(bytes int) int64 { return encodersBytes(o, t, bytes) }
	p.sizeCaches(textBytes(phases), func(bytes int) bool { return need+caches(bytes)+leastJobs*p.JobLease <= o.Memory })
	fixed = append(fixed, budget.Share{Name: "caches", Bytes: caches(p.CacheBytes),
		Why: fmt.Sprintf("%d workers' word caches of %v", workers, units.Size(p.CacheBytes))})

	// The process' share grows with the cap, so the smallest cap solves cap = need + cap/gcShare.
	least := need - o.Memory/gcShare + caches(leastCacheBytes) + leastJobs*p.JobLease
	p.Smallest = least * gcShare / (gcShare - 1)
	need += caches(p.CacheBytes)
	list := p.sizeList(o.Memory, need, leastJobs*p.JobLease)
	fixed = append(fixed, list)
	need += list.Bytes
	if o.Dedup != filter.None { // half of what jobs leave
		p.SeenPool = filter.PoolBytes(o.Memory) + max(0, min(o.Memory/4, (o.Memory-need-(4*workers+4)*p.JobLease)/2))
		fixed = append(fixed, seenShare(p.SeenPool))
		need += fixed[len(fixed)-1].Bytes - seenShare(filter.PoolBytes(o.Memory)).Bytes
	}
	if kept := phases[0].Set.KeptBytes(); o.Memory-need-kept < (4*workers+4)*p.JobLease {
		phases[0].Set.Forget() // jobs need the room
	} else if kept > 0 {
		fixed = append(fixed, budget.Share{Name: "small files", Bytes: kept,
			Why: "files that were read to find their format, until their turn comes"})
		need += kept
	}
	// The reader and the flusher have one each besides. Of few jobs more is still in the cache, and where one worker
	// takes turns with them, one is enough.
	p.Parcels = 2*o.Workers - 1
	most := int64(job.ParcelJobs * (p.Parcels + 2))
	p.Jobs = min((o.Memory-need)/p.JobLease, most)
	if p.Jobs < leastJobs {
		return nil, &CapError{o.Memory, p.Smallest, largestShare(fixed[1:], phases), o.Workers}
	}
	p.lengthenJobs(from, most, (o.Memory-need)/2)
	if p.sizeAhead(from, need); p.Ahead > 0 {
		fixed = append(fixed, budget.Share{Name: "ahead", Bytes: p.Ahead, Why: "what is decompressed before its turn"})
		need += p.Ahead
	}
	p.Readers = int(max(1, min(workers, (o.Memory-need)/(sourceBytes(phases)+2*source.CountBytes))))
	fixed = append(fixed, budget.Share{Name: "jobs", Bytes: o.Memory - need,
		Why: fmt.Sprintf("text and ids in flight: up to %d jobs of %v, or longer records", p.Jobs, units.Size(p.JobLease))})
	p.Shares, p.Sum = fixed, o.Memory
	return p, nil
}

// sizeAhead decides what may be decompressed ahead: of what all jobs leave, and a job of the longest record.
func (p *MemoryPlan) sizeAhead(from *Prepared, need int64) {
	if from.Options.Workers == 1 || !slices.ContainsFunc(from.Phases, func(p Phase) bool { return p.Set.Decodes() }) {
		return
	}
	longest := work.LongRecordLease(job.MaxRecordBytes, from.Phases[0].Formatter, from.Chat)
	p.Ahead = max(0, min(p.Cap-need-p.Jobs*p.JobLease-longest, int64(from.Options.Workers)*aheadBytes))
}

// sizeList decides how many shards the list may have, where the rest of the build needs need bytes
// and the jobs at least jobs, and returns the list's share.
func (p *MemoryPlan) sizeList(memory, need, jobs int64) budget.Share {
	// While the manifest is written, all that the jobs had is free for it.
	p.MaxShards = leastShards + int(max(0, min(memory/listShare/dataset.ListBytes, (memory-need-jobs)/dataset.ListBytes,
		(memory-need)/(dataset.FinishBytes+dataset.ListBytes), int64(dataset.MaxShards-leastShards))))
	return budget.Share{Name: "list of shards", Bytes: int64(p.MaxShards-leastShards) * dataset.ListBytes,
		Why: fmt.Sprintf("sizes and checksums of up to %d shards", p.MaxShards)}
}

// largestShare returns the one that needs most, or the source where a file in it needs more than usual.
func largestShare(parts []budget.Share, phases []Phase) budget.Share {
	i := slices.IndexFunc(parts, func(p budget.Share) bool { return p.Name == sourceShare })
	if slices.ContainsFunc(phases, func(p Phase) bool { return p.Set.WhyWindow() != "" }) {
		return parts[i]
	}
	return slices.MaxFunc(parts, func(a, b budget.Share) int { return cmp.Compare(a.Bytes, b.Bytes) })
}

// metadataBytes returns what the metadata of a file may take while the sources are opened: what is left of
// the cap by parts that every plan has. The plan refuses a file that needs more.
func (p *Prepared) metadataBytes() int64 {
	o := p.Options
	parts := processBytes + o.Memory/gcShare + p.Tokenizer.Details().ResidentBytes() + o.ExtraBytes + 2*job.PieceBytes +
		encodersBytes(o, p.Tokenizer, leastCacheBytes) +
		int64(o.Workers+2)*job.LeaseBytes(job.TextBytes+job.PieceBytes, 1, 0)
	return max(1<<20, o.Memory-parts)
}

// sizeJobs sets the records that a usual job may hold, for which a template may write own bytes besides theirs, and its
// lease.
func (p *MemoryPlan) sizeJobs(o *option.Options, f *example.Formatter, c *work.Conversations, own int64) {
	p.MaxRecords = job.MaxRecords
	if key := o.Dedup.KeyBytes(); key > 0 { // the keys lie in the room of fewer records
		p.MaxRecords = job.MaxRecords * job.RecordBytes / (job.RecordBytes + key)
	}
	templateBytes := f.OverheadBytes()
	if templateBytes > 0 {
		p.MaxRecords = int(max(1, min(int64(p.MaxRecords), own/templateBytes)))
	}
	p.JobLease = job.LeaseBytes(job.TextBytes+job.PieceBytes, int64(p.MaxRecords), templateBytes)
	if c != nil {
		p.MaxRecords = int(max(1, min(int64(p.MaxRecords), own/c.OverheadBytes())))
		p.JobLease = c.LeaseBytes(job.TextBytes+job.PieceBytes, int64(p.MaxRecords))
	}
}

// lengthenJobs lets jobs hold more of a template's own text where most of them fit the room.
func (p *MemoryPlan) lengthenJobs(from *Prepared, most, room int64) {
	for own := int64(2 * job.TextBytes); own <= 32*job.TextBytes; own *= 2 {
		longer := *p
		if longer.sizeJobs(from.Options, from.Phases[0].Formatter, from.Chat, own); longer.JobLease*most > room {
			return
		}
		*p = longer
	}
}

// sizeCaches halves the caches until they fit, and are not too large for so much text.
func (p *MemoryPlan) sizeCaches(text int64, fits func(bytes int) bool) {
	p.CacheBytes = fullCacheBytes
	for p.CacheBytes > leastCacheBytes && (!fits(p.CacheBytes) || int64(p.CacheBytes) > cacheShare*text) {
		p.CacheBytes /= 2
	}
}

// textBytes returns about how much text the sources hold, more than any cache is for where that is not known.
func textBytes(phases []Phase) (sum int64) {
	for _, p := range phases {
		n, known := p.Set.EstimateBytes()
		if !known {
			return fullCacheBytes
		}
		sum += n
	}
	return sum
}

// encodersBytes returns the memory of all encoders, where those of the workers have word caches of
// the given size.
func encodersBytes(o *option.Options, t *tokenize.Tokenizer, cacheBytes int) int64 {
	n := int64(o.Workers) * t.Details().EncoderBytes(work.EncoderOptions(cacheBytes))
	if o.MaxBytes > 0 {
		n += t.Details().EncoderBytes(work.EncoderOptions(TailCacheBytes))
	}
	return n
}

// fixedShares returns the shares of the cap that are there whatever is left for the others.
func (p *Prepared) fixedShares(n Needs) []budget.Share {
	o, t, phases, builder := p.Options, p.Tokenizer, p.Phases, p.Shards
	builder.MaxShards = leastShards
	f, workers, computed := phases[0].Formatter, int64(o.Workers), ""
	if n := f.ScratchBytes(job.PieceBytes); n > 0 {
		computed = fmt.Sprintf(", each with %v for what the template computes", units.Size(n))
	}
	shares := []budget.Share{
		{Name: "process", Bytes: processBytes + o.Memory/gcShare,
			Why: "runtime, program, stacks, garbage between collections"},
		{Name: "vocabulary", Bytes: t.Details().ResidentBytes(), Why: "tables of " + t.Name()},
		{Name: sourceShare, Bytes: sourceBytes(phases) + 2*job.PieceBytes + 4*origins.PageBytes, Why: whySource(phases)},
		{Name: "shards", Bytes: dataset.BuilderBytes(builder), Why: "open record batches, checksums, checkpoint"},
		{Name: "held out", Bytes: 2 * heldout.DocumentBytes * n.HeldOut, Why: n.WhyHeldOut},
		{Name: "partial example", Bytes: 16 * int64(min(o.MaxLength, job.MaxRecordBytes)),
			Why: fmt.Sprintf("a chunk carried on, up to %d tokens", o.MaxLength)},
		{Name: "scratch", Bytes: workers*(workerBytes+f.ScratchBytes(job.PieceBytes)) + f.ResidentBytes(),
			Why: fmt.Sprintf("%d workers' decoded text%s", workers, computed)},
	}
	if n.Bucket {
		shares = append(shares, budget.Share{Name: "bucket", Bytes: remote.StoreBytes, Why: "connections, uploads"})
	}
	if o.Pack != pack.None {
		c, splits := p.PackConfig(builder.Schema), int64(1)
		if o.MaxValExamples > 0 || len(o.ValSources) > 0 {
			splits++
		}
		shares = append(shares, budget.Share{Name: "packing", Bytes: c.MemoryBytes(splits), Why: c.Why()})
	}
	if o.Map != "" {
		shares = append(shares, read.MapShare())
	}
	if o.Filter.Active() {
		shares = append(shares, budget.Share{Name: "filters", Bytes: p.Filter.MemoryBytes(o.Workers),
			Why: "conditions and expressions, and what each worker's matches take"})
	}
	if p.Chat != nil {
		shares = append(shares, p.Chat.MemoryShare(workers))
	}
	if o.ExtraBytes > 0 {
		shares = append(shares, budget.Share{Name: "extras", Bytes: o.ExtraBytes,
			Why: "a live page, messages: what the process holds besides the build"})
	}
	return append(shares, n.More...)
}

// sourceBytes returns the memory of the sets of all phases and of one reader.
func sourceBytes(phases []Phase) (n int64) {
	for _, p := range phases {
		n += p.Set.MemoryBytes()
	}
	return n
}

func whySource(phases []Phase) string {
	var window int64
	for _, p := range phases {
		window = max(window, p.Set.LargestWindow())
	}
	for _, p := range phases {
		if why := p.Set.WhyWindow(); why != "" {
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

// PackConfig returns how documents share rows.
func (p *Prepared) PackConfig(schema shard.Schema) rows.Config {
	o := p.Options
	return rows.Config{Policy: o.Pack, Length: o.MaxLength, Window: rows.WindowTokens(o.PackWindow, o.MaxLength),
		Schema: schema, Suffix: len(p.CutterOptions().Suffix)}
}
