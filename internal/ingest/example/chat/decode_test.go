package chat

import (
	"errors"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

func newDecoder() *decoder { return &new(Renderer).NewWorker(nil).decoder }

// TestDecodedValues compares what records hold with what Python's json.loads makes of them.
func TestDecodedValues(t *testing.T) {
	large, _ := new(big.Int).SetString("-12345678901234567890123", 10)
	for text, want := range map[string]any{
		`9223372036854775807`: int64(1<<63 - 1), `-12345678901234567890123`: large, `-0`: int64(0),
		`1.5e3`: 1500.0, `1E-5`: 1e-5, `true`: true, `false`: false, `null`: nil,
		`"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9\ud83d\ude00\u4e2D"`: "é😀中", `"é"`: "é",
		`"\ud83d"`: "\ufffd", `"\ude00x"`: "\ufffdx",
		`[]`: &jinja.List{}, `[ 1 , "a" ]`: &jinja.List{Items: []any{int64(1), "a"}},
	} {
		record, err := newDecoder().decode([]byte(`{"of another type": 1, "x": ` + text + `, "x": ` + text + ` }`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, ok := record.Get("x"); !ok || !reflect.DeepEqual(got, want) || record.Len() != 2 {
			t.Errorf("%s: %#v, want %#v", text, got, want)
		}
	}
}

func TestMalformedJSON(t *testing.T) {
	for _, text := range []string{``, `[]`, `{`, `{"x"}`, `{"x" 1}`, `{"x": 1,}`, `{"x": 1} 2`, `{"x": [1 2]}`,
		`{"x": [1,]}`, `{"x": "a`, `{"x": "\x"}`, `{"x": "\u12"}`, `{"x": "\u12g4"}`, "{\"x\": \"\n\"}", `{"x": nul}`,
		`{"x": -}`, `{x: 1}`} {
		if _, err := newDecoder().decode([]byte(text)); !errors.Is(err, values.ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Objects keep the order in which their members occur first, however many they are, and what one decoder made
// of a record does not change when it decodes others.
func TestDecodedOrder(t *testing.T) {
	d := newDecoder()
	text, want := "", []string{}
	for i := range 20 {
		name := string(rune('a' + i*7%20))
		text += `"` + name + `": {"` + name + `": [` + strings.Repeat("1, ", i) + `"\u00e9"], "z": 1, "z": 2}, `
		want = append(want, name)
	}
	first, err := d.decode([]byte("{" + text + text + `"a": null}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := d.decode([]byte(`{"q": {"b": ["x", "y"]}, "w": "` + strings.Repeat(`\n`,
			9) + `"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.decode([]byte(`{"q": {"b": ["x", {"c": [1`)); err == nil {
			t.Fatal("malformed JSON is decoded")
		}
	}
	if got := first.Keys(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, name := range want[1:] {
		member, _ := first.Get(name)
		inner, _ := member.(*jinja.Dict)
		list, _ := get(inner, name).(*jinja.List)
		if inner.Len() != 2 || get(inner, "z") != int64(2) || len(list.Items) != i+2 || list.Items[i+1] != "é" {
			t.Errorf("%s: %#v", name, member)
		}
	}
}

// Tools that record after record repeats are the same list from the third on, whatever stands around them, and
// others are decoded as they are.
func TestSharedTools(t *testing.T) {
	d := newDecoder()
	const tools, others = `[{"type": "function", "function": {"name": "a\u00e9\ud800"}}]`, `[{"type": "function"}]`
	var last any
	for i, c := range []struct {
		text   string
		shared bool
	}{{tools, false}, {tools, false}, {tools, true}, {tools, true}, {others, false}, {others, false}, {others, true},
		{"[]", false}, {`"` + strings.ReplaceAll(others, `"`, `\"`) + `"`, false}} {
		record, err := d.decode([]byte(`{"x": {"tools": 1}, "tools" : ` + c.text + `, "messages": []}`))
		if err != nil {
			t.Fatal(err)
		}
		got := get(record, "tools")
		if shared := got == last; shared != c.shared {
			t.Errorf("%d: shared is %v", i, shared)
		}
		other := newDecoder()
		if want, err := other.decode([]byte(`{"tools": ` + c.text + `}`)); err != nil ||
			!reflect.DeepEqual(got, get(want, "tools")) || d.Lone != other.Lone {
			t.Errorf("%d: %#v, %d; want %#v, %d", i, got, d.Lone, get(want, "tools"), other.Lone)
		}
		last = got
	}
	if _, err := d.decode([]byte(`{"tools": ` + others)); err == nil {
		t.Error("malformed JSON is decoded")
	}
}

// Wherever a string ends, or an escape or a control character stands in it, it is found.
func TestStringsOfEveryLength(t *testing.T) {
	for n := range 40 {
		text := strings.Repeat("é", n/2) + strings.Repeat("\u007f", n%2)
		for _, c := range []struct{ raw, want string }{{text, text}, {text + `\"` + text, text + `"` + text},
			{text + "\x1f" + text, ""}, {text + `\x`, ""}} {
			record, err := newDecoder().decode([]byte(`{"x": "` + c.raw + `", "y": 1}`))
			if (err == nil) != (c.want != "" || c.raw == "") || err == nil && get(record, "x") != c.want {
				t.Errorf("%q: %v, %v", c.raw, record, err)
			}
		}
	}
}
