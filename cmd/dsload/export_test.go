package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestExportErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		cause error
		code  int
		says  string
	}{
		{context.Canceled, exitInterrupted, "interrupted; run the same command again"},
		{syscall.ENOSPC, exitLimit, "make room there and run the same command again"},
		{syscall.EFBIG, exitLimit, "ulimit -f"},
	} {
		err := adviseSystem(exportError("data", fmt.Errorf("write train.bin: %w", c.cause)))
		if !strings.HasPrefix(err.Error(), "export data: ") || !strings.Contains(err.Error(), c.says) ||
			exitCode(err) != c.code {
			t.Errorf("%v: %v, exit code %d", c.cause, err, exitCode(err))
		}
	}
}
