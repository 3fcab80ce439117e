package shard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

func TestAppendErrors(t *testing.T) {
	o := allCols.options()
	o.MaxRowTokens = 10
	b, _, err := dataset.OpenBuilder(shardtest.New(), "/d", o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	good := func() *dataset.Example {
		return &dataset.Example{InputIDs: []uint32{1, 2}, Labels: []uint32{3}, LossMask: []bool{true, false},
			Segments: []int32{1, 1}}
	}
	cases := []struct {
		name   string
		change func(*dataset.Example)
		want   error
	}{
		{"no ids", func(e *dataset.Example) { e.InputIDs = nil }, shard.ErrSchema},
		{"no labels", func(e *dataset.Example) { e.Labels = nil }, shard.ErrSchema},
		{"short mask", func(e *dataset.Example) { e.LossMask = e.LossMask[:1] }, shard.ErrSchema},
		{"id", func(e *dataset.Example) { e.InputIDs[1] = 1000 }, shard.ErrRange},
		{"label", func(e *dataset.Example) { e.Labels[0] = 1 << 31 }, shard.ErrRange},
		{"negative document", func(e *dataset.Example) { e.Document = -1 }, shard.ErrRange},
		{"long", func(e *dataset.Example) {
			e.InputIDs, e.LossMask, e.Segments = make([]uint32, 11), make([]bool, 11), []int32{11}
		}, shard.ErrTooLarge},
		{"segments", func(e *dataset.Example) { e.Segments = []int32{1, 2} }, nil},
	}
	for _, tc := range cases {
		e := good()
		tc.change(e)
		if err := b.Row("train", e); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := b.Row("test", good()); !errors.Is(err, shard.ErrNoSplit) {
		t.Error(err)
	}
	if err := b.Row("train", good()); err != nil {
		t.Fatal(err)
	}
	if _, rows, tokens := b.Written("train"); rows != 1 || tokens != 2 {
		t.Errorf("%d rows, %d tokens", rows, tokens)
	}
	p, _, err := dataset.OpenBuilder(shardtest.New(), "/d", plain.options())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, e := range []dataset.Example{{Document: 1, Part: 1}, {Document: 1, Part: 1}, {Document: 1},
		{Document: 0, Part: 5}} {
		e.InputIDs = []uint32{1}
		err = errors.Join(err, p.Row("train", &e))
	}
	if strings.Count(fmt.Sprint(err), dataset.ErrOrder.Error()) != 3 {
		t.Errorf("order: %v", err)
	}
}
