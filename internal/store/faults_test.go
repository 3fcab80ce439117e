package store

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/shardfile"
)

// A place is a write or a removal of a build, by its number.
type place struct {
	method, name string
}

// places returns the writes and removals of a run into an empty folder.
func (w *writing) places(run func() error) (list []place) {
	w.t.Helper()
	w.server.OnWrite = func(method, at string) (f remotetest.WriteFault) {
		list = append(list, place{method, path.Base(at)})
		return f
	}
	w.must(run())
	w.server.OnWrite = nil
	return list
}

// some returns the places that a test looks at: all of them, or in quick tests those whose kind was not seen yet.
func some(list []place) (chosen []int) {
	seen := map[place]bool{}
	for i, p := range list {
		name := strings.TrimRight(strings.TrimSuffix(p.name, path.Ext(p.name)), "0123456789")
		kind := place{p.method, name + path.Ext(p.name)}
		if effort.Of(!seen[kind], true, true) {
			chosen = append(chosen, i)
		}
		seen[kind] = true
	}
	return chosen
}

// eachFaulty is eachWriting with fewer checkpoints, since what it takes grows with their square: two in a shard, which
// has all kinds of places, or one, and one kind of bucket, in quick tests. make soak has four.
func eachFaulty(t *testing.T, test func(t *testing.T, w *writing)) {
	eachWriting(t, func(t *testing.T, w *writing) {
		if testing.Short() && !strings.HasPrefix(w.uri, "s3") {
			t.Skip("one kind of bucket is enough for quick tests")
		}
		w.every = effort.Of(200, 100, w.every)
		test(t, w)
	})
}

// empty removes all from the bucket's folder.
func (w *writing) empty() {
	w.t.Helper()
	w.server.OnWrite = nil
	var uris []string
	w.must(w.objects.List(w.t.Context(), w.uri, func(_ string, o remote.Object) error {
		uris = append(uris, o.URI)
		return nil
	}))
	for _, uri := range uris {
		w.must(w.objects.Remove(w.t.Context(), uri))
	}
}

// A kind of run whose writes fail.
type kind struct {
	name   string
	before func(w *writing) error // makes the folder what the run finds
	run    func(w *writing, machine string) error
	local  func(w *writing, dir string) error
}

func kinds(w *writing) []kind {
	none := func(*writing) error { return nil }
	whole := kind{"build", none, (*writing).finish,
		func(w *writing, dir string) error { return w.write(unsynced{shardfile.OS()}, dir, rows, nil) }}
	adds := w.adding(`{"a":1,"additions":[1]}`)
	part := w.as(`{"a":1}`)
	part.o.Part, part.o.Plan = shardfile.Part{Number: 0, Of: 1}, "seal"
	of := func(o *writing) func(w *writing, machine string) error {
		return func(_ *writing, machine string) error { return o.finish(machine) }
	}
	return []kind{whole,
		{"addition", func(w *writing) error { return w.finish("base") }, of(adds), func(w *writing, dir string) error {
			return errors.Join(w.write(unsynced{shardfile.OS()}, dir, rows, nil), adds.write(unsynced{shardfile.OS()}, dir, rows, nil))
		}},
		{"part", none, of(part), func(_ *writing, dir string) error { return part.write(unsynced{shardfile.OS()}, dir, rows, nil) }},
		{"merge", func(*writing) error { return part.finish("base") },
			func(*writing, string) error { return Merge(w.t.Context(), w.uri, part.mergeOne) },
			func(_ *writing, dir string) error {
				return errors.Join(part.write(unsynced{shardfile.OS()}, dir, rows, nil), part.mergeOne(unsynced{shardfile.OS()}, dir))
			}},
	}
}

