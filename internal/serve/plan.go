package serve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/shard"
)

// prepared is what a query comes to before any row is read.
type prepared struct {
	query     feed.Query // with the server's default packing
	members   []member
	collation collate.Options
	steps     sampler.StepOptions
	bound     bound
}

// prepare checks q against the manifests.
func (r *Reader) prepare(q feed.Query) (p prepared, err error) {
	if p.query, err = r.packing(q); err != nil {
		return p, err
	}
	if p.members, err = r.members(p.query); err != nil {
		return p, err
	}
	p.bound = boundOf(p.members)
	if p.packs() {
		p.bound.longest, p.bound.longestLabels = int64(packLength(p.query, p.members)), 0
	}
	p.collation, err = collationOf(p.query, p.members)
	p.steps = stepsOf(p.query, p.collation)
	return p, err
}

// packs reports whether rows are packed while they are served.
func (p *prepared) packs() bool { return p.query.Pack != pack.None }

// bucket returns the rows of a window of length bucketing.
func (p *prepared) bucket() int {
	return sampler.WindowRows(p.query.Bucket, p.query.Group, p.bound.rows)
}

// refused turns an error about an option of the sampler into one about the request.
func refused(err error, format string, args ...any) error {
	var bad *fault.Error
	if errors.As(err, &bad) && bad.Option != "" {
		return feed.BadParam(string(bad.Option), bad.What.String(), fmt.Sprintf(format, args...))
	}
	return err
}

// Open plans the stream that q asks for.
func (r *Reader) Open(q feed.Query) (*feed.Opening, error) {
	if err := r.checkCurrent(); err != nil {
		return nil, err
	}
	p, err := r.prepare(q)
	if err != nil {
		return nil, err
	}
	if p.packs() {
		return r.openPacked(p)
	}
	s, step, err := r.newCheckedStream(p)
	if err != nil {
		return nil, err
	}
	rows, tokens := p.bound.batch(p.steps)
	if step > 0 && p.steps.Balance == sampler.ByTokens && p.steps.MaxTokens == 0 {
		// Many short rows may come in place of long ones.
		padded := rows * p.steps.PaddedLength(p.bound.longest)
		rows = min(step, padded/max(1, p.steps.PaddedLength(p.bound.shortest)))
		tokens = max(padded, rows*p.bound.longestLabels)
	}
	return &feed.Opening{
		Collate: p.collation, Mixed: len(p.members) > 1, BatchRows: int(rows), BatchTokens: tokens,
		WindowBytes: s.bytes(p.bucket(), p.query.MaxTokens > 0, rows, step), Stream: s,
		Searched: p.bucket() > 0 || p.query.MaxTokens > 0 || step > 0 || r.buckets != nil,
		Metadata: p.metadata(s.order.Rows()), LeftOut: s.steps.LeftOut,
	}, nil
}

// newCheckedStream makes the stream of rows that are not packed, and returns how many rows a
// balanced step has at most, 0 if none is balanced.
func (r *Reader) newCheckedStream(p prepared) (s *rowStream, step int64, err error) {
	if err := checkLongest(p.steps, p.bound.longest); err != nil {
		return nil, 0, err
	}
	if step, err = p.bound.balanced(p.steps); err != nil {
		return nil, 0, err
	}
	s, err = r.newRowStream(p, p.steps)
	return s, step, refused(err, "an epoch has %d rows", p.bound.rows)
}

// metadata returns the metadata of a stream's schema; rows are those of an epoch.
func (p *prepared) metadata(rows int64) map[string]string {
	return map[string]string{
		"dsload.rows": fmt.Sprint(rows), "dsload.split": p.query.Split,
		"dsload.pad_token_id": fmt.Sprint(p.collation.PadID),
		"dsload.tokenizer":    p.members[0].dataset.shards.Manifest().Tokenizer.Fingerprint,
	}
}

// stepsOf returns how q divides the order into steps.
func stepsOf(q feed.Query, collation collate.Options) sampler.StepOptions {
	return sampler.StepOptions{
		BatchRows: q.BatchSize, MaxTokens: q.MaxTokens, Multiple: q.PadToMultipleOf, FixedLength: collation.FixedLength,
		Rank: q.Rank, World: q.World, Tail: q.Tail, Epochs: q.Epochs, Start: q.Start,
		Balance: q.Balance,
	}
}

