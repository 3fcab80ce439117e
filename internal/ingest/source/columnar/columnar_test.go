package columnar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/google/go-cmp/cmp"
)

// The files of testdata hold the rows of rows.jsonl, written by pyarrow with different encodings,
// codecs and layouts: make.py makes them. The first group has 25 rows.

func open(name string, data []byte, o Options) (File, error) {
	if filepath.Ext(name) == ".parquet" {
		return OpenParquet(bytes.NewReader(data), int64(len(data)), o)
	}
	return OpenArrow(bytes.NewReader(data), int64(len(data)), o)
}

func fixtures(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.[pa]?*[tw]")
	if err != nil || len(names) < 15 {
		t.Fatal(names, err)
	}
	return names
}

func load(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// aFewPages is what reading ahead may take in tests.
var aFewPages = Spare{Workers: 3, Bytes: 3*codecBytes + 40<<10}

// readRows reads all rows from a group on, as JSON or text: those that are read ahead are the same.
func readRows(f File, o Options, group int) ([]string, error) {
	rows, err := readOnce(f, o, group)
	if p, ok := f.(*parquetFile); ok {
		p.options.Spare = aFewPages
		ahead, aheadErr := readOnce(f, o, group)
		p.options.Spare = Spare{}
		if !slices.Equal(ahead, rows) || fmt.Sprint(aheadErr) != fmt.Sprint(err) {
			return nil, fmt.Errorf("read ahead, %d rows and %v; otherwise %d and %v", len(ahead), aheadErr, len(rows), err)
		}
	}
	return rows, err
}

func readOnce(f File, o Options, group int) (rows []string, err error) {
	r := f.NewRows()
	defer r.Close()
	for ; group < f.Groups(); group++ {
		if err := r.Seek(group); err != nil {
			return rows, err
		}
		n := int64(0)
		for {
			err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return rows, err
			}
			if n++; n > 10_000 {
				return rows, corrupt("a damaged file may claim any number of nulls")
			}
			if o.Text != "" {
				text, null := r.Text()
				rows = append(rows, fmt.Sprint(null, string(text)))
				continue
			}
			row, err := r.AppendJSON(nil, 1<<20)
			if err != nil || row.Over {
				return rows, fmt.Errorf("%w, over %v", err, row.Over)
			}
			rows = append(rows, string(row.JSON))
		}
		if n != f.Group(group).Rows {
			return rows, fmt.Errorf("group %d has %d rows of %d", group, n, f.Group(group).Rows)
		}
	}
	return rows, nil
}

