package feed

import (
	"cmp"
	"testing"

	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/sampler"
)

// Every word that the parameters document is parsed to a value of its own, and no other word is.
func TestWordsBecomeValues(t *testing.T) {
	for query, want := range map[string]Query{
		"":                            {Shuffle: sampler.Full, Tail: sampler.Keep, Labels: collate.Auto},
		"world=2":                     {Shuffle: sampler.Full, Tail: sampler.Drop, Labels: collate.Auto},
		"world=2&shuffle=none":        {Shuffle: sampler.None, Tail: sampler.Once},
		"world=2&split=val":           {Shuffle: sampler.Full, Tail: sampler.Once},
		"split=val":                   {Shuffle: sampler.Full, Tail: sampler.Keep},
		"world=2&split=val&tail=drop": {Shuffle: sampler.Full, Tail: sampler.Drop},
		"shuffle=full":                {Shuffle: sampler.Full, Tail: sampler.Keep},
		"shuffle=block":               {Shuffle: sampler.Block, Tail: sampler.Keep},
		"shuffle=none":                {Shuffle: sampler.None, Tail: sampler.Keep},
		"tail=drop":                   {Tail: sampler.Drop},
		"tail=pad":                    {Tail: sampler.Pad},
		"tail=keep":                   {Tail: sampler.Keep},
		"tail=once":                   {Tail: sampler.Once},
		"labels=causal":               {Labels: collate.Causal, Tail: sampler.Keep},
		"labels=seq2seq":              {Labels: collate.Seq2Seq, Tail: sampler.Keep},
		"labels=none":                 {Labels: collate.NoLabels, Tail: sampler.Keep},
	} {
		q, err := ParseQuery(query)
		want.Shuffle, want.Labels = cmp.Or(want.Shuffle, sampler.Full), cmp.Or(want.Labels, collate.Auto)
		if err != nil || q.Shuffle != want.Shuffle || q.Tail != want.Tail || q.Labels != want.Labels {
			t.Errorf("%s: %+v, %v", query, q, err)
		}
	}
	for _, query := range []string{"shuffle=", "shuffle=Full", "tail=", "tail=unset", "labels=", "labels=loss"} {
		if q, err := ParseQuery(query); err == nil {
			t.Errorf("%s: %+v", query, q)
		}
	}
}

// What the parameters document as their default is what a query without them has.
func TestDefaultsAreAsDocumented(t *testing.T) {
	bare, err := ParseQuery("")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Parameters() {
		if p.Default == "" {
			continue
		}
		q, err := ParseQuery(p.Name + "=" + p.Default)
		if err != nil || q.Mix != nil || bare.Mix != nil {
			t.Fatalf("%s=%s: %v", p.Name, p.Default, err)
		}
		q.Mix = nil
		if got, want := q, bare; got.Split != want.Split || got.BatchSize != want.BatchSize ||
			got.PadToMultipleOf != want.PadToMultipleOf ||
			got.MaxLength != want.MaxLength || got.Left != want.Left || got.Shuffle != want.Shuffle ||
			got.Seed != want.Seed ||
			got.Epochs != want.Epochs || got.Bucket != want.Bucket || got.Group != want.Group ||
			got.Rank != want.Rank ||
			got.World != want.World || got.Start != want.Start || got.Int32 != want.Int32 || got.Labels != want.Labels {
			t.Errorf("%s=%s: %+v, without it %+v", p.Name, p.Default, got, want)
		}
	}
	if q, err := ParseQuery("max_tokens=100000"); err != nil || q.BatchSize != maxBatchRows {
		t.Errorf("rows under a budget of tokens: %d, %v", q.BatchSize, err)
	}
	if q, err := ParseQuery("max_tokens=100000&batch_size=7"); err != nil || q.BatchSize != 7 {
		t.Errorf("rows under a budget of tokens and batch_size: %d, %v", q.BatchSize, err)
	}
}
