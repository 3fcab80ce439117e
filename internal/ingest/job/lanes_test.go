package job

import (
	"context"
	"errors"
	"testing"

	"github.com/dsload/dsload/internal/budget"
)

func leased(t *testing.T, l *budget.Ledger) *Job {
	t.Helper()
	lease, ok := l.TryAcquire(10)
	if !ok {
		t.Fatal("no lease is left")
	}
	return &Job{Lease: lease}
}

// TestLeasesComeBack: whatever becomes of a job, its lease is released.
func TestLeasesComeBack(t *testing.T) {
	ledger, lanes := budget.New(100), NewLanes(1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	if err := lanes.Send(ctx, []*Job{leased(t, ledger), leased(t, ledger)}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := lanes.Send(ctx, []*Job{leased(t, ledger)}); !errors.Is(err, context.Canceled) { // the lanes are full
		t.Fatal(err)
	}
	if n := ledger.Used(); n != 20 {
		t.Errorf("%d bytes are leased after a parcel that was not taken, want 20", n)
	}
	lanes.Close()
	lanes.ReleaseUnfinished()
	for range 2 { // the second finds no room among the idle ones
		lanes.Recycle(leased(t, ledger))
	}
	if n := ledger.Used(); n != 0 {
		t.Errorf("%d bytes are leased at the end", n)
	}
}

// TestRecycledJobsAreEmpty: of the records before nothing is left but buffers of the usual size.
func TestRecycledJobsAreEmpty(t *testing.T) {
	ledger, lanes := budget.New(100), NewLanes(1, 1)
	j := leased(t, ledger)
	j.Raw, j.IDs = make([]byte, MaxRawBytes+1), make([]uint32, 5)
	j.Stopped, j.Mark, j.Answered = true, new(Mark), new(Answered)
	*j.AddDocument(0) = Document{Bad: errors.New("of an earlier record"), Mapped: true}
	lanes.Recycle(j)
	got := lanes.Empty()
	if got != j || len(got.Documents)+len(got.Raw)+len(got.IDs) != 0 || got.Stopped || got.Mark != nil ||
		got.Answered != nil {
		t.Errorf("%+v", got)
	}
	if cap(got.Raw) != 0 || cap(got.IDs) != 5 {
		t.Errorf("buffers of %d bytes and %d ids", cap(got.Raw), cap(got.IDs))
	}
	if d := got.AddDocument(0); d.Bad != nil || d.Mapped {
		t.Errorf("%+v", d)
	}
}
