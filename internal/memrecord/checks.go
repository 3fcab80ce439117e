package memrecord

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/units"
)

const (
	leakSteps    = 8    // snapshots of a phase needed to call growth a leak
	leakShare    = 0.7  // share of steps that must grow
	spike        = 10.0 // gradient norm against the median
	fragmented   = 0.25 // reserved but not allocated, as a share of reserved
	foreignShare = 0.10 // share of the device used by others
)

// checks lists the checks, those whose remedy is surest first.
var checks = []func(*record) *Verdict{
	leak, otherProcesses, optimizerState, loading, fragmentation, batchTooLarge, logits, longSequences,
	unstableGradients, hostLeak,
}

// leak finds memory that grows from step to step after the same phase. The first two steps set up
// state and do not count.
func leak(r *record) *Verdict {
	growth, name, steps := 0.0, "", int64(0)
	for _, phase := range []string{"optimizer", "backward", "forward", "load"} {
		series := r.series(phase, func(l *line) *float64 { return l.Allocated })
		if len(series) < leakSteps {
			continue
		}
		first, last := series[0], series[len(series)-1]
		g, share := trend(series)
		if share >= leakShare && g > 0 && last.size-first.size > 0.02*max(first.size, 1) && (name == "" || g > growth) {
			growth, name, steps = g, phase, stepsBetween(first, last)+1
		}
	}
	if name == "" {
		return nil
	}
	left := ""
	if free := value(r.snapshots[len(r.snapshots)-1].Free); free > 0 && r.oom == nil {
		left = fmt.Sprintf("; the %s that are free last %d more steps", units.Size(free), int64(free/growth))
	}
	return &Verdict{"leak", name,
		fmt.Sprintf("allocated memory grows by %s a step over %d steps%s", units.Size(growth), steps, left),
		[]string{
			"keep numbers, not tensors: total += loss.item(), not total += loss, which keeps every step's graph",
			"detach what outlives a step (outputs, hidden states, metrics): x.detach().cpu()",
			"look for lists that grow, hooks registered in each step, and retain_graph=True",
		},
		map[string]float64{"growth_per_step": growth, "steps": float64(steps)}}
}

// reading is what was measured after a phase of a step, such as the bytes in use.
type reading struct {
	step int64
	size float64
}

// series returns a figure after each of a phase's recorded steps but the first two.
func (r *record) series(phase string, figure func(*line) *float64) []reading {
	var series []reading
	for i, s := range r.phase(phase) {
		if size := figure(s); i >= 2 && size != nil {
			step := int64(i)
			if s.Step != nil {
				step = *s.Step
			}
			series = append(series, reading{step, *size})
		}
	}
	return series
}

// stepsBetween counts steps as they were taken: a recorder may write only every n-th, and thinning
// drops more.
func stepsBetween(a, b reading) int64 { return max(1, b.step-a.step) }

