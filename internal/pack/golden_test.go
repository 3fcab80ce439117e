package pack

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/pack.json at the root")

// goldenCase is a packing that readers in other languages are held against.
type goldenCase struct {
	Policy  Policy     `json:"policy"`
	Length  int        `json:"length"`
	Lengths []int32    `json:"lengths"`
	Rows    [][][3]int `json:"rows"` // of item, first token, tokens
}

func goldenCases() (out []goldenCase) {
	rng := rand.New(rand.NewPCG(1, 3))
	lists := [][]int32{{}, {0}, {5, 2, 3, 1}, {3, 4, 1}, {6, 6, 7, 3, 4, 4}}
	for _, n := range []int{7, 60} {
		var list []int32
		for range n {
			list = append(list, rng.Int32N(40))
		}
		lists = append(lists, list)
	}
	for _, policy := range Policies[1:] {
		for _, length := range []int{1, 4, 10, 64} {
			for _, list := range lists {
				out = append(out, goldenCase{Policy: policy, Length: length, Lengths: list, Rows: [][][3]int{}})
			}
		}
	}
	return out
}

// TestGolden holds the packing against a file that the Python package reads too.
func TestGolden(t *testing.T) {
	got := goldenCases()
	for i := range got {
		c := &got[i]
		rows := New(c.Policy, c.Length).Pack(c.Lengths)
		for k := range rows.Len() {
			var row [][3]int
			for _, p := range rows.Row(k) {
				row = append(row, [3]int{int(p.Item), int(p.From), int(p.Len)})
			}
			c.Rows = append(c.Rows, row)
		}
	}
	const path = "../../testdata/pack.json"
	if *update {
		data, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []goldenCase
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packed otherwise (-want +got)\n%s", diff)
	}
}
