package serve

import (
	"encoding/json"
	"sort"

	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

// Document returns the rows of a document of a member, at each place in the order where they come, or
// only at the first if the query has no end.
func (t *Trace) Document(member int, document int64) (rows []TracedRow, err error) {
	split := t.Split(member)
	i, end, err := RowsOf(split, document, document+1)
	if err != nil {
		return nil, err
	}
	times := maxTimes
	if t.query.Epochs == 0 {
		times = 1
	}
	for ; i < end; i++ {
		ref := sampler.Ref{Source: int32(member), Row: i}
		if t.packed != nil {
			if rows, err = t.packedWith(rows, ref, times); err != nil {
				return nil, err
			}
			continue
		}
		found, err := t.stream.order.Find(ref, t.opts.Start, t.end(), times)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			row, err := t.located(TracedRow{Member: member, Example: i, Position: p})
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Position < rows[j].Position })
	if t.packed != nil {
		return t.packedSteps(rows)
	}
	return rows, nil
}

// SplitOf returns the name of another split of a dataset that has rows of a document, or "". Splits that were built from
// different sources count their documents separately, so they share none.
func SplitOf(d *shard.Dataset, but string, document int64) (string, error) {
	var settings struct {
		Val []string `json:"val"`
	}
	if err := json.Unmarshal(d.Manifest().Settings, &settings); err != nil || len(settings.Val) > 0 {
		return "", nil // settings of another program are not an error
	}
	for _, info := range d.Manifest().Splits {
		if info.Name == but {
			continue
		}
		split, err := d.Split(info.Name)
		if err != nil {
			return "", err
		}
		if from, to, err := RowsOf(split, document, document+1); err != nil || from < to {
			return info.Name, err
		}
	}
	return "", nil
}

// RowsOf returns the rows of the documents from first up to, not including, end in a split that is not packed: from up
// to, not including, to.
func RowsOf(split *shard.Split, first, end int64) (from, to int64, err error) {
	at := func(i int64) int64 {
		var d [1]int64
		if e := split.Documents(d[:], i); e != nil && err == nil {
			err = e
		}
		return d[0]
	}
	rows := int(split.NumRows())
	from = int64(sort.Search(rows, func(i int) bool { return at(int64(i)) >= first }))
	to = int64(sort.Search(rows, func(i int) bool { return at(int64(i)) >= end }))
	return from, to, err
}
