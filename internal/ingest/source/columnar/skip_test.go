package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

// salvage reads damaged data as far as it can be, and checks that reading ends and that no row is
// counted twice, nor another number where pages are read ahead.
func salvage(name string, data []byte, o Options) error {
	read, err := salvageOnce(name, data, o)
	if o.Spare = aFewPages; err == nil {
		var ahead int64
		if ahead, err = salvageOnce(name, data, o); ahead != read && err == nil {
			err = fmt.Errorf("%d rows read ahead, otherwise %d", ahead, read)
		}
	}
	return err
}

func salvageOnce(name string, data []byte, o Options) (all int64, err error) {
	o.MaxBytes, o.MaxMetadata, o.Lenient = 4<<20, 4<<20, true
	f, err := openPlanned(name, data, o)
	if err != nil {
		return 0, nil // attempt judges it
	}
	r := f.NewRows()
	defer r.Close()
	for group := range f.Groups() {
		rows, lost, err := int64(0), int64(0), r.Seek(group)
		for n := 0; err != io.EOF; n++ {
			if n > 20_000 {
				return all, nil // a damaged file may claim any number of nulls
			}
			if err == nil {
				if err = r.Next(); err == nil {
					if o.Text == "" {
						_, err = r.AppendJSON(nil, 1<<20)
					} else {
						r.Text()
					}
				}
				if err == nil {
					rows++
				}
				continue
			}
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
				return all, nil // it needs more memory
			}
			more, skipErr := r.Skip()
			if skipErr != nil {
				return all, nil
			}
			if more < 0 {
				return all, fmt.Errorf("%d rows are lost", more)
			}
			lost, err = lost+more, nil
		}
		all += rows
		if want := f.Group(group).Rows; rows+lost > want || rows+lost < want && filepath.Ext(name) == ".parquet" {
			return all, fmt.Errorf("group %d: %d rows read and %d lost, of %d", group, rows, lost, want)
		}
	}
	return all, nil
}

// After damage, reading continues with the next page, or record batch, or group.
func TestSkip(t *testing.T) {
	for _, name := range fixtures(t) {
		data := load(t, name)
		for _, o := range []Options{{}, {Text: "text"}, {Columns: []string{"id", "text"}}} {
			for n := 0; n < len(data); n += len(data)/damages() + 1 {
				if err := salvage(name, data[:n], o); err != nil {
					t.Fatalf("%s cut at %d: %v", name, n, err)
				}
				harmed := bytes.Clone(data)
				harmed[n] ^= byte(1 << (n % 8))
				if err := salvage(name, harmed, o); err != nil {
					t.Fatalf("%s changed at %d: %v", name, n, err)
				}
			}
		}
	}
}

// A damaged page costs only its own rows, in a column that is not a list.
func TestSkipOnePage(t *testing.T) {
	const name = "testdata/lz4.parquet" // four rows a page
	data := load(t, name)
	f, err := open(name, data, Options{Text: "text"})
	if err != nil {
		t.Fatal(err)
	}
	chunk := f.(*parquetFile).groups.at(0).chunks[0]
	all, err := readRows(f, Options{Text: "text"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	harmed := bytes.Clone(data)
	harmed[chunk.offset+chunk.size-3] ^= 0xff // of the last page
	if f, err = open(name, harmed, Options{Text: "text", Lenient: true}); err != nil {
		t.Fatal(err)
	}
	r := f.NewRows()
	defer r.Close()
	if err := r.Seek(0); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for err = nil; err == nil; {
		if err = r.Next(); err == nil {
			if text, null := r.Text(); fmt.Sprint(null, string(text)) != all[rows] {
				t.Fatalf("row %d: %q", rows, text)
			}
			rows++
		}
	}
	lost, skipErr := r.Skip()
	if !errors.Is(err, ErrCorrupt) || skipErr != nil || lost < 1 || lost > 4 || int64(rows)+lost != 25 {
		t.Errorf("%d rows read, %d lost after %v, %v", rows, lost, err, skipErr)
	}
	if err := r.Next(); err != io.EOF {
		t.Errorf("after the last page: %v", err)
	}
}
