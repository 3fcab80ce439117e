//go:build !purego

#include "textflag.h"

// func largest16(p *byte, n int) uint32
TEXT ·largest16(SB), NOSPLIT, $0-20
	MOVQ  p+0(FP), SI
	MOVQ  n+8(FP), CX
	VPXOR Y0, Y0, Y0

loop16:
	VPMAXUW (SI), Y0, Y0
	ADDQ    $32, SI
	SUBQ    $16, CX
	JNZ     loop16

	VEXTRACTI128 $1, Y0, X1
	VPMAXUW      X1, X0, X0
	VPCMPEQD     X1, X1, X1
	VPXOR        X1, X0, X0 // there is an instruction for the smallest of eight
	VPHMINPOSUW  X0, X0
	VMOVD        X0, AX
	NOTL         AX
	MOVWLZX      AX, AX
	VZEROUPPER
	MOVL         AX, ret+16(FP)
	RET

// func largest32(p *byte, n int) uint32
TEXT ·largest32(SB), NOSPLIT, $0-20
	MOVQ  p+0(FP), SI
	MOVQ  n+8(FP), CX
	VPXOR Y0, Y0, Y0

loop32:
	VPMAXUD (SI), Y0, Y0
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     loop32

	VEXTRACTI128 $1, Y0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPMAXUD      X1, X0, X0
	VMOVD        X0, AX
	VZEROUPPER
	MOVL         AX, ret+16(FP)
	RET
