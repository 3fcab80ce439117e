//go:build unix

// Package procgroup ends a command together with all that it started. On systems without process groups it
// ends the command alone.
package procgroup

import (
	"os"
	"syscall"
)

// Attributes make a command the leader of a process group.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// End asks the group of a leader to end.
func End(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGTERM) } // it may have ended

// Kill ends the group of a leader.
func Kill(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) } // it may have ended
