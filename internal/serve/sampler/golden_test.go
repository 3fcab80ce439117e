package sampler

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/dsload/dsload/internal/pack"
	"github.com/google/go-cmp/cmp"
)

// lengthRule is lengthsOf in words, for readers in other languages.
const lengthRule = "1 + mix64(row<<8 | source) % 97"

// goldenOrder pins an order: readers in other languages check themselves against the same file.
type goldenOrder struct {
	Rows    []int64   `json:"rows"`
	Weights []float64 `json:"weights"`
	Changes []Change  `json:"changes"`
	Shuffle Shuffle   `json:"shuffle"`
	Seed    uint64    `json:"seed"`
	Bucket  int       `json:"bucket"`
	Group   int       `json:"group"`
	Start   int64     `json:"start"`
	Lengths string    `json:"lengths"`
	Source  []int32   `json:"source,omitempty"`
	Row     []int64   `json:"row,omitempty"`
}

func (g goldenOrder) order(t *testing.T) *Order {
	o := Options{Seed: g.Seed, Bucket: g.Bucket, Group: g.Group, Shuffle: g.Shuffle, Changes: g.Changes}
	for i, r := range g.Rows {
		s := Source{Rows: r, Weight: 1}
		if g.Weights != nil {
			s.Weight = g.Weights[i]
		}
		o.Sources = append(o.Sources, s)
	}
	return mustOrder(t, o)
}

func goldenOrders() []goldenOrder {
	cases := []goldenOrder{
		{Rows: []int64{1}, Shuffle: Full}, {Rows: []int64{2}, Shuffle: Full, Seed: 3},
		{Rows: []int64{10}, Shuffle: Full, Start: 25},
		{Rows: []int64{1000}, Shuffle: Full, Seed: 1<<64 - 1, Start: 990},
		{Rows: []int64{3_000_000}, Shuffle: Full, Seed: 5, Start: 2_999_990},
		{Rows: []int64{10_000_000_000}, Shuffle: Full, Seed: 5, Start: 79_999_999_990},
		{Rows: []int64{1100}, Shuffle: Block, Seed: 2}, {Rows: []int64{1100}, Shuffle: None, Start: 1095},
		{Rows: []int64{500}, Shuffle: Full, Seed: 7, Bucket: 64, Group: 10, Start: 480},
		{Rows: []int64{300}, Shuffle: None, Bucket: 128, Group: 256, Start: 250},
		{Rows: []int64{100, 1000, 7}, Weights: []float64{1, 2.5, 0.001}, Shuffle: Full, Seed: 11, Start: 2000},
		{Rows: []int64{100, 1000}, Weights: []float64{1, 3}, Shuffle: Block, Seed: 11, Bucket: 100, Group: 8,
			Start: 1050},
	}
	changes := []Change{{40, []float64{0, 1, 0}}, {1500, []float64{3, 1, 0.25}}, {1530, []float64{1, 0, 2}}}
	for i, shuffle := range []Shuffle{Full, Block, None} {
		for _, start := range []int64{0, 1000, 1480, 1520, 50_000} {
			cases = append(cases, goldenOrder{Rows: []int64{600, 255, 257}, Weights: []float64{1, 1, 1},
				Changes: changes,
				Shuffle: shuffle, Seed: uint64(i), Bucket: 33 * i, Group: 4 * i, Start: start})
		}
		// Blocks of 256 rows: one short of a border, at it, and one more.
		for _, rows := range []int64{255, 256, 257, 1 << 20} {
			cases = append(cases, goldenOrder{Rows: []int64{rows}, Shuffle: shuffle, Seed: 9, Start: rows - 20})
		}
	}
	return cases
}

func TestOrderIsGolden(t *testing.T) {
	cases := goldenOrders()
	for i := range cases {
		c := &cases[i]
		c.Lengths = lengthRule
		for _, it := range mustItems(t, c.order(t), c.Start, 60) {
			c.Source, c.Row = append(c.Source, it.Source), append(c.Row, it.Row)
		}
	}
	compareGolden(t, "order.json", cases)
}

// goldenSteps pins how an order is dealt to ranks, packed if Policy is set.
type goldenSteps struct {
	Order     goldenOrder `json:"order"`
	Policy    pack.Policy `json:"policy"`
	Length    int         `json:"length"` // tokens of a packed row
	Tokens    int64       `json:"tokens"` // of all sources, if packed
	BatchRows int         `json:"batch_size"`
	MaxTokens int64       `json:"max_tokens"`
	Multiple  int         `json:"pad_to_multiple_of"`
	Fixed     int         `json:"fixed_length"`
	World     int         `json:"world"`
	Tail      Tail        `json:"tail"`
	Balance   Balance     `json:"balance"`
	Epochs    int64       `json:"epochs"`
	Start     int64       `json:"start"`
	Ranks     []dealt     `json:"ranks"`
}

// dealt is what a rank gets. Sum folds the numbers of each step: its next position, how many rows
// it has, and for each the position, source and row, or the position, how many pieces it has, and
// for each the source, row, first token and length.
type dealt struct {
	Steps int    `json:"steps"`
	Error string `json:"error"` // "", "empty" for EmptyEpochError or "too long" for TooLongError
	Sum   uint64 `json:"sum"`
}

func (d *dealt) fold(values ...int64) {
	for _, v := range values {
		d.Sum = fold(d.Sum, uint64(v))
	}
}

