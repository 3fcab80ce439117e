//go:build !unix

package command

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func endGroup(p *os.Process) { _ = p.Kill() } // it may have ended

func killGroup(p *os.Process) { _ = p.Kill() } // likewise
