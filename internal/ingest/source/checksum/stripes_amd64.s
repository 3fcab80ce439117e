//go:build !purego

#include "textflag.h"

// func accumulateAVX2(acc *[8]uint64, p, secret *byte, stripes int)
TEXT ·accumulateAVX2(SB), NOSPLIT, $0-32
	MOVQ    acc+0(FP), DI
	MOVQ    p+8(FP), SI
	MOVQ    secret+16(FP), DX
	MOVQ    stripes+24(FP), CX
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1

loop:
	VMOVDQU  (SI), Y2
	VMOVDQU  32(SI), Y3
	VPXOR    (DX), Y2, Y4
	VPXOR    32(DX), Y3, Y5
	VPSRLQ   $32, Y4, Y6
	VPSRLQ   $32, Y5, Y7
	VPMULUDQ Y4, Y6, Y4
	VPMULUDQ Y5, Y7, Y5
	VPSHUFD  $0x4E, Y2, Y2  // each lane adds its neighbour's text
	VPSHUFD  $0x4E, Y3, Y3
	VPADDQ   Y2, Y0, Y0
	VPADDQ   Y3, Y1, Y1
	VPADDQ   Y4, Y0, Y0
	VPADDQ   Y5, Y1, Y1
	ADDQ     $64, SI
	ADDQ     $8, DX
	DECQ     CX
	JNZ      loop

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VZEROUPPER
	RET