// checkLongest returns an error if the longest row exceeds the token budget of a batch.
func checkLongest(o sampler.StepOptions, longest int64) error {
	padded := o.PaddedLength(longest)
	if o.MaxTokens == 0 || padded <= o.MaxTokens {
		return nil
	}
	return feed.BadParam("max_tokens", fmt.Sprintf("the longest row takes %d tokens with padding", padded),
		fmt.Sprintf("ask for max_tokens=%d at least, or build with a smaller max-length", padded))
}

// newOrder makes the order of the rows, with windows of bucket rows sorted by length.
func (p *prepared) newOrder(bucket int, lengths sampler.LengthsFunc) (*sampler.Order, error) {
	return sampler.NewOrder(sampler.Options{
		Sources: sources(p.members), Shuffle: p.query.Shuffle, Seed: p.query.Seed, Bucket: bucket, Group: p.query.Group,
		Changes: changes(p.query, p.members),
	}, lengths)
}

// newRowStream connects the order of rows with the splits that hold them. Errors about options come
// from the sampler.
func (r *Reader) newRowStream(p prepared, steps sampler.StepOptions) (*rowStream, error) {
	s := &rowStream{reader: r, members: p.members, needs: neededColumns(p.members[0].split.Schema(), p.collation)}
	var err error
	s.order, err = p.newOrder(p.bucket(), s.lengths)
	if err == nil {
		s.steps, err = sampler.NewSteps(s.order, steps)
	}
	if err == nil {
		window := int64(p.bucket())
		if window == 0 && (steps.MaxTokens > 0 || steps.Balance != sampler.NoBalance && steps.World > 1) {
			window = aheadRows
		}
		s.ahead, err = r.newPrefetcher(p, steps, window)
	}
	return s, err
}

// member is one dataset's split in a stream.
type member struct {
	dataset *opened
	split   *shard.Split
	weight  float64
}

// members finds the splits that q names, and checks that they can be mixed.
func (r *Reader) members(q feed.Query) (members []member, err error) {
	names := r.mixed(q)
	for _, name := range names {
		d := r.find(name)
		if d == nil {
			return nil, feed.BadParam("mix", fmt.Sprintf("no dataset %q is served", name), "served are "+r.names())
		}
		split, err := d.split(q.Split)
		if err != nil {
			return nil, err
		}
		members = append(members, member{d, split, float64(split.NumRows())}) // every row as likely as any other
	}
	if q.Mix != nil {
		for i, w := range weights(q.Mix[0], members) {
			members[i].weight = w
		}
	}
	a := members[0].dataset
	for _, p := range members[1:] {
		am, bm := a.shards.Manifest(), p.dataset.shards.Manifest()
		if am.Tokenizer.Fingerprint != bm.Tokenizer.Fingerprint || am.Schema != bm.Schema {
			return nil, feed.BadParam("mix", fmt.Sprintf("datasets %s and %s differ in tokenizer or columns",
				a.name, p.dataset.name),
				"mix datasets that were built with the same tokenizer and kind of source")
		}
	}
	return members, nil
}

// mixed returns the datasets that q names, in the order of q, or all.
func (r *Reader) mixed(q feed.Query) (names []string) {
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, segment := range q.Mix {
		for _, p := range segment.Members {
			add(p.Name)
		}
		if segment.Members == nil {
			for _, d := range r.datasets {
				add(d.name)
			}
		}
	}
	if q.Mix == nil {
		for _, d := range r.datasets {
			add(d.name)
		}
	}
	return names
}

// weights returns those of the members in a segment of a mix.
func weights(s feed.MixSegment, members []member) []float64 {
	out := make([]float64, len(members))
	for i := range members {
		if s.Members == nil {
			out[i] = power(members[i].split.NumRows(), s.Temperature)
		}
		for _, p := range s.Members {
			if p.Name == members[i].dataset.name {
				out[i] = p.Weight
			}
		}
	}
	return out
}

// power returns rows^t rounded to 12 digits, on which all implementations agree.
func power(rows int64, t float64) float64 {
	w, err := strconv.ParseFloat(strconv.FormatFloat(math.Pow(float64(rows), t), 'e', 11, 64), 64)
	if err != nil {
		panic(err) // what FormatFloat writes can be read
	}
	return w
}

// changes returns the segments of a mix after the first.
func changes(q feed.Query, members []member) (out []sampler.Change) {
	for i := 1; i < len(q.Mix) && len(members) > 1; i++ {
		out = append(out, sampler.Change{At: q.Mix[i].At, Weights: weights(q.Mix[i], members)})
	}
	return out
}

