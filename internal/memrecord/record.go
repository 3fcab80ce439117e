// Package memrecord reads the memory record of a trainer (JSON Lines, written by the Python
// package's MemoryRecorder and described in python/README.md) and says where memory went, why, and
// what to change.
//
// Each check looks for one cause in the snapshots. dsload.memory.analyze runs 'dsload doctor' for
// them, so the thresholds and the sentences are here alone.
//
// The package holds at most maxSnapshots snapshots of a record, about
// 350 bytes each: of a longer record every second step, then every fourth, and so on, and always
// the snapshots with the highest figures. It holds the last maxErrors out-of-memory errors.
package memrecord

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ErrNotRecord means that a file is not a memory record.
var ErrNotRecord = errors.New("not a memory record")

// maxLineBytes bounds a line: a snapshot takes a few hundred bytes, a report of an out-of-memory
// error a few thousand.
const maxLineBytes = 1 << 20

// Verdict is one cause that was found.
type Verdict struct {
	Kind     string             `json:"kind"`  // such as "leak" or "batch_too_large"
	Phase    string             `json:"phase"` // where it shows: "load", "forward", "backward", "optimizer"
	Message  string             `json:"message"`
	Actions  []string           `json:"actions"` // what to change, the most effective first
	Evidence map[string]float64 `json:"evidence"`
}

// Analysis is the result of reading a record.
type Analysis struct {
	Where       string    `json:"where"` // the phase that ran out of memory, or the one with the highest peak
	OutOfMemory bool      `json:"out_of_memory"`
	Steps       int       `json:"steps"`
	Peak        *float64  `json:"peak"` // bytes; nil if the device does not count
	Verdicts    []Verdict `json:"verdicts"`
	Runs        int       `json:"runs,omitempty"` // number of runs in the record, if several; the last one is analysed
}

// batch is the shape of a batch.
type batch struct {
	Rows        float64  `json:"rows"`
	Length      float64  `json:"length"`
	LabelLength *float64 `json:"label_length"`
}

// line is any line of a record. Fields that a kind of line lacks are nil.
type line struct {
	Type    string   `json:"type"` // "start", "snapshot" or "oom"; other types are ignored
	Phase   string   `json:"phase"`
	Step    *int64   `json:"step"`
	Time    *float64 `json:"time"`    // seconds
	Message string   `json:"message"` // an "oom" has one

	Allocated *float64 `json:"allocated"` // bytes, as all below
	Reserved  *float64 `json:"reserved"`
	Peak      *float64 `json:"peak"`
	Free      *float64 `json:"free"`
	RSS       *float64 `json:"rss"`
	Requested *float64 `json:"requested"`
	Batch     *batch   `json:"batch"`

	GradNorm  json.RawMessage `json:"grad_norm"` // a number, null if it is not finite, absent if it was not measured
	Nonfinite *float64        `json:"nonfinite"`

	Device         string   `json:"device"`
	DeviceTotal    *float64 `json:"device_total"`
	ParameterBytes *float64 `json:"parameter_bytes"`
	VocabSize      *float64 `json:"vocab_size"`
}

// gradNorm returns the gradient norm. measured reports whether the line has one, finite whether it
// is a number.
func (l *line) gradNorm() (norm float64, measured, finite bool) {
	if len(l.GradNorm) == 0 {
		return 0, false, false
	}
	if json.Unmarshal(l.GradNorm, &norm) != nil || bytes.Equal(l.GradNorm, []byte("null")) {
		return 0, true, false
	}
	return norm, true, true
}

// record is a record's lines, sorted by kind.
type record struct {
	start     *line
	snapshots []*line
	ooms      []*line // the last maxErrors out-of-memory errors, of which there are seldom several
	oom       *line   // the last one
	runs      int
	most      int // snapshots that are held: maxSnapshots, but in tests

	steps    stepCounter
	thinning int64               // only multiples of it are kept; 0 or 1 keeps all steps
	extremes [len(figures)]*line // for each figure the first snapshot with the highest
}

// maxSnapshots is how many snapshots of a record are held, maxErrors how many out-of-memory errors.
const (
	maxSnapshots = 1 << 16
	maxErrors    = 1 << 8
)

// figures are what a cause may show in a single snapshot, which thinning must not drop.
var figures = [...]func(*line) float64{
	func(l *line) float64 { return value(l.Peak) },
	func(l *line) float64 { return value(l.RSS) },
	func(l *line) float64 {
		if l.Phase != "forward" || l.Batch == nil {
			return 0
		}
		return l.Batch.Length
	},
	func(l *line) float64 {
		norm, measured, finite := l.gradNorm()
		if measured && (!finite || value(l.Nonfinite) > 0) {
			return math.Inf(1)
		}
		return norm
	},
}

// add keeps a snapshot, unless thinning skips its step.
func (r *record) add(l *line) {
	step := int64(-1)
	if l.Step != nil {
		step = *l.Step
	}
	r.steps.add(step, r.most)
	for i, figure := range figures {
		if r.extremes[i] == nil || figure(l) > figure(r.extremes[i]) {
			r.extremes[i] = l
		}
	}
	if r.skips(l) {
		return
	}
	if len(r.snapshots) == r.most {
		r.thin()
		if r.skips(l) {
			return
		}
	}
	r.snapshots = append(r.snapshots, l)
}

// skips reports whether thinning skips a snapshot's step.
func (r *record) skips(l *line) bool {
	return r.thinning > 1 && l.Step != nil && *l.Step%r.thinning != 0
}

