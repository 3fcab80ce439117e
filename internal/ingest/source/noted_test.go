package source

import (
	"io"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/google/go-cmp/cmp"
)

// What Note notes after a record is the position there, also once the next record was read: from the window that
// moved on meanwhile, or from the next input.
func TestNotedPositions(t *testing.T) {
	dir := t.TempDir()
	all := Options{Args: []string{dir}, chunkBytes: 100}
	sets := map[string]Options{"all": all}
	for name, data := range packed(t) {
		sets[name] = Options{Args: []string{write(t, dir, name, data)}, chunkBytes: 100}
	}
	srv := remotetest.New()
	defer srv.Close()
	for name, data := range remoteFiles(t) {
		if data != "" {
			srv.Put("/"+name, remotetest.File{Data: []byte(data)})
			sets["remote "+name] = Options{Args: []string{srv.URL + "/" + name}}
		}
	}
	for name, o := range sets {
		t.Run(name, func(t *testing.T) {
			set := openSet(t, o)
			records, err := readFrom(t, set, Position{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := set.Reader(Position{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var rec Record
			step := 3 + len(records)/effort.Of(25, 100, 100) // of others nothing is asked
			for i, input := 0, 0; ; i++ {
				_, err := r.Next(nil, &rec)
				crossed := rec.Input != input || i == len(records)
				if input = rec.Input; i > 0 && (crossed || i%step == 0) {
					got, want := r.Noted(), records[i-1].next
					if got.Sums != nil { // a hash that the server announced may be ahead
						got.Sums.Check, got.Sums.CheckAt = want.Sums.Check, want.Sums.CheckAt
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("after record %d: %s", i, diff)
					}
				}
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if p := r.Note(); p.Row != records[i].next.Row || p.Offset != records[i].next.Offset ||
					p.Ordinal != records[i].next.Ordinal || p.Inside != records[i].next.Inside {
					t.Fatalf("record %d: noted %+v, want %+v", i, p, records[i].next)
				}
			}
		})
	}
}
