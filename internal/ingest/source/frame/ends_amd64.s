//go:build !purego

#include "textflag.h"

// func endsAVX2(ends *int32, room int, text *byte, n int) (found, read int)
//
// Where 64 bytes have no line end, what is stored for the first is written over by the next one.
TEXT ·endsAVX2(SB), NOSPLIT, $0-48
	MOVQ ends+0(FP), DI
	MOVQ room+8(FP), BX
	MOVQ text+16(FP), SI
	MOVQ n+24(FP), CX
	MOVQ DI, R11
	LEAQ (DI)(BX*4), BX
	SUBQ $64, CX // the last place for a load
	XORL AX, AX
	MOVL $0x0A, R8
	VMOVD R8, X15
	VPBROADCASTB X15, Y15

turn:
	CMPQ AX, CX
	JGT  done
	VPCMPEQB (SI)(AX*1), Y15, Y0
	VPCMPEQB 32(SI)(AX*1), Y15, Y1
	VPMOVMSKB Y0, R8
	VPMOVMSKB Y1, R9
	SHLQ $32, R9
	ORQ  R9, R8
	POPCNTQ R8, R10
	LEAQ (DI)(R10*4), R12
	CMPQ R12, BX
	JCC  done
	TZCNTQ R8, R9
	ADDL AX, R9
	MOVL R9, (DI)
	CMPQ R10, $1
	JHI  several

next:
	MOVQ R12, DI
	ADDQ $64, AX
	JMP  turn

several:
	ADDQ $4, DI
	BLSRQ R8, R8
	TZCNTQ R8, R9
	ADDL AX, R9
	MOVL R9, (DI)
	DECQ R10
	CMPQ R10, $1
	JHI  several
	JMP  next

done:
	VZEROUPPER
	SUBQ R11, DI
	SHRQ $2, DI
	MOVQ DI, found+32(FP)
	MOVQ AX, read+40(FP)
	RET
