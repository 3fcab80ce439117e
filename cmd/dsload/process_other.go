//go:build !unix

package main

import "syscall"

// resizeSignal never comes: these systems have none.
const resizeSignal = syscall.Signal(-1)