// Whatever write or removal of a run fails, or is its last because it is killed there: the same command, on this
// machine or another one, ends with the bytes of an undisturbed run, and exit 0 means that they are there.
func TestBuildFailsAtEveryWrite(t *testing.T) {
	eachFaulty(t, func(t *testing.T, w *writing) {
		for _, k := range kinds(w) {
			local := filepath.Join(w.dir, "local-"+k.name)
			w.must(k.local(w, local))
			w.empty()
			w.must(k.before(w))
			list := w.places(func() error { return k.run(w, "first") })
			w.compare(local)
			for _, n := range some(list) {
				for i := range effort.Of(1, 1, 2*len(failures)) {
					f, then := failures[(n+i)%len(failures)], []string{"same", "other"}[(n+i)/len(failures)%2]
					what := fmt.Sprintf("%s, %s %s (number %d) %s, then the %s machine", k.name, list[n].method, list[n].name,
						n, f.name, then)
					if w.failsAt(k, n, f, then, local, what); t.Failed() {
						return
					}
				}
			}
		}
	})
}

// A failure is what happens to one write, and to those after it.
type failure struct {
	name       string
	now, later remotetest.WriteFault
}

var (
	refused  = remotetest.WriteFault{Status: 403}
	lost     = remotetest.WriteFault{Lose: true}
	failures = []failure{
		{"killed before", refused, refused}, {"killed after", remotetest.WriteFault{}, refused},
		{"killed, answer lost", lost, refused}, {"refused once", refused, remotetest.WriteFault{}},
		{"answer lost once", lost, remotetest.WriteFault{}},
	}
)

func (w *writing) failsAt(k kind, n int, f failure, then, local, what string) {
	t := w.t
	w.empty()
	w.dir = t.TempDir()
	w.must(k.before(w))
	at := 0
	w.server.OnWrite = func(string, string) remotetest.WriteFault {
		defer func() { at++ }()
		switch {
		case at == n:
			return f.now
		case at > n:
			return f.later
		}
		return remotetest.WriteFault{}
	}
	err := k.run(w, "same")
	w.server.OnWrite = nil
	if err == nil {
		w.compare(local)
	}
	for i := range 2 {
		if again := k.run(w, then); again != nil {
			t.Errorf("%s: it ends with %v, and again, time %d, with %v", what, err, i+1, again)
		}
		w.compare(local)
	}
	if t.Failed() {
		t.Errorf("%s: it ended with %v", what, err)
	}
}

// mergeOne is merge of a plan with one part.
func (w *writing) mergeOne(fsys shardfile.FS, dir string) error { return w.mergeParts(fsys, dir, 1) }

// While a build goes on, another machine begins with other rows at any of its writes: it is refused, or the first
// one is, and what is there is of the one that ended well.
func TestOtherTextIsRefused(t *testing.T) {
	for _, conditions := range []remotetest.Conditions{remotetest.ConditionsKept, remotetest.ConditionsIgnored,
		remotetest.ConditionsRefused} {
		eachFaulty(t, func(t *testing.T, w *writing) {
			if conditions != remotetest.ConditionsKept && !effort.Soak() && !strings.HasPrefix(w.uri, "s3") {
				t.Skip("only stores with S3's interface lack conditions; internal/remote tests what is asked of the others")
			}
			w.server.Conditions = conditions
			a, b := w.as(`{"a":1}`), w.as(`{"a":234}`)
			w.race(a, b, nil, fmt.Sprint("conditions ", conditions))
			if !t.Failed() && effort.Of(conditions != remotetest.ConditionsIgnored, true, true) {
				a, b = w.adding(`{"a":1,"additions":[1]}`), w.adding(`{"a":1,"additions":[2345]}`)
				w.race(a, b, w, fmt.Sprint("additions, conditions ", conditions))
			}
		})
	}
}

// A build that another one takes over with --overwrite, at any of its writes, changes nothing after that.
func TestTakenOverChangesNothing(t *testing.T) {
	eachFaulty(t, func(t *testing.T, w *writing) {
		a, b := w.as(`{"a":1}`), w.as(`{"a":234}`)
		b.o.Overwrite = true
		w.race(a, b, nil, "overwrite")
	})
}

// A build that moves to another machine while the first one goes on, at any of its writes, ends with the bytes of
// an undisturbed one.
func TestSameBuildTakenOver(t *testing.T) {
	eachFaulty(t, func(t *testing.T, w *writing) { w.race(w.as(`{"a":1}`), w.as(`{"a":1}`), nil, "same") })
}