func (g goldenSteps) options(rank int) StepOptions {
	return StepOptions{BatchRows: g.BatchRows, MaxTokens: g.MaxTokens, Multiple: g.Multiple, FixedLength: g.Fixed,
		Rank: rank, World: g.World, Tail: g.Tail, Balance: g.Balance, Epochs: g.Epochs, Start: g.Start}
}

func (g goldenSteps) deal(t *testing.T, rank int) (d dealt) {
	steps, err := NewSteps(g.Order.order(t), g.options(rank))
	for b := (Batch{}); err == nil; d.Steps++ {
		if err = steps.Next(&b); err != nil {
			break
		}
		d.fold(b.Next, int64(len(b.Items)))
		for _, it := range b.Items {
			d.fold(it.Position, int64(it.Source), it.Row)
		}
	}
	d.Error = errorKind(t, err)
	return d
}

func (g goldenSteps) dealPacked(t *testing.T, rank int) (d dealt) {
	packed, err := NewPacked(g.Order.order(t), PackOptions{Policy: g.Policy, Length: g.Length, Tokens: g.Tokens,
		Longest: 97})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := NewPackedSteps(packed, g.options(rank))
	for ; err == nil; d.Steps++ {
		var rows [][]int64
		var next int64
		next, err = steps.Next(func(r PackedRow) error {
			row := []int64{r.Position, int64(len(r.Pieces))}
			for _, p := range r.Pieces {
				u := r.Units[p.Item]
				row = append(row, int64(u.Source), u.Row, int64(p.From), int64(p.Len))
			}
			rows = append(rows, row)
			return nil
		}, func() { rows = nil })
		if err != nil {
			break
		}
		d.fold(next, int64(len(rows)))
		for _, row := range rows {
			d.fold(row...)
		}
	}
	d.Error = errorKind(t, err)
	return d
}

func errorKind(t *testing.T, err error) string {
	var empty *EmptyEpochError
	var long *TooLongError
	switch {
	case err == io.EOF:
		return ""
	case errors.As(err, &empty):
		return "empty"
	case errors.As(err, &long):
		return "too long"
	}
	t.Fatal(err)
	return ""
}

// goldenDeals is every tail, balance, packing and kind of budget over orders of several kinds.
func goldenDeals() (cases []goldenSteps) {
	orders := []goldenOrder{
		{Rows: []int64{23}, Shuffle: None},
		{Rows: []int64{260}, Shuffle: Full, Seed: 3},
		{Rows: []int64{120, 50, 7}, Weights: []float64{1, 2.5, 0.001}, Shuffle: Full, Bucket: 64, Group: 10},
		{Rows: []int64{200, 40}, Changes: []Change{{50, []float64{0, 1}}, {300, []float64{3, 1}}}, Shuffle: Block,
			Seed: 5},
	}
	add := func(c goldenSteps) {
		n := len(cases)
		c.Order.Lengths = lengthRule
		c.World, c.Epochs = []int{1, 2, 3}[n%3], []int64{1, 2}[n/3%2]
		c.Multiple, c.Fixed = []int{1, 8}[n/2%2], []int{0, 0, 0, 128}[n%4]
		c.BatchRows = []int{3, 7, 32}[n/4%3]
		if n%5 == 4 {
			c.Start = 11
		}
		cases = append(cases, c)
	}
	for _, order := range orders {
		bucket, group := order.Bucket, order.Group
		for _, tail := range Tails {
			for _, tokens := range []int64{0, 100, 900} {
				order.Bucket, order.Group = bucket, group
				for _, balance := range Balances {
					add(goldenSteps{Order: order, Tail: tail, MaxTokens: tokens, Balance: balance})
				}
				order.Bucket, order.Group = 0, 0 // packed rows have one length
				for _, policy := range pack.Policies[1:] {
					add(goldenSteps{Order: order, Tail: tail, MaxTokens: tokens, Policy: policy, Balance: NoBalance,
						Length: []int{20, 90, 300}[len(cases)%3], Tokens: tokensOf(order.Rows)})
				}
			}
		}
	}
	return cases
}

func tokensOf(rows []int64) (sum int64) {
	for source, n := range rows {
		for row := range n {
			sum += int64(lengthOf(Ref{int32(source), row}))
		}
	}
	return sum
}

func TestStepsAreGolden(t *testing.T) {
	cases := goldenDeals()
	seen := map[string]int{}
	for i := range cases {
		c := &cases[i]
		for rank := range c.World {
			d := dealt{}
			if c.Policy == "" {
				d = c.deal(t, rank)
			} else {
				d = c.dealPacked(t, rank)
			}
			c.Ranks = append(c.Ranks, d)
			seen[d.Error]++
		}
	}
	if seen[""] < len(cases) || seen["empty"] == 0 || seen["too long"] == 0 {
		t.Errorf("ends of streams: %v", seen)
	}
	compareGolden(t, "steps.json", cases)
}

// compareGolden compares cases with a file that other languages read; -update writes it.
func compareGolden[T any](t *testing.T, name string, got []T) {
	t.Helper()
	path := "../../../testdata/" + name
	if *update {
		text := []byte("[")
		for i, c := range got {
			line, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, []string{"\n", ",\n"}[min(i, 1)]...), line...)
		}
		if err := os.WriteFile(path, append(text, "\n]\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []T
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s changed, and with it what every saved position means (-want +got)\n%s", name, diff)
	}
}
