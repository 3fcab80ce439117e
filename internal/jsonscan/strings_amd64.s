//go:build !purego

#include "textflag.h"

DATA ·others+0(SB)/4, $0x22222222
DATA ·others+4(SB)/4, $0x5c5c5c5c
DATA ·others+8(SB)/4, $0x1f1f1f1f
GLOBL ·others(SB), RODATA|NOPTR, $12

// The bytes of A that do not stand for themselves are 0xff in A; B and C are used.
#define OTHERS(A, B, C) \
	VPCMPEQB Y13, A, B \
	VPCMPEQB Y14, A, C \
	VPOR     B, C, B   \
	VPMINUB  Y15, A, C \
	VPCMPEQB C, A, A   \
	VPOR     A, B, A

// func scanAVX2(text *byte, n int, escapes *[256]byte) (end int, escaped bool)
TEXT ·scanAVX2(SB), NOSPLIT, $0-33
	MOVQ text+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ escapes+16(FP), BX
	VPBROADCASTD ·others+0(SB), Y13
	VPBROADCASTD ·others+4(SB), Y14
	VPBROADCASTD ·others+8(SB), Y15
	XORL AX, AX
	XORL R12, R12
	MOVL $64, R10 // bytes looked at in a turn

pair:
	LEAQ 64(AX), DX
	CMPQ DX, CX
	JGT  single
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 32(SI)(AX*1), Y1
	OTHERS(Y0, Y2, Y3)
	OTHERS(Y1, Y4, Y5)
	VPMOVMSKB Y0, R8
	VPMOVMSKB Y1, R9
	SHLQ $32, R9
	ORQ  R9, R8
	JNZ  found
	MOVQ DX, AX
	JMP  pair

single:
	LEAQ 32(AX), DX
	CMPQ DX, CX
	JGT  end
	MOVL $32, R10
	VMOVDQU (SI)(AX*1), Y0
	OTHERS(Y0, Y2, Y3)
	VPMOVMSKB Y0, R8
	TESTL R8, R8
	JNZ  found
	MOVQ DX, AX
	JMP  end

found: // R8 holds the other bytes from AX on, one of the R10 bytes up to DX a bit
	TZCNTQ R8, R9
	LEAQ (AX)(R9*1), R11
	CMPB (SI)(R11*1), $0x5c
	JNE  stop
	INCQ R11
	CMPQ R11, CX
	JEQ  half
	MOVBLZX (SI)(R11*1), R13
	CMPB (BX)(R13*1), $0
	JEQ  half
	MOVL $1, R12
	BTRQ R9, R8
	INCQ R9
	CMPQ R9, R10
	JEQ  over
	BTRQ R9, R8
	TESTQ R8, R8
	JNZ  found
	MOVQ DX, AX
	JMP  pair

over: // the last byte begins an escape
	LEAQ 1(DX), AX
	JMP  pair

half:
	DECQ R11

stop:
	MOVQ R11, AX

end:
	VZEROUPPER
	MOVQ AX, end+24(FP)
	MOVB R12, escaped+32(FP)
	RET

// func unescapeAVX2(dst, raw *byte, n int, escapes *[256]byte) (read, written int)
//
// All 32 bytes are stored, and those after the first backslash are written over by what it stands for and by
// what follows. As much is never written as is read, so that dst needs no more room than raw has.
TEXT ·unescapeAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ raw+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ escapes+24(FP), BX
	VPBROADCASTD ·others+4(SB), Y14
	MOVQ DI, R10
	MOVQ SI, R11
	LEAQ -32(SI)(CX*1), DX // the last place for a load

copy:
	CMPQ SI, DX
	JHI  end
	VMOVDQU (SI), Y0
	VMOVDQU Y0, (DI)
	VPCMPEQB Y14, Y0, Y0
	VPMOVMSKB Y0, R8
	TESTL R8, R8
	JNZ   escape
	ADDQ  $32, SI
	ADDQ  $32, DI
	JMP   copy

escape:
	TZCNTL R8, R8
	ADDQ  R8, SI
	ADDQ  R8, DI
	CMPQ  R8, $31
	JEQ   maybe
	MOVBLZX 1(SI), AX
	MOVBLZX (BX)(AX*1), AX
	TESTL AX, AX
	JZ    end
	MOVB  AX, (DI)
	ADDQ  $2, SI
	INCQ  DI
	JMP   copy

maybe: // what follows the backslash may lie after the end
	CMPQ  SI, DX
	JLS   copy

end:
	VZEROUPPER
	SUBQ R11, SI
	SUBQ R10, DI
	MOVQ SI, read+32(FP)
	MOVQ DI, written+40(FP)
	RET
