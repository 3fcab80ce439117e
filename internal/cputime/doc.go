// Package cputime measures CPU time, which other programs on the machine change less than wall-clock
// time. It is for benchmarks, and for what a server says of itself.
package cputime
