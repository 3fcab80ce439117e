//go:build unix

package main

import "syscall"

// resizeSignal comes when the terminal's window changes.
const resizeSignal = syscall.SIGWINCH