// split opens a split for reading. A *feed.RequestError says which splits there are.
func (d *opened) split(name string) (*shard.Split, error) {
	split, err := d.shards.Split(name)
	if err == nil {
		return split, nil
	}
	var have []string
	for _, s := range d.shards.Manifest().Splits {
		have = append(have, s.Name)
	}
	if have == nil {
		return nil, feed.BadParam("split", fmt.Sprintf("dataset %s has no rows", d.name),
			"`dsload inspect` shows what its build read")
	}
	hint := "it has " + strings.Join(have, ", ")
	if near := spelling.Nearest(name, have); near != "" {
		hint += "; did you mean " + near + "?"
	}
	if name == "val" {
		hint += "; a split val is held out by building with max-val-examples or val"
	}
	return nil, feed.BadParam("split", fmt.Sprintf("dataset %s has no split %q", d.name, name), hint)
}

func sources(members []member) (out []sampler.Source) {
	for _, p := range members {
		out = append(out, sampler.Source{Rows: p.split.NumRows(), Weight: p.weight})
	}
	return out
}

// bound holds the limits of a stream's rows, from the manifests.
type bound struct {
	rows                             int64
	shortest, longest, longestLabels int64
}

// batch returns the maximum number of rows of a batch, and of its tokens before padding and without
// labels.
func (b bound) batch(o sampler.StepOptions) (rows, tokens int64) {
	rows = int64(o.BatchRows)
	if o.MaxTokens > 0 {
		rows = min(rows, o.MaxTokens/max(1, o.PaddedLength(b.shortest)))
	}
	tokens = rows * max(b.longest, b.longestLabels)
	if o.MaxTokens > 0 && b.longestLabels == 0 {
		tokens = min(tokens, o.MaxTokens)
	}
	return rows, tokens
}

// balanced returns the maximum number of rows of a balanced step, or 0 if none is balanced.
func (b bound) balanced(o sampler.StepOptions) (rows int64, err error) {
	if o.Balance == sampler.NoBalance || o.World == 1 {
		return 0, nil
	}
	batch, _ := b.batch(o)
	if rows = batch * int64(o.World); rows > sampler.MaxBalanced {
		return 0, feed.BadParam("balance", fmt.Sprintf("a step of %d rows cannot be balanced", rows),
			fmt.Sprintf("ask for a batch_size of %d at most", sampler.MaxBalanced/o.World))
	}
	return rows, nil
}

func boundOf(members []member) bound {
	b := bound{shortest: math.MaxInt64}
	for _, p := range members {
		info := p.split.Info()
		b.rows += info.Examples
		b.shortest, b.longest, b.longestLabels = min(b.shortest, info.MinLength), max(b.longest, info.MaxLength),
			max(b.longestLabels, info.MaxLabels)
	}
	return b
}

// collationOf returns how rows of the members become the batches that q asks for.
func collationOf(q feed.Query, members []member) (collate.Options, error) {
	schema, m := members[0].split.Schema(), members[0].dataset.shards.Manifest()
	o := collate.Options{
		PadID: padID(m.Tokenizer.Special, schema.VocabSize), TokenBytes: schema.IDWidth(),
		Left: q.Left, Multiple: q.PadToMultipleOf, Narrow: q.Int32, Packed: schema.Segments,
		LossMask: schema.LossMask, Labels: q.Labels, MaskBorders: q.MaskBorders,
	}
	if o.Labels == collate.Auto {
		if o.Labels = collate.Causal; schema.Labels {
			o.Labels = collate.Seq2Seq
		}
	}
	if o.Labels == collate.Seq2Seq && !schema.Labels {
		return o, feed.BadParam("labels", "the dataset has no targets for seq2seq",
			"build it from prompts and targets, or omit labels")
	}
	if q.Pack != pack.None {
		return packedCollation(q, members, o)
	}
	if q.MaxLength {
		for _, p := range members {
			o.FixedLength = max(o.FixedLength, p.dataset.maxLength, int(p.split.Info().MaxLength))
		}
		m := max(1, q.PadToMultipleOf)
		o.FixedLength = (o.FixedLength + m - 1) / m * m
	}
	return o, nil
}

// padID returns the id used for padding: the tokenizer's own, else the end of text, as trainers of
// models without a padding token use. An id outside the vocabulary is ignored.
func padID(special map[string]int64, vocabulary int) int32 {
	for _, role := range []string{"pad", "eos"} {
		if id, ok := special[role]; ok && id >= 0 && id < int64(vocabulary) {
			return int32(id)
		}
	}
	return 0
}
