package counts

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"
)

// filled returns Counts in which each number has a value of its own.
func filled() (c Counts) {
	next := int64(0)
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			next++
			switch f := v.Field(i); f.Kind() {
			case reflect.Int64:
				f.SetInt(next)
			case reflect.Pointer:
				f.Set(reflect.ValueOf(new(next)))
			case reflect.Struct:
				fill(f)
			}
		}
	}
	fill(reflect.ValueOf(&c.Numbers).Elem())
	fill(reflect.ValueOf(&c.Unread).Elem())
	c.Shapes = map[string]int64{"question-answer": 4, "ShareGPT": 5}
	c.Fields = map[string]int64{"a-b": 8}
	c.CutBy = []string{"max-val-examples", "max-bytes"}
	c.DroppedBy = map[string]int64{"where": 7}
	return c
}

func TestMapAndBack(t *testing.T) {
	c := filled()
	m := c.Map()
	for name, want := range map[string]int64{"documents": 1, "shape_question_answer": 4, "shape_sharegpt": 5,
		"cut_by_max_val_examples": 1, "cut_by_max_bytes": 1, "dropped_tokens": *c.DroppedTokens,
		"unread_bytes": *c.UnreadBytes} {
		if m[name] != want {
			t.Errorf("%s is %d, want %d", name, m[name], want)
		}
	}
	back := Of(m, c.DroppedBy)
	if !maps.Equal(back.Map(), m) || !maps.Equal(back.DroppedBy, c.DroppedBy) {
		t.Errorf("%v came back as %v", m, back.Map())
	}
	c.Shapes, back.Shapes = nil, nil
	if !reflect.DeepEqual(back, c) {
		t.Errorf("%+v came back as %+v", c, back)
	}
}

// TestZero: a manifest has what is always counted, and nothing else.
func TestZero(t *testing.T) {
	if m := (Counts{}).Map(); len(m) != 7 || !maps.Equal(Of(m, nil).Map(), m) {
		t.Errorf("nothing counted gives %v", m)
	}
	zero := int64(0)
	if m := (Counts{Numbers: Numbers{DroppedTokens: &zero}}).Map(); len(m) != 8 {
		t.Errorf("rows were packed and nothing was dropped: %v", m)
	}
}

func TestAdd(t *testing.T) {
	a, b := filled(), filled()
	b.CutBy = []string{"max-tokens", "max-bytes"}
	b.DroppedBy["match"] = 1
	want := map[string]int64{}
	for name, n := range a.Map() {
		want[name] = 2 * n
	}
	for _, option := range []string{"max_bytes", "max_val_examples", "max_tokens"} {
		want["cut_by_"+option] = 1
	}
	a.Add(b)
	if !maps.Equal(a.Map(), want) || !maps.Equal(a.DroppedBy, map[string]int64{"where": 14, "match": 1}) {
		t.Errorf("the sum is %v, dropped by %v, want %v", a.Map(), a.DroppedBy, want)
	}
}

// TestCheckpoint: JSON keeps everything.
func TestCheckpoint(t *testing.T) {
	data, err := json.Marshal(filled())
	var back Counts
	if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(back, filled()) {
		t.Errorf("%s came back as %+v (%v)", data, back, err)
	}
}

func TestClone(t *testing.T) {
	c := filled()
	old := c.Clone()
	c.Drop("where", 1)
	c.CountShape("ShareGPT", 1)
	*c.DroppedTokens++
	if !reflect.DeepEqual(old, filled()) {
		t.Errorf("a copy changed to %+v", old)
	}
}
