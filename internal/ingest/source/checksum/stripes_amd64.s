//go:build !purego

#include "textflag.h"

// The N-th stripe from SI on is taken in with its part of the secret from DX on: each lane adds its neighbour's text.
#define STRIPE(N) \
	VMOVDQU  64*N(SI), Y2       \
	VMOVDQU  64*N+32(SI), Y3    \
	VPXOR    8*N(DX), Y2, Y4    \
	VPXOR    8*N+32(DX), Y3, Y5 \
	VPSRLQ   $32, Y4, Y6        \
	VPSRLQ   $32, Y5, Y7        \
	VPMULUDQ Y4, Y6, Y4         \
	VPMULUDQ Y5, Y7, Y5         \
	VPSHUFD  $0x4E, Y2, Y2      \
	VPSHUFD  $0x4E, Y3, Y3      \
	VPADDQ   Y2, Y0, Y0         \
	VPADDQ   Y3, Y1, Y1         \
	VPADDQ   Y4, Y0, Y0         \
	VPADDQ   Y5, Y1, Y1

// func accumulateAVX2(acc *[8]uint64, p, secret *byte, stripes int)
TEXT ·accumulateAVX2(SB), NOSPLIT, $0-32
	MOVQ    acc+0(FP), DI
	MOVQ    p+8(FP), SI
	MOVQ    secret+16(FP), BX
	MOVQ    stripes+24(FP), CX
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	MOVL    $0x9E3779B1, AX
	VMOVQ   AX, X15
	VPBROADCASTQ X15, Y15
	LEAQ    128(BX), R8 // what a block ends with

block:
	MOVQ BX, DX
	CMPQ CX, $16
	JLT  rest

stripes:
	STRIPE(0)
	STRIPE(1)
	STRIPE(2)
	STRIPE(3)
	ADDQ $256, SI
	ADDQ $32, DX
	CMPQ DX, R8
	JNE  stripes

	VPSRLQ   $47, Y0, Y2
	VPSRLQ   $47, Y1, Y3
	VPXOR    Y0, Y2, Y0
	VPXOR    Y1, Y3, Y1
	VPXOR    (DX), Y0, Y0
	VPXOR    32(DX), Y1, Y1
	VPSRLQ   $32, Y0, Y2
	VPSRLQ   $32, Y1, Y3
	VPMULUDQ Y15, Y0, Y0
	VPMULUDQ Y15, Y1, Y1
	VPMULUDQ Y15, Y2, Y2
	VPMULUDQ Y15, Y3, Y3
	VPSLLQ   $32, Y2, Y2
	VPSLLQ   $32, Y3, Y3
	VPADDQ   Y2, Y0, Y0
	VPADDQ   Y3, Y1, Y1
	SUBQ     $16, CX
	JMP      block

rest:
	TESTQ CX, CX
	JZ    done
	STRIPE(0)
	ADDQ  $64, SI
	ADDQ  $8, DX
	DECQ  CX
	JMP   rest

done:
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VZEROUPPER
	RET
