package columnar

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/columnar/columnartest"
)

// seen returns a condition that keeps what it is asked about, and leaves all out.
func seen(into *[]Stats, path ...string) Condition {
	return Condition{Paths: [][]string{{strings.Join(path, ".")}, path}, CanHold: func(s Stats) bool {
		*into = append(*into, s)
		return false
	}}
}

func asks(into *[]Stats, path []string) Options {
	return Options{Conditions: []Condition{seen(into, path...)}}
}

// TestStatistics compares statistics that pyarrow wrote with the values that they are about.
func TestStatistics(t *testing.T) {
	data := load(t, "testdata/statistics/pyarrow.parquet")
	f, err := open("a.parquet", data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(f, Options{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, path := range [][]string{{"id"}, {"text"}, {"big"}, {"small"}, {"u"}, {"half"}, {"score"}, {"ok"}, {"when"},
		{"day"}, {"clock"}, {"dec"}, {"raw"}, {"nest", "d", "e"}} {
		var got []Stats
		f, err := open("a.parquet", data, asks(&got, path))
		if err != nil || len(got) != 2 {
			t.Fatal(path, got, err)
		}
		for g, s := range got {
			part := rows[:25]
			if g == 1 {
				part = rows[25:]
			}
			values := valuesAt(t, part, path)
			if s.Null != (len(values) == 0) {
				t.Errorf("%v, group %d: %+v of %d values", path, g, s, len(values))
			}
			if s.Min == nil {
				continue
			}
			known++
			if string(s.Min) == "-0.0" { // which is the least of zeros
				s.Min = []byte("0.0")
			}
			if string(s.Min) != values[0] || string(s.Max) != values[len(values)-1] {
				t.Errorf("%v, group %d: %s to %s, want %s to %s", path, g, s.Min, s.Max, values[0],
					values[len(values)-1])
			}
			if !f.Group(g).Skipped {
				t.Errorf("%v: group %d is read", path, g)
			}
		}
	}
	if known < 2*11 {
		t.Errorf("%d statistics are known", known)
	}
}

// valuesAt returns the values at a path as JSON, in their order.
func valuesAt(t *testing.T, rows []string, path []string) (values []string) {
	type pair struct {
		text string
		v    any
	}
	var pairs []pair
	for _, row := range rows {
		raw := json.RawMessage(row)
		for _, name := range path {
			var object map[string]json.RawMessage
			if err := json.Unmarshal(raw, &object); err != nil {
				t.Fatal(err)
			}
			if raw = object[name]; raw == nil {
				raw = json.RawMessage("null")
			}
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		if v != nil {
			pairs = append(pairs, pair{string(raw), v})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		switch x := a.v.(type) {
		case float64:
			return int(math.Copysign(1, x-b.v.(float64)))
		case bool:
			return strings.Compare(fmt.Sprint(x), fmt.Sprint(b.v))
		}
		return strings.Compare(a.v.(string), b.v.(string))
	})
	for _, p := range pairs {
		values = append(values, p.text)
	}
	return values
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// TestWhatStatisticsSay reads statistics as other writers leave them.
func TestWhatStatisticsSay(t *testing.T) {
	type stats = columnartest.Statistics
	int32s, int64s, texts := columnartest.Column{Type: 1}, columnartest.Column{Type: 2}, columnartest.Column{Type: 6}
	floats, unordered := columnartest.Column{Type: 4}, columnartest.Column{Type: 1, Unordered: true}
	of := func(kind, converted int) columnartest.Column {
		return columnartest.Column{Type: kind, Converted: converted}
	}
	long := bytes.Repeat([]byte("b"), maxStatBytes+1)
	nan := le32(math.Float32bits(float32(math.NaN())))
	for name, c := range map[string]struct {
		column columnartest.Column
		stats  stats
		want   string // "min max", "null" or ""
		kept   bool   // though no value can be wanted
	}{
		"numbers":      {int32s, stats{Min: le32(1), Max: le32(9)}, "1 9", false},
		"negative":     {int64s, stats{Min: le64(1 << 63), Max: le64(9)}, "-9223372036854775808 9", false},
		"unsigned":     {of(2, 14), stats{Min: le64(9), Max: le64(1 << 63)}, "9 9223372036854775808", false},
		"texts":        {texts, stats{Min: []byte("a\""), Max: []byte("\xff")}, "\"a\\\"\" \"\xff\"", false},
		"empty":        {texts, stats{Min: []byte{}, Max: []byte("b")}, `"" "b"`, false},
		"one end":      {int32s, stats{Min: le32(1)}, "", false},
		"none":         {int32s, stats{}, "", false},
		"no values":    {int32s, stats{Nulls: 10}, "null", false},
		"too short":    {int32s, stats{Min: []byte{1}, Max: le32(9)}, "", false},
		"too long":     {texts, stats{Min: []byte("a"), Max: long}, "", false},
		"old":          {int32s, stats{OldMin: le32(1), OldMax: le32(9)}, "1 9", false},
		"old texts":    {texts, stats{OldMin: []byte("a"), OldMax: []byte("b")}, "", false},
		"old unsigned": {of(1, 13), stats{OldMin: le32(1), OldMax: le32(9)}, "", false},
		"old floats":   {floats, stats{OldMin: nan, OldMax: nan}, "", false},
		"old and new": {int32s, stats{OldMin: le32(1), OldMax: le32(9), Min: le32(2), Max: le32(8)},
			"2 8", false},
		"unordered":            {unordered, stats{Min: le32(1), Max: le32(9)}, "1 9", true},
		"unordered, old":       {unordered, stats{OldMin: le32(1), OldMax: le32(9)}, "1 9", false},
		"unordered, no values": {unordered, stats{Nulls: 10, Min: le32(1), Max: le32(9)}, "null", false},
		"not a number":         {floats, stats{Min: nan, Max: nan}, "NaN NaN", false},
		"dates":                {of(1, 6), stats{Min: le32(0), Max: le32(31)}, `"1970-01-01" "1970-02-01"`, false},
		"far dates":            {of(1, 6), stats{Min: le32(0), Max: le32(1 << 30)}, "", false},
		"times of day":         {of(1, 7), stats{Min: le32(0), Max: le32(31)}, "", false},
		"96 bits":              {of(3, 0), stats{Min: make([]byte, 12), Max: make([]byte, 12)}, "", false},
	} {
		if c.stats.Nulls == 0 {
			c.stats.Nulls = -1
		}
		c.column.Groups = []stats{c.stats}
		data := c.column.Bytes()
		var got []Stats
		f, err := OpenParquet(bytes.NewReader(data), int64(len(data)),
			Options{Remote: true, Conditions: []Condition{seen(&got, "v")}})
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		said := strings.TrimSpace(string(got[0].Min) + " " + string(got[0].Max))
		if got[0].Null {
			said += "null"
		}
		if said != c.want || f.Group(0).Skipped == c.kept {
			t.Errorf("%s: %q, left out: %v, want %q", name, said, f.Group(0).Skipped, c.want)
		}
	}
}

// TestConditionColumns checks which columns a condition is on.
func TestConditionColumns(t *testing.T) {
	data := load(t, "testdata/statistics/pyarrow.parquet")
	for path, asked := range map[string]bool{"id": true, "nest.d.e": true, "nest.d": false, "nest": false,
		"nest.x": false,
		"list":   false, "list.element": false, "map": false, "none": false, "id.x": false} {
		var got []Stats
		if _, err := open("a.parquet", data, asks(&got, strings.Split(path, "."))); err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 != asked {
			t.Errorf("%s: asked %d times", path, len(got))
		}
	}
}