func decoded(t *testing.T, line string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

func TestRowsAreThoseOfPyarrow(t *testing.T) {
	want := strings.Split(strings.TrimSpace(string(load(t, "testdata/rows.jsonl"))), "\n")
	for _, name := range fixtures(t) {
		data := load(t, name)
		f, err := open(name, data, Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		groups := 2
		if strings.Contains(name, "deltas") {
			groups = 3
		}
		if f.Groups() != groups || f.Group(0).Rows != 25 {
			t.Errorf("%s: %d groups", name, f.Groups())
		}
		got, err := readRows(f, Options{}, 0)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %d rows of %d, %v", name, len(got), len(want), err)
		}
		for i := range got {
			if d := cmp.Diff(decoded(t, want[i]), decoded(t, got[i])); d != "" {
				t.Fatalf("%s, row %d: %s", name, i, d)
			}
		}
		if rest, err := readRows(f, Options{}, 1); err != nil || strings.Join(rest, "") != strings.Join(got[25:], "") {
			t.Errorf("%s: the second group alone: %d rows, %v", name, len(rest), err)
		}
		text, err := open(name, data, Options{Text: "text"})
		if err != nil {
			t.Fatal(name, err)
		}
		texts, err := readRows(text, Options{Text: "text"}, 0)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range texts {
			s, isText := decoded(t, want[i])["text"].(string)
			if texts[i] != fmt.Sprint(!isText, s) {
				t.Errorf("%s, row %d: %s", name, i, texts[i])
			}
		}
		some, err := open(name, data, Options{Columns: []string{"nest", "list", "no"}})
		if err != nil {
			t.Fatal(name, err)
		}
		rows, err := readRows(some, Options{}, 0)
		if err != nil || len(decoded(t, rows[0])) != 2 {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
		if _, err := open(name, data, Options{Columns: []string{"no", "text"}, AnyOf: []string{"no", "text"}}); err != nil {
			t.Errorf("%s: one of several columns: %v", name, err)
		}
		var none *ColumnError
		if _, err := open(name, data, Options{Columns: []string{"no", "id"}, AnyOf: []string{"no", "body"}}); !errors.As(err, &none) ||
			err.Error() != `no column "no" or "body"` || !slices.Contains(none.Has, "text") {
			t.Errorf("%s: none of several columns: %v", name, err)
		}
		for _, column := range []string{"none", "id", "nest", "u"} {
			var e *ColumnError
			if _, err := open(name, data, Options{Text: column}); !errors.As(err, &e) {
				t.Errorf("%s, column %s: %v", name, column, err)
			} else if !slices.Contains(e.Lists, "list") || slices.Contains(e.Lists, "id") {
				t.Errorf("%s: the lists are %v", name, e.Lists)
			}
		}
	}
}

// The script that made the files makes them again.
func TestScriptOfTheFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("Python and pyarrow take longer to start than all else here: runs without -short")
	}
	python, err := filepath.Abs("../../../../.venv/bin/python")
	if err == nil {
		_, err = os.Stat(python)
	}
	if err != nil {
		if python, err = exec.LookPath("python3"); err != nil {
			t.Skip("there is no Python here")
		}
	}
	if exec.Command(python, "-c", "from importlib.util import find_spec; exit(not find_spec('pyarrow'))").Run() != nil {
		t.Skip("there is no pyarrow here")
	}
	if out, err := exec.Command(python, "-B", "testdata/make.py", "--check").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// deltas.arrow has a dictionary, an addition to it, and another in its place. Each batch is read
// with the dictionary of its place, in any order.
func TestDictionariesChange(t *testing.T) {
	for _, name := range []string{"testdata/deltas.arrow", "testdata/packed_deltas.arrow"} {
		data := load(t, name)
		o := Options{Text: "text"}
		f, err := open(name, data, o)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []bool
		dictionaries := &f.(*arrowFile).dictionaries
		for i := range dictionaries.len() {
			kinds = append(kinds, dictionaries.at(i).isDelta)
		}
		if d := cmp.Diff([]bool{false, true, false}, kinds); d != "" {
			t.Fatalf("%s: dictionaries that add: %v", name, kinds)
		}
		all, err := readRows(f, o, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := f.NewRows()
		defer r.Close()
		starts := []int{0, 25, 30}
		for _, group := range []int{2, 0, 1, 0, 2, 1, 1} {
			if err := r.Seek(group); err != nil {
				t.Fatal(err)
			}
			for i := range int(f.Group(group).Rows) {
				if err := r.Next(); err != nil {
					t.Fatal(err)
				}
				if text, null := r.Text(); fmt.Sprint(null, string(text)) != all[starts[group]+i] {
					t.Fatalf("%s, batch %d, row %d: %q", name, group, i, text)
				}
			}
		}
		n, _ := f.MemoryBytes()
		if held := f.(*arrowFile).values; held == 0 || n < held {
			t.Errorf("%s: dictionaries take %d bytes of %d", name, held, n)
		}
	}
}

// An unsupported type is refused with the column's name and what to do.
func TestUnreadTypes(t *testing.T) {
	for kind, want := range map[byte]string{arrowUnion: "union", arrowRunEnd: "run_end_encoded",
		arrowListView: "list_view",
		arrowInterval: "interval"} {
		err := (&arrowField{kind: kind}).check("a.b")
		if !errors.Is(err, ErrUnsupported) ||
			!strings.Contains(err.Error(), "column a.b is of the type "+want+"; cast it") {
			t.Errorf("%s: %v", want, err)
		}
	}
	a := &arrowField{kind: arrowList, dictionary: &dictionaryOf{width: 4}}
	if err := a.check("a"); !errors.Is(err, ErrType) ||
		!strings.Contains(err.Error(), "a dictionary of lists; cast it") {
		t.Error(err)
	}
}

func TestLongRowsAreLeftOut(t *testing.T) {
	for _, name := range fixtures(t) {
		f, err := open(name, load(t, name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := f.NewRows()
		defer r.Close()
		if err := r.Seek(0); err != nil {
			t.Fatal(err)
		}
		for range 25 {
			if err := r.Next(); err != nil {
				t.Fatal(name, err)
			}
			if got, err := r.AppendJSON([]byte("kept"), 50); err != nil || !got.Over || string(got.JSON) != "kept" {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
		}
		if err := r.Next(); err != io.EOF {
			t.Error(name, err)
		}
	}
}

// openPlanned opens a file as a build does, which refuses one that says that it needs more memory than there is.
func openPlanned(name string, data []byte, o Options) (File, error) {
	f, err := open(name, data, o)
	if err != nil {
		return nil, err
	}
	if n, why := f.MemoryBytes(); n > 256<<20 {
		return nil, &SizeError{why, n}
	}
	return f, nil
}

// attempt reads damaged data. It must end in an error of ours, or give as many rows as there were, in
// little memory.
func attempt(name string, data []byte, o Options, rows int) error {
	o.MaxBytes, o.MaxMetadata = 4<<20, 4<<20
	f, err := openPlanned(name, data, o)
	var got []string
	if err == nil {
		got, err = readRows(f, o, 0)
	}
	var size *SizeError
	var column *ColumnError
	switch {
	case err == nil && rows >= 0 && len(got) != rows:
		return fmt.Errorf("%d rows of %d and no error", len(got), rows)
	case err == nil, errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported), errors.As(err, &size),
		errors.As(err, &column):
		return nil
	}
	return err
}

// damages is how many places of a file are damaged.
func damages() int { return effort.Of(20, 60, 60) }

func TestDamagedFiles(t *testing.T) {
	var before, after runtime.MemStats
	for _, name := range fixtures(t) {
		data := load(t, name)
		for _, o := range []Options{{}, {Text: "text"}} {
			runtime.ReadMemStats(&before)
			for n := 0; n < len(data); n += len(data)/damages() + 1 {
				cut := data[:n]
				if err := attempt(name, cut, o, 40); err != nil {
					t.Fatalf("%s cut at %d: %v", name, n, err)
				}
				harmed := bytes.Clone(data)
				harmed[n] ^= byte(1 << (n % 8))
				if n%3 == 0 {
					harmed[n] = 0xff
				}
				if err := attempt(name, harmed, o, -1); err != nil {
					t.Fatalf("%s changed at %d: %v", name, n, err)
				}
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / uint64(damages()) / 2; each > 24<<20 {
				t.Errorf("%s: %d MiB for each attempt", name, each>>20)
			}
		}
	}
}

// TestPutTogether: of files that were put together with cat, the footer of the last would find its rows in the first;
// and nothing reads what follows the end mark of a stream.
func TestPutTogether(t *testing.T) {
	for _, name := range fixtures(t) {
		data := load(t, name)
		want := "two files are in one"
		if IsArrowStream(data) {
			want = fmt.Sprintf("bytes follow the end mark of the stream, from byte %d on; keep what comes before with `head -c %[1]d`", len(data))
		}
		_, err := open(name, slices.Concat(data, data), Options{})
		if !errors.Is(err, ErrSeveral) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s twice: %v", name, err)
		}
	}
	for name, before := range map[string]string{"delta.parquet": "plain.parquet", "zstd.arrow": "file.arrow"} {
		data := slices.Concat(load(t, "testdata/"+before), load(t, "testdata/"+name))
		if _, err := open(name, data, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s after %s: %v", name, before, err)
		}
	}
	for _, name := range []string{"stream.arrow", "deltas.arrow"} {
		if _, err := open(name, append(load(t, "testdata/"+name), make([]byte, 64)...), Options{}); err != nil {
			t.Errorf("%s and zeros: %v", name, err)
		}
	}
}

func TestMemoryBound(t *testing.T) {
	name := "testdata/plain.parquet"
	data := load(t, name)
	f, err := OpenParquet(bytes.NewReader(data), int64(len(data)), Options{Text: "text"})
	if err != nil {
		t.Fatal(err)
	}
	f.(*parquetFile).options.MaxBytes = 100
	var size *SizeError
	if _, err := readRows(f, Options{Text: "text"}, 0); !errors.As(err, &size) || size.Bytes <= 100 ||
		!strings.Contains(err.Error(), "row group 1, column text") {
		t.Errorf("a page above the bound: %v", err)
	}
}

func FuzzColumns(f *testing.F) {
	for _, name := range fixtures(f) {
		f.Add(load(f, name), filepath.Ext(name) == ".parquet")
	}
	f.Fuzz(func(t *testing.T, data []byte, isParquet bool) {
		name := "x.arrow"
		if isParquet {
			name = "x.parquet"
		}
		if err := attempt(name, data, Options{}, -1); err != nil {
			t.Fatal(err)
		}
		if err := salvage(name, data, Options{}); err != nil {
			t.Fatal(err)
		}
	})
}
