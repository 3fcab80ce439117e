//go:build unix

package main

import (
	"os"
	"syscall"
)

// ownGroup makes a command the leader of a process group, so that killGroup ends what it started too.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // it may have ended