// thin drops every second step until half of the limit is free.
func (r *record) thin() {
	for len(r.snapshots) > r.most/2 {
		r.thinning = max(2, 2*r.thinning)
		kept := r.snapshots[:0]
		for i, l := range r.snapshots {
			if !r.skips(l) && (l.Step != nil || i%2 == 0) {
				kept = append(kept, l)
			}
		}
		clear(r.snapshots[len(kept):])
		r.snapshots = kept
	}
}

// restore puts back the snapshots with the highest figures if thinning dropped them.
func (r *record) restore() {
	if r.thinning == 0 {
		return
	}
	for _, l := range r.extremes {
		if l == nil || slices.Contains(r.snapshots, l) {
			continue
		}
		at := len(r.snapshots)
		for at > 0 && r.snapshots[at-1].Step != nil && *r.snapshots[at-1].Step > *l.Step {
			at--
		}
		r.snapshots = slices.Insert(r.snapshots, at, l)
	}
}

// stepCounter counts distinct steps; it remembers as many as snapshots are held.
type stepCounter struct {
	seen map[int64]bool
	last int64
	more int
}

func (c *stepCounter) add(step int64, most int) {
	switch {
	case c.seen[step]:
	case len(c.seen) < most:
		if c.seen == nil {
			c.seen = map[int64]bool{}
		}
		c.seen[step] = true
	case step != c.last:
		c.more++
	}
	c.last = step
}

// Read analyses the last run of a record. It ignores a truncated last line of a run, as a kill
// leaves it; anything else that is not a record is ErrNotRecord.
func Read(r io.Reader) (*Analysis, error) {
	rec, err := read(r, maxSnapshots)
	if err != nil {
		return nil, err
	}
	return rec.analyse(), nil
}

func read(r io.Reader, most int) (*record, error) {
	rec := record{most: most}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLineBytes)
	broken := 0
	for number := 1; scanner.Scan(); number++ {
		text := scanner.Bytes()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l := new(line)
		err := json.Unmarshal(text, l)
		if broken > 0 && (err != nil || l.Type != "start") {
			return nil, fmt.Errorf("line %d: %w", broken, ErrNotRecord)
		}
		broken = 0
		if err != nil {
			if json.Valid(text) {
				return nil, fmt.Errorf("line %d: %w: %w", number, ErrNotRecord, err)
			}
			broken = number // allowed only for the last line of a run
			continue
		}
		switch l.Type {
		case "":
			return nil, fmt.Errorf("line %d: %w", number, ErrNotRecord)
		case "start":
			rec = record{start: l, runs: rec.runs + 1, most: most}
		case "snapshot":
			rec.add(l)
		case "oom":
			rec.oom = l
			if rec.ooms = append(rec.ooms, l); len(rec.ooms) > maxErrors {
				rec.ooms = slices.Delete(rec.ooms, 0, 1)
			}
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrNotRecord, maxLineBytes)
	} else if err != nil {
		return nil, err
	}
	if rec.start == nil {
		return nil, fmt.Errorf("%w: it has no line of type start", ErrNotRecord)
	}
	rec.restore()
	return &rec, nil
}

func (r *record) analyse() *Analysis {
	a := &Analysis{Where: "unknown", OutOfMemory: r.oom != nil, Verdicts: []Verdict{}}
	var highest, largest *line
	for _, s := range r.snapshots {
		if s.Peak != nil && (highest == nil || *s.Peak > *highest.Peak) {
			highest = s
		}
		if largest == nil || value(s.RSS) > value(largest.RSS) {
			largest = s
		}
	}
	a.Steps = len(r.steps.seen) + r.steps.more
	if r.runs > 1 {
		a.Runs = r.runs
	}
	if highest != nil {
		a.Peak = highest.Peak
	}
	switch {
	case r.oom != nil:
		a.Where = cmp.Or(r.oom.Phase, a.Where)
	case highest != nil:
		a.Where = cmp.Or(highest.Phase, a.Where)
	case largest != nil:
		a.Where = cmp.Or(largest.Phase, a.Where)
	}
	for _, check := range checks {
		if v := check(r); v != nil {
			a.Verdicts = append(a.Verdicts, *v)
		}
	}
	return a
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

func (r *record) phase(name string) []*line {
	var lines []*line
	for _, s := range r.snapshots {
		if s.Phase == name {
			lines = append(lines, s)
		}
	}
	return lines
}

// lastBatch returns the shape of the batch that failed, or of the last one recorded.
func (r *record) lastBatch() batch {
	if r.oom != nil && r.oom.Batch != nil && *r.oom.Batch != (batch{}) {
		return *r.oom.Batch
	}
	for _, l := range slices.Backward(r.snapshots) {
		if b := l.Batch; b != nil && *b != (batch{}) {
			return *b
		}
	}
	return batch{}
}

// resting returns the bytes held between steps: parameters, gradients, optimizer state.
func (r *record) resting() float64 {
	held := value(r.start.ParameterBytes)
	for _, s := range r.phase("load") {
		if s.Allocated != nil {
			held = *s.Allocated
		}
	}
	return held
}

// bytesPerToken returns the most that a successful step took above held, the bytes held between
// steps, per token of its batch with padding.
func (r *record) bytesPerToken(held float64) float64 {
	most := 0.0
	for _, s := range r.snapshots {
		if s.Batch == nil || s.Peak == nil || s.Phase != "forward" && s.Phase != "backward" {
			continue
		}
		if tokens := s.Batch.Rows * cmp.Or(s.Batch.Length, 1); tokens > 0 {
			most = max(most, (*s.Peak-held)/tokens)
		}
	}
	return most
}
