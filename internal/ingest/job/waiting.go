package job

import (
	"sync/atomic"
	"time"
)

// Waiting is how long a stage has waited for the others. Safe for concurrent use.
type Waiting struct{ total atomic.Int64 }

// Since adds the time since start.
func (w *Waiting) Since(start time.Time) { w.total.Add(int64(time.Since(start))) }

// Time returns the sum, over the stage's goroutines.
func (w *Waiting) Time() time.Duration { return time.Duration(w.total.Load()) }
