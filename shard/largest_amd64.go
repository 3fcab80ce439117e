//go:build !purego

package shard

import "golang.org/x/sys/cpu"

// largest16 returns the largest of n uint16 from p, n a positive multiple of 16.
//
//go:noescape
func largest16(p *byte, n int) uint32

// largest32 returns the largest of n uint32 from p, n a positive multiple of 8.
//
//go:noescape
func largest32(p *byte, n int) uint32

// largest returns the largest of the little-endian ids in as many bytes of raw as fit its vectors, and
// how many bytes these are.
func largest(raw []byte, width int) (top uint32, size int) {
	if size = len(raw) &^ 31; size == 0 || !cpu.X86.HasAVX2 {
		return 0, 0
	}
	if width == 2 {
		return largest16(&raw[0], size/2), size
	}
	return largest32(&raw[0], size/4), size
}
