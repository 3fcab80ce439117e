package serve

import (
	"cmp"
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

// A choice is what a query comes to before any row is read: which rows, in which order and steps, as which batches.
type choice struct {
	query     feed.Query // with the server's default packing
	members   []member
	collation collate.Options
	needs     shard.Columns // besides input_ids
	length    int           // tokens of a packed row; 0 if rows are not packed while they are served
	order     sampler.Options
	steps     sampler.StepOptions
	bound     bound
	counted   []*feed.Counted
	epoch     int64 // row numbers of an epoch: those of packed rows are known once their stream is there
}

// bound is the most that batches hold. It follows from the manifests.
type bound struct {
	rows, tokens int64 // in a batch: tokens before padding and without labels
	balanced     int64 // rows of a step of all ranks that is balanced; 0 if none is
}

// Open plans the stream that q asks for.
func (r *Reader) Open(q feed.Query) (*feed.Opening, error) {
	if err := r.checkCurrent(); err != nil {
		return nil, err
	}
	c, err := r.choose(q)
	if err != nil {
		return nil, err
	}
	o := &feed.Opening{Collate: c.collation, Mixed: len(c.members) > 1, Sources: c.query.Sources, BatchRows: int(c.bound.rows),
		BatchTokens: c.bound.tokens, Counted: c.counted, Asked: c.asked()}
	rows, packed, err := r.newStream(c)
	if err != nil {
		return nil, err
	}
	if packed != nil {
		o.WindowBytes, o.Searched, o.Stream, o.LeftOut = packed.bytes(), true, packed, packed.steps.LeftOut
		o.Dropped = packed.dropped()
	} else {
		o.WindowBytes, o.Stream, o.LeftOut = rows.bytes(c), rows, rows.steps.LeftOut
		o.Searched = c.order.Bucket > 0 || c.steps.MaxTokens > 0 || c.bound.balanced > 0 || r.buckets != nil
	}
	o.Metadata = map[string]string{
		"dsload.rows": fmt.Sprint(c.epoch), "dsload.split": c.query.Split,
		"dsload.pad_token_id": fmt.Sprint(c.collation.PadID),
		"dsload.tokenizer":    c.members[0].dataset.shards.Manifest().Tokenizer.Fingerprint,
	}
	return o, nil
}

// newStream makes the stream of a choice: rows, which are the base of packed if that is not nil.
func (r *Reader) newStream(c *choice) (rows *rowStream, packed *packedStream, err error) {
	if c.length == 0 {
		rows, err = r.newRowStream(c)
	} else if packed, err = r.newPackedStream(c); err == nil {
		rows = &packed.base
	}
	if err != nil {
		return nil, nil, c.refused(err)
	}
	return rows, packed, nil
}

// choose checks q against the manifests.
func (r *Reader) choose(q feed.Query) (*choice, error) {
	q, err := r.packing(q)
	if err != nil {
		return nil, err
	}
	c := &choice{query: q}
	if c.members, err = r.members(q); err != nil {
		return nil, err
	}
	if err := errors.Join(c.collate(), c.tellSources()); err != nil {
		return nil, err
	}
	c.steps = sampler.StepOptions{
		BatchRows: q.BatchSize, MaxTokens: q.MaxTokens, Multiple: q.PadToMultipleOf,
		FixedLength: c.collation.FixedLength, Rank: q.Rank, World: max(1, q.World), Tail: q.Tail, Epochs: q.Epochs,
		Start: q.Start, Balance: q.Balance, Ahead: aheadRows,
	}
	if r.buckets == nil {
		c.steps.Ahead = aheadLocal
	}
	c.order = sampler.Options{Shuffle: q.Shuffle, Seed: q.Seed, Group: q.Group}
	for i := 1; i < len(q.Mix) && len(c.members) > 1; i++ {
		c.order.Changes = append(c.order.Changes, sampler.Change{At: q.Mix[i].At, Weights: weights(q.Mix[i], c.members)})
	}
	for _, m := range c.members {
		c.order.Sources = append(c.order.Sources, sampler.Source{Rows: m.split.NumRows(), Weight: m.weight})
		c.epoch += m.split.NumRows()
	}
	if err := c.limit(); err != nil {
		return nil, err
	}
	c.order.Bucket = sampler.WindowRows(q.Bucket, q.Group, c.epoch)
	return c, nil
}

// limit sets the bound, or returns why no batch can be within it.
func (c *choice) limit() error {
	shortest, longest, labels := int64(math.MaxInt64), int64(0), int64(0)
	for _, m := range c.members {
		info := m.split.Info()
		shortest, longest, labels = min(shortest, info.MinLength), max(longest, info.MaxLength),
			max(labels, info.MaxLabels)
	}
	if c.length > 0 {
		longest, labels = int64(c.length), 0
	}
	o := c.steps
	padded, least := o.PaddedLength(longest), max(1, o.PaddedLength(shortest))
	rows := int64(o.BatchRows)
	if o.MaxTokens > 0 {
		if padded > o.MaxTokens {
			return feed.BadParam("max_tokens", fmt.Sprintf("the longest row takes %d tokens with padding", padded),
				fmt.Sprintf("ask for max_tokens=%d at least, or build with a smaller max-length", padded))
		}
		rows = min(rows, o.MaxTokens/least)
	}
	c.bound.rows, c.bound.tokens = rows, rows*max(longest, labels)
	if o.MaxTokens > 0 && labels == 0 {
		c.bound.tokens = min(c.bound.tokens, o.MaxTokens)
	}
	if o.Balance == sampler.NoBalance || o.World == 1 {
		return nil
	}
	if c.bound.balanced = rows * int64(o.World); c.bound.balanced > sampler.MaxBalanced {
		return feed.BadParam("balance", fmt.Sprintf("a step of %d rows cannot be balanced", c.bound.balanced),
			fmt.Sprintf("ask for a batch_size of %d at most", sampler.MaxBalanced/o.World))
	}
	if o.Balance == sampler.ByTokens && o.MaxTokens == 0 { // many short rows may come in place of long ones
		c.bound.rows = min(c.bound.balanced, rows*padded/least)
		c.bound.tokens = max(rows*padded, c.bound.rows*labels)
	}
	return nil
}

// refused turns an error about an option of the sampler into one about the request.
func (c *choice) refused(err error) error {
	bad, ok := errors.AsType[*fault.Error](err)
	if !ok || bad.Option == "" {
		return err
	}
	hint := fmt.Sprintf("an epoch has %d rows", c.epoch)
	if c.length > 0 {
		hint = fmt.Sprintf("an epoch has the row numbers 0 to %d", c.epoch-1)
	}
	return feed.BadParam(string(bad.Option), bad.What.String(), hint)
}

// packing sets the server's default packing if q does not set pack.
func (r *Reader) packing(q feed.Query) (feed.Query, error) {
	if q.Pack == "" {
		q.Pack = r.pack
		if q.PackLength == 0 {
			q.PackLength = r.length
		}
	}
	if q.Pack == pack.None && q.PackLength > 0 {
		return q, feed.BadParam("max_length", "rows are not packed, and this is the length of packed rows",
			"ask for pack=bfd, or another policy, too; padding=max_length pads to the build's --max-length")
	}
	if q.Pack != pack.None && q.Bucket > 0 {
		return q, feed.BadParam("bucket", "it sorts rows by length, and packed rows have one length",
			"leave bucket out, or pack")
	}
	if q.Pack != pack.None && q.Balance != sampler.NoBalance {
		return q, feed.BadParam("balance", "packed rows have one length, so that they cost the same already",
			"leave balance out, or pack")
	}
	return q, nil
}

// member is one dataset's split in a stream.
type member struct {
	dataset *opened
	split   *shard.Split
	weight  float64
	sources *splitSources
	// The first of its sources and counters among those of all members.
	firstSource, firstCounter int
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
		members = append(members, member{dataset: d, split: split, weight: float64(split.NumRows()),
			sources: d.sources[q.Split]}) // every row as likely as any other
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

func (r *Reader) find(name string) *opened {
	if i := slices.IndexFunc(r.datasets, func(d *opened) bool { return d.name == name }); i >= 0 {
		return r.datasets[i]
	}
	return nil
}

// mixed returns the datasets that q names, in the order of q, or all.
func (r *Reader) mixed(q feed.Query) (names []string) {
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	segments := q.Mix
	if segments == nil {
		segments = []feed.MixSegment{{}}
	}
	for _, segment := range segments {
		for _, p := range segment.Members {
			add(p.Name)
		}
		if segment.Members == nil {
			for _, d := range r.datasets {
				add(d.name)
			}
		}
	}
	return names
}

// weights returns those of the members in a segment of a mix.
func weights(s feed.MixSegment, members []member) []float64 {
	out := make([]float64, len(members))
	for i := range members {
		if s.Members == nil { // rounded to 12 digits, on which all implementations agree
			power := math.Pow(float64(members[i].split.NumRows()), s.Temperature)
			out[i], _ = strconv.ParseFloat(strconv.FormatFloat(power, 'e', 11, 64), 64) // what FormatFloat writes can be read
		}
		for _, p := range s.Members {
			if p.Name == members[i].dataset.name {
				out[i] = p.Weight
			}
		}
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
		hint += "; `dsload build --max-val-examples` or `--val` holds one out"
	}
	return nil, feed.BadParam("split", fmt.Sprintf("dataset %s has no split %q", d.name, name), hint)
}

// collate sets how rows become the batches that the query asks for.
func (c *choice) collate() error {
	q, schema, m := &c.query, c.members[0].split.Schema(), c.members[0].dataset.shards.Manifest()
	o := &c.collation
	*o = collate.Options{
		PadID: padID(m.Tokenizer.Special, schema.VocabSize), TokenBytes: schema.IDWidth(),
		Left: q.Left, Multiple: q.PadToMultipleOf, Narrow: q.Int32, Packed: schema.Segments || q.Pack != pack.None,
		LossMask: schema.LossMask, Labels: q.Labels, MaskBorders: q.MaskBorders,
	}
	if o.Labels == collate.Auto {
		if o.Labels = collate.Causal; schema.Labels {
			o.Labels = collate.Seq2Seq
		}
	}
	longest := 0
	for _, m := range c.members {
		longest = max(longest, m.dataset.maxLength, int(m.split.Info().MaxLength))
	}
	if q.Pack != pack.None {
		c.length = cmp.Or(q.PackLength, longest)
		longest = c.length
	}
	switch {
	case o.Labels == collate.Seq2Seq && !schema.Labels:
		return feed.BadParam("labels", "the dataset has no targets for seq2seq",
			"build it from prompts and targets, or omit labels")
	case c.length > 0 && o.Labels == collate.Seq2Seq:
		return feed.BadParam("pack", "the dataset has prompts with targets, which cannot share rows",
			"omit pack, or use labels=causal, which ignores the targets")
	case c.length > pack.MaxLength:
		return feed.BadParam("max_length", fmt.Sprintf("the build's are up to %d tokens long, "+
			"and rows are packed to at most %d", c.length, pack.MaxLength), "ask for a smaller max_length")
	}
	if q.MaxLength {
		multiple := max(1, q.PadToMultipleOf)
		o.FixedLength = (longest + multiple - 1) / multiple * multiple
	}
	if o.Labels == collate.Seq2Seq {
		c.needs |= shard.ColumnLabels
	}
	if o.Labels == collate.Causal && schema.LossMask {
		c.needs |= shard.ColumnLossMask
	}
	if schema.Segments {
		c.needs |= shard.ColumnSegments
	}
	return nil
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
