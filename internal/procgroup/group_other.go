//go:build !unix

package procgroup

import (
	"os"
	"syscall"
)

// Attributes are none.
func Attributes() *syscall.SysProcAttr { return nil }

// End ends the leader.
func End(leader *os.Process) { _ = leader.Kill() } // it may have ended

// Kill ends the leader.
func Kill(leader *os.Process) { _ = leader.Kill() } // it may have ended
