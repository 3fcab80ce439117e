//go:build !purego

#include "textflag.h"

// func narrowAVX2(dst *byte, ids *uint32, n int) (top uint32)
TEXT ·narrowAVX2(SB), NOSPLIT, $0-28
	MOVQ  dst+0(FP), DI
	MOVQ  ids+8(FP), SI
	MOVQ  n+16(FP), CX
	VPXOR Y0, Y0, Y0

loop:
	VMOVDQU   (SI), Y1
	VMOVDQU   32(SI), Y2
	VPMAXUD   Y1, Y0, Y0
	VPMAXUD   Y2, Y0, Y0
	VPACKUSDW Y2, Y1, Y1     // of each half: its ids of Y1, then those of Y2
	VPERMQ    $0xD8, Y1, Y1
	VMOVDQU   Y1, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       loop

	VEXTRACTI128 $1, Y0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPMAXUD      X1, X0, X0
	VMOVD        X0, AX
	VZEROUPPER
	MOVL         AX, top+24(FP)
	RET
