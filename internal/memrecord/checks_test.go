package memrecord

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fields are the fields of a line.
type fields = map[string]any

const (
	mib = 1 << 20
	gib = 1 << 30
)

// text returns a record with the given lines after its first.
func text(t *testing.T, start fields, lines ...fields) string {
	t.Helper()
	var b strings.Builder
	head := fields{"type": "start", "device": "cuda:0", "device_total": 16 * gib, "parameter_bytes": 400_000_000}
	maps.Copy(head, start)
	enc := json.NewEncoder(&b)
	for _, l := range append([]fields{head}, lines...) {
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// snap returns a snapshot of an unremarkable step with some fields changed.
func snap(step int, phase string, changed fields) fields {
	l := fields{"type": "snapshot", "step": step, "phase": phase, "allocated": gib, "reserved": 2 * gib,
		"peak": 2 * gib,
		"free": 13 * gib, "rss": gib, "batch": fields{"rows": 8, "length": 128}}
	maps.Copy(l, changed)
	return l
}

func oom(phase string, changed fields) fields {
	l := snap(13, phase, fields{"type": "oom", "requested": gib})
	maps.Copy(l, changed)
	return l
}

// steps returns a snapshot for each step from 1 to n.
func steps(n int, phase string, changed func(step int) fields) []fields {
	var lines []fields
	for i := 1; i <= n; i++ {
		lines = append(lines, snap(i, phase, changed(i)))
	}
	return lines
}

func calm(n int) []fields {
	var lines []fields
	for i := 1; i <= n; i++ {
		for _, phase := range []string{"load", "forward", "backward", "optimizer"} {
			lines = append(lines, snap(i, phase, nil))
		}
	}
	return lines
}

func analyse(t *testing.T, record string) *Analysis {
	t.Helper()
	a, err := Read(strings.NewReader(record))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// few is how many snapshots thinned holds.
const few = 1 << 11

// thinned analyses a record as if few snapshots were the most.
func thinned(t *testing.T, record string) *Analysis {
	t.Helper()
	r, err := read(strings.NewReader(record), few)
	if err != nil {
		t.Fatal(err)
	}
	return r.analyse()
}

// Each cause is found with its numbers. The figures are those that a device would have given.
func TestEachCauseIsFound(t *testing.T) {
	for _, c := range []struct {
		kind, phase, message string
		start                fields
		lines                []fields
	}{
		{"batch_too_large", "backward",
			"a batch of 64 rows of length 128 ran out in backward; 1GiB were held before the step", nil,
			append(calm(12), oom("backward", fields{"allocated": 14 * gib, "reserved": 15 * gib, "free": gib,
				"batch": fields{"rows": 64, "length": 128}}))},
		{"leak", "optimizer",
			"allocated memory grows by 50MiB a step over 17 steps; the 13GiB that are free last 266 more steps",
			nil,
			steps(19, "optimizer", func(i int) fields { return fields{"allocated": gib + i*50*mib} })},
		{"host_leak", "load", "the process grows by 20MiB of host memory a step, 520MiB so far", nil,
			steps(29, "load", func(i int) fields { return fields{"rss": gib + i*20*mib} })},
		{"unstable_gradients", "backward", "1 spikes of the gradient norm above 10 times its median and " +
			"NaN or infinite gradients in 1 steps, first in step 5", nil,
			steps(11, "backward", func(i int) fields {
				return []fields{{"grad_norm": 1.0, "nonfinite": 0}, {"grad_norm": 90.0, "nonfinite": 0},
					{"grad_norm": nil, "nonfinite": 2}}[map[int]int{5: 2, 7: 1}[i]]
			})},
		{"fragmentation", "forward",
			"5GiB of 14GiB reserved lie unused in pieces while 2GiB could not be found",
			nil, append(calm(12),
				oom("forward", fields{"allocated": 9 * gib, "reserved": 14 * gib, "requested": 2 * gib,
					"free": gib}))},
		{"other_processes", "load",
			"9GiB of the device's 16GiB are in use, but not by this process's allocator", nil,
			steps(12, "load", func(int) fields { return fields{"free": 5 * gib} })},
		{"logits", "backward", "logits of 8,192 tokens × 128,000 words are 3.9GiB in float32, and the loss and its " +
			"gradient hold four such tensors at once: 100% of what a step allocates", fields{"vocab_size": 128_000},
			steps(4, "backward", func(int) fields {
				return fields{"peak": 14 * gib, "batch": fields{"rows": 16, "length": 512}}
			})},
		{"long_sequences", "forward",
			"rows are usually 128 tokens long, the longest batch 1024: its attention takes 64 times the memory", nil,
			append(steps(11, "forward", func(int) fields { return nil }),
				oom("forward", fields{"batch": fields{"rows": 8, "length": 1024}}))},
		{"optimizer_state", "optimizer", "the optimizer's step ran out of memory: " +
			"AdamW keeps two values a parameter, 762.9MiB here, from its first step on", nil,
			append(calm(1), oom("optimizer", nil))},
		{"loader", "load", "memory ran out while a batch was fetched or moved to the device", nil,
			append(calm(2), oom("load", nil))},
	} {
		a := analyse(t, text(t, c.start, c.lines...))
		var found *Verdict
		for i, v := range a.Verdicts {
			if v.Kind == c.kind {
				found = &a.Verdicts[i]
			}
		}
		switch {
		case found == nil:
			t.Errorf("%s is not found: %+v", c.kind, a.Verdicts)
		case found.Phase != c.phase || found.Message != c.message || len(found.Actions) == 0:
			t.Errorf("%s (%s): %s", c.kind, found.Phase, found.Message)
		}
		if failed := c.lines[len(c.lines)-1]; a.OutOfMemory != (failed["type"] == "oom") || a.Where != failed["phase"] {
			t.Errorf("%s: out of memory %v in %s", c.kind, a.OutOfMemory, a.Where)
		}
	}
	if a := analyse(t, text(t, nil, calm(12)...)); len(a.Verdicts) != 0 || *a.Peak != 2*gib || a.Steps != 12 {
		t.Errorf("a calm run: %+v", a)
	}
}

// A cause is found from a threshold on: each case lies closely on one side of one, in pairs.
func TestThresholds(t *testing.T) {
	series := func(n int, phase, figure string, size func(i int) float64) []fields {
		return steps(n, phase, func(i int) fields { return fields{figure: size(i)} })
	}
	growing := func(n int, total float64) []fields { // the first two steps do not count
		return series(n, "optimizer", "allocated", func(i int) float64 { return gib + total*gib*float64(i-3)/float64(n-3) })
	}
	growingIn := func(k int) []fields { // k of 20 steps
		return series(23, "optimizer", "allocated", func(i int) float64 { return gib + 50*mib*float64(min(max(i-3, 0), k)) })
	}
	host := func(n int, mebibytes float64) []fields { // in all
		return series(n, "load", "rss", func(i int) float64 { return gib + mebibytes*mib*float64(i-3)/float64(n-3) })
	}
	hostAfterJump := func(perStep float64) []fields {
		return series(29, "load", "rss", func(i int) float64 { return gib + 70*mib*float64(min(max(i-3, 0), 1)) + perStep*float64(i) })
	}
	norms := func(n int, last float64) []fields {
		return series(n, "backward", "grad_norm", func(i int) float64 { return map[bool]float64{true: last, false: 1}[i == n] })
	}
	lengths := func(lengths ...int) []fields {
		return steps(len(lengths), "forward", func(i int) fields { return fields{"batch": fields{"rows": 8, "length": lengths[i-1]}} })
	}
	failed := func(length int) []fields {
		return append(lengths(128, 128, 128, 128, 512), oom("backward", fields{"batch": fields{"rows": 8, "length": length}}))
	}
	pieces := func(reserved, wasted float64) []fields {
		return steps(4, "forward", func(int) fields { return fields{"reserved": reserved * gib, "allocated": (reserved - wasted) * gib} })
	}
	piecesOfFailed := func(reserved, wasted, requested float64) []fields {
		return []fields{oom("forward", fields{"reserved": reserved * gib, "allocated": (reserved - wasted) * gib,
			"requested": requested * gib})}
	}
	foreign := func(total, others float64) []fields {
		return steps(4, "load", func(int) fields { return fields{"free": (total - 2 - others) * gib} })
	}
	logits := func(share float64) []fields { // four tensors of 8,192 tokens, beside 400 MB of parameters
		return steps(4, "backward", func(int) fields {
			return fields{"peak": 4*128_000*8192*4/share + 400e6, "batch": fields{"rows": 16, "length": 512}}
		})
	}
	small, words := fields{"device_total": 8 * gib}, fields{"vocab_size": 128_000}
	for _, c := range []struct {
		kind        string
		start       fields
		below, from []fields
	}{
		{"leak", nil, growing(9, 1), growing(10, 1)},
		{"leak", nil, growingIn(13), growingIn(14)},
		{"leak", nil, growing(10, 0.0195), growing(10, 0.0205)},
		{"host_leak", nil, host(17, 300), host(18, 300)},
		{"host_leak", nil, host(29, 63), host(29, 65)},
		{"host_leak", nil, hostAfterJump(4000), hostAfterJump(4200)},
		{"unstable_gradients", nil, norms(3, 90), norms(4, 90)},
		{"unstable_gradients", nil, norms(8, 9.9), norms(8, 10.1)},
		{"long_sequences", nil, lengths(128, 128, 1024), lengths(128, 128, 128, 1024)},
		{"long_sequences", nil, lengths(128, 128, 128, 128, 254), lengths(128, 128, 128, 128, 258)},
		{"long_sequences", nil, failed(190), failed(194)},
		{"fragmentation", nil, pieces(12, 2.95), pieces(12, 3.05)},
		{"fragmentation", nil, pieces(9.5, 5), pieces(9.7, 5)},
		{"fragmentation", nil, piecesOfFailed(14, 5, 5.1), piecesOfFailed(14, 5, 4.9)},
		{"fragmentation", nil, piecesOfFailed(10, 0.98, 0.5), piecesOfFailed(10, 1.02, 0.5)},
		{"other_processes", nil, foreign(16, 1.55), foreign(16, 1.65)},
		{"other_processes", small, foreign(8, 0.98), foreign(8, 1.02)},
		{"logits", words, logits(0.39), logits(0.41)},
		{"batch_too_large", nil, []fields{oom("forward", fields{"batch": fields{"rows": 1, "length": 128}})},
			[]fields{oom("forward", fields{"batch": fields{"rows": 2, "length": 128}})}},
	} {
		for want, lines := range map[bool][]fields{false: c.below, true: c.from} {
			found := slices.ContainsFunc(analyse(t, text(t, c.start, lines...)).Verdicts, func(v Verdict) bool { return v.Kind == c.kind })
			if found != want {
				t.Errorf("%s: found %v, want %v, in %v", c.kind, found, want, lines)
			}
		}
	}
}

// The rows that are suggested fill nine tenths of the room, and are at least one and at most half of those that failed.
func TestSuggestedRows(t *testing.T) {
	for _, c := range []struct{ rows, room, took, want float64 }{
		{26, 14, 26, 12}, {20, 10, 20, 9}, {100, 20, 100, 18}, {64, 15, 16, 32}, {2, 1, 100, 1},
	} {
		start := fields{"parameter_bytes": gib, "device_total": (c.room + 1) * gib}
		a := analyse(t, text(t, start, oom("forward", fields{"allocated": c.room * gib,
			"requested": (c.took + 1 - c.room) * gib, "batch": fields{"rows": c.rows, "length": 128}})))
		at := slices.IndexFunc(a.Verdicts, func(v Verdict) bool { return v.Kind == "batch_too_large" })
		if at < 0 || a.Verdicts[at].Evidence["suggested_rows"] != c.want {
			t.Errorf("%+v: %+v", c, a.Verdicts)
		}
	}
}

// A recorder writes every n-th step only, and a long record is thinned: growth is still that of one step.
func TestGrowthIsPerStep(t *testing.T) {
	grows := func(every, n int) string {
		var lines []fields
		for i := every; i <= n; i += every {
			lines = append(lines, snap(i, "optimizer", fields{"allocated": gib + i*mib}),
				snap(i, "load", fields{"rss": gib + i*mib}))
		}
		return text(t, nil, lines...)
	}
	for name, record := range map[string]string{"every": grows(1, 400), "fourth": grows(4, 400), "thinned": grows(1, few/2+10)} {
		growth := map[string]float64{}
		for _, v := range thinned(t, record).Verdicts {
			growth[v.Kind] = v.Evidence["growth_per_step"]
		}
		if growth["leak"] != mib || growth["host_leak"] != mib {
			t.Errorf("%s: growth %v, want %d a step", name, growth, mib)
		}
	}
}

// What a single snapshot shows is found in a record that is thinned, though its step is dropped.
func TestThinningKeepsWhatStandsOut(t *testing.T) {
	const odd, before = 1251, 312
	lines := steps(few/2+10, "backward", func(i int) fields {
		if i == odd-before {
			return fields{"grad_norm": nil, "nonfinite": 1, "peak": 3 * gib}
		}
		return fields{"grad_norm": 1.0, "nonfinite": 0}
	})
	lines = append(lines, steps(few/2+before, "forward", func(i int) fields {
		if i == odd {
			return fields{"batch": fields{"rows": 8, "length": 1024}}
		}
		return nil
	})...)
	a := thinned(t, text(t, nil, lines...))
	got := map[string]float64{"peak": *a.Peak}
	for _, v := range a.Verdicts {
		maps.Copy(got, v.Evidence)
	}
	want := map[string]float64{"peak": 3 * gib, "spikes": 0, "nonfinite_steps": 1, "first_step": odd - before,
		"usual": 128, "longest": 1024}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSeveralErrorsOfOneRun(t *testing.T) {
	lines := append(calm(2), oom("forward", fields{"allocated": 12 * gib, "requested": gib}),
		oom("backward", fields{"allocated": gib, "requested": 0, "batch": fields{}}))
	record := text(t, fields{"vocab_size": 400_000}, lines...)
	for _, v := range analyse(t, record).Verdicts {
		switch v.Kind {
		case "logits":
			if share := v.Evidence["share"]; share > 0.6 {
				t.Errorf("logits: share %v; the highest of several errors counts", share)
			}
		case "batch_too_large":
			if v.Phase != "backward" || v.Evidence["rows"] != 8 {
				t.Errorf("an error without a batch's shape: %+v; the last known shape counts", v)
			}
		}
	}
	many := calm(1)
	for range 2 * maxErrors {
		many = append(many, oom("load", nil))
	}
	if r, err := read(strings.NewReader(text(t, nil, many...)), maxSnapshots); err != nil || len(r.ooms) != maxErrors {
		t.Errorf("%d errors kept, %v", len(r.ooms), err)
	}
}

// A run cut off by a kill is read, and the last of several runs counts; other files are refused.
func TestWhatIsARecord(t *testing.T) {
	whole := text(t, nil, calm(2)...)
	want := analyse(t, whole)
	if got := analyse(t, whole+`{"type": "snap`); !reflect.DeepEqual(got, want) {
		t.Errorf("cut off: %+v, want %+v", got, want)
	}
	before := text(t, nil, snap(1, "forward", fields{"peak": 9 * gib}), oom("forward", nil))
	for _, between := range []string{"", `{"type": "snap` + "\n"} {
		got := analyse(t, before+between+whole)
		if got.Runs != 2 {
			t.Errorf("%d runs", got.Runs)
		}
		if got.Runs = want.Runs; !reflect.DeepEqual(got, want) {
			t.Errorf("the last run: %+v, want %+v", got, want)
		}
	}
	for _, bad := range []string{"", "not json\nat all\n", `{"a": 1}` + "\n", "[1]\n",
		`{"type":"snapshot","phase":"load"}`} {
		if _, err := Read(strings.NewReader(bad)); !errors.Is(err, ErrNotRecord) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
