// Package cpu says which vectors the processor and the operating system have.
package cpu
