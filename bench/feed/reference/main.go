// Command reference prints the batches that the feed should send, as JSON lines. It computes them
// in the slow and obvious way: it reads the whole split into memory and pads with plain loops.
// Tests compare what clients in other languages read with its output.
//
//	reference DIR 'batch_size=7&seed=5'
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/shard"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference DIR QUERY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

type example struct{ ids, labels []uint32 }

// batch is a line of output. Its names are the feed's columns.
type batch struct {
	InputIDs      [][]int64 `json:"input_ids"`
	AttentionMask [][]int64 `json:"attention_mask"`
	Labels        [][]int64 `json:"labels"`
	Length        []int     `json:"length"`
	Example       []int64   `json:"example"`
	Row           []int64   `json:"row"`
	Next          []int64   `json:"next"`
}

func run(dir, query string, out io.Writer) error {
	q, err := feed.ParseQuery(query)
	if err != nil {
		return err
	}
	rows, pad, targets, err := load(dir, q.Split)
	if err != nil {
		return err
	}
	if q.Labels == collate.Auto && targets {
		q.Labels = collate.Seq2Seq
	}
	order, err := sampler.NewOrder(sampler.Options{
		Sources: []sampler.Source{{Rows: int64(len(rows))}}, Seed: q.Seed, Bucket: q.Bucket, Group: q.Group,
		Shuffle: q.Shuffle,
	}, func(items []sampler.Item) error {
		for i := range items {
			items[i].Length = int32(len(rows[items[i].Row].ids))
		}
		return nil
	})
	if err != nil {
		return err
	}
	steps, err := sampler.NewSteps(order, sampler.StepOptions{
		BatchRows: q.BatchSize, MaxTokens: q.MaxTokens, Multiple: q.PadToMultipleOf, Rank: q.Rank, World: q.World,
		Epochs: q.Epochs, Start: q.Start,
		Tail: q.Tail,
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	var step sampler.Batch
	for {
		err := steps.Next(&step)
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		if err := enc.Encode(collated(q, rows, step, pad)); err != nil {
			return err
		}
	}
}

// load reads a split into memory. targets reports whether its rows have labels.
func load(dir, split string) (rows []example, pad int64, targets bool, err error) {
	d, err := shard.Open(dir)
	if err != nil {
		return nil, 0, false, err
	}
	defer d.Close()
	r, err := d.Split(split)
	if err != nil {
		return nil, 0, false, err
	}
	for row, err := range r.Rows(0, r.NumRows()) {
		if err != nil {
			return nil, 0, false, err
		}
		rows = append(rows, example{row.AppendInputIDs(nil), row.AppendLabels(nil)})
	}
	targets = r.Schema().Labels
	special := d.Manifest().Tokenizer.Special
	if id, ok := special["pad"]; ok {
		return rows, id, targets, nil
	}
	return rows, special["eos"], targets, nil // 0 if there is no eos
}

func collated(q feed.Query, rows []example, step sampler.Batch, pad int64) batch {
	longest, longestLabels := 0, 0
	for _, it := range step.Items {
		longest, longestLabels = max(longest, len(rows[it.Row].ids)), max(longestLabels, len(rows[it.Row].labels))
	}
	for longest%q.PadToMultipleOf != 0 {
		longest++
	}
	for longestLabels%q.PadToMultipleOf != 0 {
		longestLabels++
	}
	padded := func(ids []uint32, n int, value int64) []int64 {
		tokens := []int64{}
		for _, id := range ids {
			tokens = append(tokens, int64(id))
		}
		fill := []int64{}
		for range n - len(ids) {
			fill = append(fill, value)
		}
		if q.Left {
			return append(fill, tokens...)
		}
		return append(tokens, fill...)
	}
	var b batch
	for _, it := range step.Items {
		e := rows[it.Row]
		ones := make([]uint32, len(e.ids))
		for i := range ones {
			ones[i] = 1
		}
		b.InputIDs = append(b.InputIDs, padded(e.ids, longest, pad))
		b.AttentionMask = append(b.AttentionMask, padded(ones, longest, 0))
		if q.Labels == collate.Seq2Seq {
			b.Labels = append(b.Labels, padded(e.labels, longestLabels, -100))
		} else {
			b.Labels = append(b.Labels, padded(e.ids, longest, -100))
		}
		b.Length, b.Example, b.Row = append(b.Length, len(e.ids)), append(b.Example, it.Row), append(b.Row, it.Position)
		b.Next = append(b.Next, step.Next)
	}
	return b
}
