//go:build !unix

package main

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) { _ = p.Kill() } // it may have ended

// resizeSignal never comes: these systems have none.
const resizeSignal = syscall.Signal(-1)

func peakOfEnded(*os.ProcessState) int64 { return 0 }

func ownPeak() int64 { return 0 }