// trend returns the median growth per step and the share of recorded steps that grow.
func trend(series []reading) (growth, share float64) {
	var steps []float64
	grow := 0
	for i := 1; i < len(series); i++ {
		d := (series[i].size - series[i-1].size) / float64(stepsBetween(series[i-1], series[i]))
		steps = append(steps, d)
		if d > 0 {
			grow++
		}
	}
	if len(steps) == 0 {
		return 0, 0
	}
	return median(steps), float64(grow) / float64(len(steps))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func hostLeak(r *record) *Verdict {
	series := r.series("load", func(l *line) *float64 {
		if value(l.RSS) > 0 {
			return l.RSS
		}
		return nil
	})
	n := len(series)
	if n < 2*leakSteps {
		return nil
	}
	quarter, last := series[n/4], series[n-1].size
	first, half := series[0].size, series[n/2].size
	growth := (last - quarter.size) / float64(stepsBetween(quarter, series[n-1]))
	if last-first < 64<<20 || !(first < half && half < last) || growth < 4096 {
		return nil
	}
	return &Verdict{"host_leak", "load",
		fmt.Sprintf("the process grows by %s of host memory a step, %s so far", units.Size(growth),
			units.Size(last-first)),
		[]string{
			"do not keep batches or outputs in lists; write them out",
			"with worker processes, avoid Python objects in the dataset (reference counts unshare pages); " +
				"dsload's loader needs no workers",
		},
		map[string]float64{"growth_per_step": growth}}
}

func batchTooLarge(r *record) *Verdict {
	if r.oom == nil || r.oom.Phase != "forward" && r.oom.Phase != "backward" {
		return nil
	}
	b := r.lastBatch()
	if b.Rows <= 1 {
		return nil
	}
	held, length := r.resting(), cmp.Or(b.Length, 1)
	room, fits := value(r.start.DeviceTotal)-held, math.Floor(b.Rows/2)
	perRow := r.bytesPerToken(held) * length
	if r.oom.Allocated != nil && room > 0 {
		// The failed batch took at least this much; batches that succeeded show what a row takes at
		// its peak.
		perRow = max(perRow, (*r.oom.Allocated+value(r.oom.Requested)-held)/b.Rows)
		if perRow > 0 {
			fits = max(1, min(fits, math.Floor(0.9*room/perRow)))
		}
	}
	of := ""
	if b.Length > 0 {
		of = fmt.Sprintf(" of length %.0f", b.Length)
	}
	return &Verdict{"batch_too_large", r.oom.Phase,
		fmt.Sprintf("a batch of %.0f rows%s ran out in %s; %s were held before the step", b.Rows, of, r.oom.Phase,
			units.Size(held)),
		[]string{
			fmt.Sprintf("batch %.0f with %.0f times the accumulation keeps the effective batch of %.0f; "+
				"AdaptiveBatchSizer does it by itself", fits, math.Ceil(b.Rows/fits), b.Rows),
			"enable_gradient_checkpointing(model): activations shrink to about a layer's worth for 30% more time",
			"bf16 halves activations where the device has it",
		},
		map[string]float64{"rows": b.Rows, "suggested_rows": fits, "held": held}}
}

func optimizerState(r *record) *Verdict {
	if r.oom == nil || r.oom.Phase != "optimizer" {
		return nil
	}
	size := value(r.start.ParameterBytes)
	return &Verdict{"optimizer_state", "optimizer",
		fmt.Sprintf("the optimizer's step ran out of memory: "+
			"AdamW keeps two values a parameter, %s here, from its first step on", units.Size(2*size)),
		[]string{
			"an optimizer with smaller state: Adafactor (almost none) or 8-bit AdamW (a quarter)",
			"foreach=False saves a temporary copy of the parameters during the step",
			"freeze layers, or train adapters only; a smaller batch does not help here",
		},
		map[string]float64{"parameter_bytes": size}}
}

func loading(r *record) *Verdict {
	if r.oom == nil || r.oom.Phase != "load" {
		return nil
	}
	return &Verdict{"loader", "load", "memory ran out while a batch was fetched or moved to the device",
		[]string{
			"move only the batch in use to the device, and drop the last one first (del batch, outputs)",
			"fewer prefetched batches (prefetch_factor) and no pinned copies of columns that the model does not take",
		}, map[string]float64{}}
}

func logits(r *record) *Verdict {
	b := r.lastBatch()
	length := b.Length
	if value(b.LabelLength) > 0 {
		length = *b.LabelLength
	}
	vocab, tokens, peak := value(r.start.VocabSize), b.Rows*length, 0.0
	for _, s := range r.snapshots {
		peak = max(peak, value(s.Peak))
	}
	for _, l := range r.ooms {
		peak = max(peak, value(l.Allocated)+value(l.Requested))
	}
	size, step := vocab*tokens*4, max(peak-r.resting(), 1)
	if size == 0 || peak == 0 || size*4 < 0.4*step {
		return nil
	}
	share := min(size*4/step, 1)
	return &Verdict{"logits", "backward",
		fmt.Sprintf("logits of %s tokens × %s words are %s in float32, and the loss and its gradient hold four such "+
			"tensors at once: %.0f%% of what a step allocates",
			units.Count(int64(tokens)), units.Count(int64(vocab)), units.Size(size), 100*share),
		[]string{
			"compute the loss in chunks of tokens (a fused linear cross-entropy), " +
				"so that the logits never exist at once",
			"fewer tokens a batch; for evaluation keep predictions, not logits",
			"a smaller vocabulary, where the tokenizer is yours",
		},
		map[string]float64{"logits_bytes": size, "share": share}}
}

func longSequences(r *record) *Verdict {
	var lengths []float64
	for _, s := range r.phase("forward") {
		if s.Batch != nil && s.Batch.Length > 0 {
			lengths = append(lengths, s.Batch.Length)
		}
	}
	if r.oom != nil && r.oom.Batch != nil && r.oom.Batch.Length > 0 {
		lengths = append(lengths, r.oom.Batch.Length)
	}
	if len(lengths) < 4 {
		return nil
	}
	usual, longest, last := median(lengths), slices.Max(lengths), lengths[len(lengths)-1]
	if longest < 2*usual || r.oom != nil && last < 1.5*usual {
		return nil
	}
	phase, rows := "forward", max(r.lastBatch().Rows, 1)
	if r.oom != nil {
		phase = r.oom.Phase
	}
	return &Verdict{"long_sequences", phase,
		fmt.Sprintf("rows are usually %.0f tokens long, the longest batch %.0f: "+
			"its attention takes %.0f times the memory", usual, longest, math.Pow(longest/usual, 2)),
		[]string{
			fmt.Sprintf("cap rows at build time: --max-length %d", int64(usual*1.5)),
			fmt.Sprintf("batch by tokens instead of rows: Loader(max_tokens=%d)", int64(usual)*int64(rows)),
			"length buckets (bucket=2048) keep long rows together, where the sizer splits only those batches",
		},
		map[string]float64{"usual": usual, "longest": longest}}
}

func fragmentation(r *record) *Verdict {
	l := r.oom
	if l == nil {
		for _, s := range r.snapshots {
			if value(s.Reserved) > 0 && (l == nil ||
				value(s.Reserved)-value(s.Allocated) > value(l.Reserved)-value(l.Allocated)) {
				l = s
			}
		}
	}
	if l == nil || value(l.Reserved) == 0 || l.Allocated == nil {
		return nil
	}
	reserved, allocated, requested := *l.Reserved, *l.Allocated, value(l.Requested)
	wasted := reserved - allocated
	if r.oom != nil {
		// Enough memory was cached for the request, but in fragments.
		if requested == 0 || wasted < max(requested, 0.1*reserved) {
			return nil
		}
	} else if total := value(r.start.DeviceTotal); wasted < fragmented*reserved || total == 0 || reserved <= 0.6*total {
		return nil
	}
	asked := ""
	if requested > 0 {
		asked = fmt.Sprintf(" while %s could not be found", units.Size(requested))
	}
	return &Verdict{"fragmentation", l.Phase,
		fmt.Sprintf("%s of %s reserved lie unused in pieces%s", units.Size(wasted), units.Size(reserved), asked),
		[]string{
			"configure_allocator(expandable_segments=True) before the first CUDA tensor",
			"pad to a multiple (pad_to_multiple_of=64) so that sizes repeat, or batch by tokens",
			"MemoryGuard(threshold=0.9) empties the cache before it is too late",
		},
		map[string]float64{"reserved": reserved, "allocated": allocated}}
}

func otherProcesses(r *record) *Verdict {
	total := value(r.start.DeviceTotal)
	if total == 0 || strings.HasPrefix(r.start.Device, "cpu") {
		return nil
	}
	var used []float64
	for _, s := range slices.Concat(r.snapshots, r.ooms) {
		if s.Reserved != nil && s.Free != nil {
			used = append(used, total-*s.Free-*s.Reserved)
		}
	}
	if len(used) == 0 {
		return nil
	}
	foreign := median(used)
	// The CUDA context and libraries of this process take a few hundred MB.
	if foreign < max(foreignShare*total, 1<<30) {
		return nil
	}
	return &Verdict{"other_processes", "load",
		fmt.Sprintf("%s of the device's %s are in use, but not by this process's allocator", units.Size(foreign),
			units.Size(total)),
		[]string{
			"`dsload doctor` lists the processes on each device: end them, or choose another with CUDA_VISIBLE_DEVICES",
			"a notebook's kernel or a crashed run's children often hold it",
		},
		map[string]float64{"foreign": foreign}}
}

func unstableGradients(r *record) *Verdict {
	var norms []float64
	var finite []reading
	bad, first := 0, int64(math.MaxInt64)
	for _, s := range r.phase("backward") {
		norm, measured, ok := s.gradNorm()
		if !measured {
			continue
		}
		step := int64(0)
		if s.Step != nil {
			step = *s.Step
		}
		if ok {
			norms = append(norms, norm)
			finite = append(finite, reading{step, norm})
		}
		if !ok || value(s.Nonfinite) > 0 {
			bad++
			first = min(first, step)
		}
	}
	spikes := 0
	if len(norms) >= 4 {
		usual := median(norms)
		for _, s := range finite {
			if usual > 0 && s.size > spike*usual {
				spikes++
				first = min(first, s.step)
			}
		}
	}
	if bad == 0 && spikes == 0 {
		return nil
	}
	var what []string
	if spikes > 0 {
		what = append(what, fmt.Sprintf("%d spikes of the gradient norm above %.0f times its median", spikes, spike))
	}
	if bad > 0 {
		what = append(what, fmt.Sprintf("NaN or infinite gradients in %d steps", bad))
	}
	return &Verdict{"unstable_gradients", "backward",
		fmt.Sprintf("%s, first in step %d", strings.Join(what, " and "), first),
		[]string{
			"clip: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
			"lower the learning rate or lengthen the warm-up",
			"bf16 instead of fp16; look at the batch of that step for empty or repeated rows",
		},
		map[string]float64{"spikes": float64(spikes), "nonfinite_steps": float64(bad), "first_step": float64(first)}}
}
