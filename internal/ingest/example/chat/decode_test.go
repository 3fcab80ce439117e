package chat

import (
	"errors"
	"math/big"
	"reflect"
	"testing"

	"github.com/dsload/dsload/internal/ingest/example/chat/jinja"
)

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
		record, _, err := decode([]byte(`{"of another type": 1, "x": ` + text + `, "x": ` + text + ` }`))
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
		if _, _, err := decode([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