// race lets machine b run from beginning to end at each write of machine a, into a folder that holds base if that
// is not nil.
func (w *writing) race(a, b, base *writing, what string) {
	t := w.t
	t.Helper()
	local := func(o *writing) string {
		dir := filepath.Join(t.TempDir(), "local")
		if base != nil {
			w.must(base.write(unsynced{shardfile.OS()}, dir, rows, nil))
		}
		o.o.Overwrite = false
		w.must(o.write(unsynced{shardfile.OS()}, dir, rows, nil))
		return dir
	}
	overwrite := b.o.Overwrite
	locals := [2]string{local(a), local(b)}
	b.o.Overwrite = overwrite
	prepare := func() {
		w.empty()
		if base != nil {
			w.must(base.finish("base"))
		}
	}
	prepare()
	list := w.places(func() error { return a.finish("a") })
	for _, n := range some(list) {
		w.dir = t.TempDir()
		a.dir, b.dir = w.dir, w.dir
		prepare()
		var at atomic.Int32
		var second error
		var late remotetest.WriteFault
		w.server.OnWrite = func(string, string) (f remotetest.WriteFault) {
			if int(at.Add(1)) == n+1 {
				second = b.finish("b")
				return late
			}
			return f
		}
		if w.server.Conditions != remotetest.ConditionsKept && list[n].name != ownerName {
			late.Status = 403 // what was on its way would be written; it is not what is tested
		}
		first := a.finish("a")
		w.server.OnWrite = nil
		at1 := fmt.Sprintf("%s, at %s %s (number %d): %v; %v", what, list[n].method, list[n].name, n, first, second)
		// The first one has its dataset, or adds to that of the second one.
		ended := list[n] == place{"DELETE", ownerName} || base != nil && list[n].name == ownerName
		switch {
		case second == nil:
			if first == nil && !ended && !slices.Equal(a.o.Settings, b.o.Settings) {
				t.Errorf("%s: both end well", at1)
			}
			if first != nil || !ended || base == nil {
				w.compare(locals[1], list[n].name, ownerName)
			}
		case first == nil:
			w.compare(locals[0])
		case late.Status == 0:
			t.Errorf("%s: neither ends well", at1)
		}
		if overwrite && second != nil {
			t.Errorf("%s: the second one ends with an error", at1)
		}
		if t.Failed() {
			t.Fatal(at1)
		}
	}
}

// A build that ends before its first row gives the folder up, and other settings may follow on any machine.
func TestFolderWithoutRowsIsFree(t *testing.T) {
	eachWriting(t, func(t *testing.T, w *writing) {
		if err := w.build("a", 0, nil); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		other := w.as(`{"a":234}`)
		local := filepath.Join(w.dir, "local")
		w.must(other.write(unsynced{shardfile.OS()}, local, rows, nil))
		w.must(other.finish("b"))
		w.compare(local)
	})
}

// A scratch folder that has no claim, or whose build was ended elsewhere, is not used: what the bucket holds
// decides.
func TestBucketDecides(t *testing.T) {
	eachWriting(t, func(t *testing.T, w *writing) {
		local := filepath.Join(w.dir, "local")
		w.must(w.write(unsynced{shardfile.OS()}, local, rows, nil))
		if err := w.build("a", 340, nil); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		scratch, _ := filepath.Glob(filepath.Join(w.dir, "a", "dsload", "out", "*", "data"))
		if len(scratch) != 1 {
			t.Fatal(scratch)
		}
		manifest, err := os.ReadFile(filepath.Join(local, shardfile.ManifestName))
		w.must(err)
		// As an earlier version left it where the upload failed.
		w.must(os.WriteFile(filepath.Join(scratch[0], shardfile.ManifestName), manifest, 0o600))
		w.must(w.finish("a"))
		w.compare(local)
		if err := w.build("c", 340, nil); !errors.Is(err, dataset.ErrFinished) {
			t.Fatal(err)
		}
		if err := w.as(`{"a":234}`).build("a", 340, nil); err == nil {
			t.Error("other settings in a finished folder")
		}
		w.empty()
		if err := w.build("a", 340, nil); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		w.empty() // somebody has removed it
		w.must(w.finish("a"))
		w.compare(local)
	})
}
