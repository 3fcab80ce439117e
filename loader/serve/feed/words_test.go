package feed

import "testing"

// Every word that the parameters document is parsed to a value of its own, and no other word is.
func TestWordsBecomeValues(t *testing.T) {
	for query, want := range map[string]Query{
		"":                            {Shuffle: ShuffleFull, Tail: TailKeep, Labels: LabelsAuto},
		"world=2":                     {Shuffle: ShuffleFull, Tail: TailDrop, Labels: LabelsAuto},
		"world=2&shuffle=none":        {Shuffle: ShuffleNone, Tail: TailOnce},
		"world=2&split=val":           {Shuffle: ShuffleFull, Tail: TailOnce},
		"split=val":                   {Shuffle: ShuffleFull, Tail: TailKeep},
		"world=2&split=val&tail=drop": {Shuffle: ShuffleFull, Tail: TailDrop},
		"shuffle=full":                {Shuffle: ShuffleFull, Tail: TailKeep},
		"shuffle=block":               {Shuffle: ShuffleBlock, Tail: TailKeep},
		"shuffle=none":                {Shuffle: ShuffleNone, Tail: TailKeep},
		"tail=drop":                   {Tail: TailDrop},
		"tail=pad":                    {Tail: TailPad},
		"tail=keep":                   {Tail: TailKeep},
		"tail=once":                   {Tail: TailOnce},
		"labels=causal":               {Labels: LabelsCausal, Tail: TailKeep},
		"labels=seq2seq":              {Labels: LabelsSeq2Seq, Tail: TailKeep},
		"labels=none":                 {Labels: LabelsNone, Tail: TailKeep},
	} {
		q, err := ParseQuery(query)
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
	if q, err := ParseQuery("max_tokens=100000"); err != nil || q.BatchSize != MaxBatchRows {
		t.Errorf("rows under a budget of tokens: %d, %v", q.BatchSize, err)
	}
	if q, err := ParseQuery("max_tokens=100000&batch_size=7"); err != nil || q.BatchSize != 7 {
		t.Errorf("rows under a budget of tokens and batch_size: %d, %v", q.BatchSize, err)
	}
}
