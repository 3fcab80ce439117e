package columnar

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// What Python gives for the rows of testdata/typed, with json.loads of what its columns store as JSON.
var (
	typedRows = []string{
		`{"text":"a \"word\"","meta":{"lang":"en","in":[null,1.0]},"list":[{"a":1},null,"no JSON"],` +
			`"messages":[{"role":"user","content":"q","tool_calls":null},{"role":"assistant","content":null,` +
			`"tool_calls":[{"name":"f","args":{"city":null,"n":2.0},"any":{"k": null, "n": 1}}]}],` +
			`"pairs":[{"key":"k","value":null}],"one":{"x":null},"day":"1969-12-30","at":"2020-01-05T03:00:00Z","n":1e+16}`,
		`{"text":[1],"meta":null,"list":[],"messages":null,"pairs":null,"one":null,"day":"2021-02-06","at":null,"n":-3.0}`,
		`{"text":null,"meta":null,"list":null,"messages":null,"pairs":null,"one":null,"day":null,"at":null,"n":0.5}`,
	}
	withoutNulls = strings.NewReplacer(`,"tool_calls":null`, ``, `"content":null,"tool_calls"`, `"tool_calls"`, `"city":null,`, ``)
)

// TestTypes: a value has the type that its file gives it, at any depth.
func TestTypes(t *testing.T) {
	for _, name := range []string{"plain.parquet", "plain.arrow", "large.arrow", "views.arrow"} {
		data := load(t, "testdata/typed/"+name)
		for _, o := range []Options{{}, {Sparse: true}} {
			f, err := open(name, data, o)
			if err != nil {
				t.Fatal(name, err)
			}
			want := slices.Clone(typedRows)
			if o.Sparse {
				want[0] = withoutNulls.Replace(want[0])
			}
			got, err := readRows(f, o, 0)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, sparse %v, %v:\n%s\nwant\n%s", name, o.Sparse, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			rows := f.NewRows()
			defer rows.Close()
			if err := rows.Seek(0); err != nil || rows.Next() != nil {
				t.Fatal(name, err)
			}
			if row, err := rows.AppendJSON(nil, 1<<20); err != nil || row.Omitted == 1 != o.Sparse {
				t.Errorf("%s, sparse %v: %d members left out, %v", name, o.Sparse, row.Omitted, err)
			}
		}
		f, err := open(name, data, Options{Text: "text"})
		if err != nil || !f.TextIsJSON() {
			t.Errorf("%s: its text is not JSON, %v", name, err)
		}
	}
	for _, name := range fixtures(t) {
		if f, err := open(name, load(t, name), Options{Text: "text"}); err != nil || f.TextIsJSON() {
			t.Errorf("%s: its text is JSON, %v", name, err)
		}
	}
}

// TestUUIDs: an Arrow file has the text that a parquet file has, and pyarrow's str gives; other bytes stay what they are.
func TestUUIDs(t *testing.T) {
	raw := `"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\t\n\u000b\u000c\r\u000e\u000f"`
	want := []string{`{"id":"00010203-0405-0607-0809-0a0b0c0d0e0f","raw":` + raw + `}`, `{"id":null,"raw":null}`}
	for _, name := range []string{"uuid.parquet", "uuid.arrow"} {
		f, err := open(name, load(t, "testdata/typed/"+name), Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := readRows(f, Options{}, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q, %v", name, got, want, err)
		}
	}
}

// TestEncrypted: a file is refused as encrypted, not as damaged, where its footer can be read.
func TestEncrypted(t *testing.T) {
	_, err := open("x.parquet", load(t, "testdata/typed/encrypted.parquet"), Options{Text: "text"})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "its columns are encrypted") {
		t.Error(err)
	}
}

// TestFloats: what Python's repr gives.
func TestFloats(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 1: "1.0", -2.5: "-2.5", 123456789: "123456789.0", 1e15: "1000000000000000.0",
		1e16: "1e+16", 1.5e300: "1.5e+300", 1e-4: "0.0001", 1.234e-5: "1.234e-05", 9007199254740993: "9007199254740992.0",
		12345678901234567: "1.2345678901234568e+16", 5e-324: "5e-324"} {
		if got := string(appendFloat(nil, v)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestNarrowFloats: what Python's repr gives for the value that pyarrow makes of a number of 32 or 16 bits. A
// duration is its seconds, as total_seconds gives them.
func TestNarrowFloats(t *testing.T) {
	single := binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.1))
	half := []byte{0x66, 0x3c} // 1.1
	second := binary.LittleEndian.AppendUint64(nil, 1500)
	for want, got := range map[string][]byte{
		"0.10000000149011612 of parquet": (&node{kind: typeFloat}).appendJSON(nil, single),
		"1.099609375 of parquet":         (&node{kind: typeFixed, mean: meansFloat16}).appendJSON(nil, half),
		"0.10000000149011612 of Arrow":   (&arrowField{kind: arrowFloat, width: 4}).appendFixed(nil, single),
		"1.099609375 of Arrow":           (&arrowField{kind: arrowFloat, width: 2}).appendFixed(nil, half),
		"1500.0 of Arrow":                (&arrowField{kind: arrowDuration, width: 8}).appendFixed(nil, second),
		"1.5 of Arrow":                   (&arrowField{kind: arrowDuration, width: 8, unit: 1}).appendFixed(nil, second),
	} {
		if want, _, _ = strings.Cut(want, " "); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
