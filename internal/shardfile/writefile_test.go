package shardfile_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// On a full disk nothing is left, not even the part that was written.
func TestWriteFileLeavesNothingHalfWritten(t *testing.T) {
	fsys := shardtest.New()
	if err := fsys.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	fsys.Limit(10)
	err := shardfile.WriteFile(fsys, "d/x.tmp", "d/x", bytes.NewReader(make([]byte, 20)))
	names, listErr := fsys.ReadDir("d")
	if !errors.Is(err, syscall.ENOSPC) || listErr != nil || len(names) > 0 {
		t.Errorf("%v; left %v, %v", err, names, listErr)
	}
}
