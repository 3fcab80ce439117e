//go:build !purego

#include "textflag.h"

// func rampAVX2(dst *byte, vectors int, first *[4]uint64, step uint64)
TEXT ·rampAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         vectors+8(FP), CX
	MOVQ         first+16(FP), SI
	VMOVDQU      (SI), Y0
	VPBROADCASTQ step+24(FP), Y4
	VPADDQ       Y4, Y0, Y1
	VPADDQ       Y4, Y1, Y2
	VPADDQ       Y4, Y2, Y3
	SUBQ         $4, CX
	JLT          rest
	VPADDQ       Y4, Y4, Y5
	VPADDQ       Y5, Y5, Y5

four:
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VPADDQ  Y5, Y0, Y0
	VPADDQ  Y5, Y1, Y1
	VPADDQ  Y5, Y2, Y2
	VPADDQ  Y5, Y3, Y3
	ADDQ    $128, DI
	SUBQ    $4, CX
	JGE     four

rest:
	ADDQ    $4, CX
	JZ      done
	VMOVDQU Y0, (DI)
	DECQ    CX
	JZ      done
	VMOVDQU Y1, 32(DI)
	DECQ    CX
	JZ      done
	VMOVDQU Y2, 64(DI)

done:
	VZEROUPPER
	RET

// func widen16to64AVX2(dst, src *byte, n int)
TEXT ·widen16to64AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VPMOVZXWQ (SI), Y0
	VPMOVZXWQ 8(SI), Y1
	VPMOVZXWQ 16(SI), Y2
	VPMOVZXWQ 24(SI), Y3
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y1, 32(DI)
	VMOVDQU   Y2, 64(DI)
	VMOVDQU   Y3, 96(DI)
	ADDQ      $32, SI
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNZ       loop
	VZEROUPPER
	RET

// func widen16to32AVX2(dst, src *byte, n int)
TEXT ·widen16to32AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       loop
	VZEROUPPER
	RET

// func widen32to64AVX2(dst, src *byte, n int)
TEXT ·widen32to64AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VPMOVSXDQ (SI), Y0
	VPMOVSXDQ 16(SI), Y1
	VPMOVSXDQ 32(SI), Y2
	VPMOVSXDQ 48(SI), Y3
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y1, 32(DI)
	VMOVDQU   Y2, 64(DI)
	VMOVDQU   Y3, 96(DI)
	ADDQ      $64, SI
	ADDQ      $128, DI
	SUBQ      $16, CX
	JNZ       loop
	VZEROUPPER
	RET
