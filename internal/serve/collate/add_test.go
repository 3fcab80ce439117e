package collate

// testRow is a row with its values, as the shard holds them.
type testRow struct {
	IDs, Labels []byte
	LossMask    []bool
	Segments    []int32
	Row
}

// add appends a row: what Read and Take do for many rows at once. A batch that refuses the row is as it was before.
func add(b *Batch, r testRow) error {
	before := b.have
	n := Counts{IDs: len(r.IDs) / b.opts.TokenBytes}
	err := b.Read(func(dst *Buffers) error {
		dst.IDs = append(dst.IDs, r.IDs...)
		if n.LossMask = b.opts.Labels == Causal && r.LossMask != nil; n.LossMask {
			dst.LossMask = append(dst.LossMask, r.LossMask...)
		}
		if b.opts.Labels == Seq2Seq {
			n.Labels = len(r.Labels) / b.opts.TokenBytes
			dst.Labels = append(dst.Labels, r.Labels...)
		}
		if b.opts.Packed {
			n.Segments = len(r.Segments)
			dst.Segments = append(dst.Segments, r.Segments...)
		}
		return nil
	})
	if err == nil {
		err = b.Take(n, r.Row)
	}
	if err != nil {
		b.have = before
	}
	return err
}
