//go:build !purego

#include "textflag.h"

// Twin of keysGo. For each span: the chunk's first 16 bytes, masked to its length, their hash, the line, a prefetch.
//
// func keysAMD64(text *byte, spans *Span, n int, rules *keyRule, recs *record, lines *line)
TEXT ·keysAMD64(SB), NOSPLIT, $0-48
	MOVQ text+0(FP), R11
	MOVQ spans+8(FP), SI
	MOVQ n+16(FP), R12
	MOVQ rules+24(FP), BX
	MOVQ recs+32(FP), DI
	MOVQ lines+40(FP), R13
	MOVQ $0x9E3779B97F4A7C15, R8
	MOVQ $0xC2B2AE3D27D4EB4F, R10
	MOVL $17, R15
	LEAQ (SI)(R12*8), R12

keysLoop:
	CMPQ SI, R12
	JGE  keysDone
	MOVL (SI), CX                // start
	MOVL 4(SI), R9
	SUBL CX, R9                  // length
	CMPL R9, R15
	CMOVLHI R15, R9
	SHLL $5, R9
	ADDQ BX, R9                  // its rule
	MOVQ (R11)(CX*1), AX
	MOVQ 8(R11)(CX*1), DX
	MOVLQSX 28(R9), CX
	ANDQ (R9), AX
	ANDQ 8(R9), DX
	ORQ  CX, AX
	MOVQ AX, (DI)
	MOVQ DX, 8(DI)
	XORQ R8, AX
	XORQ R10, DX
	MULQ DX
	XORQ DX, AX
	ANDL 16(R9), AX
	MOVL 24(R9), CX
	ADDL 20(R9), AX
	PREFETCHT0 (R13)(AX*1)
	MOVQ AX, 16(DI)
	MOVQ CX, 24(DI)
	ADDQ $8, SI
	ADDQ $32, DI
	JMP  keysLoop

keysDone:
	RET

// Twin of probeGo.
//
// func probeAVX2(recs *record, i, n int, lines *line, dst *uint32, spill *uint16, size, head uint32) (next, written int)
TEXT ·probeAVX2(SB), NOSPLIT, $0-72
	MOVQ recs+0(FP), SI
	MOVQ i+8(FP), AX
	MOVQ n+16(FP), R12
	MOVQ lines+24(FP), R13
	MOVQ dst+32(FP), DI
	MOVQ spill+40(FP), R14
	MOVL size+48(FP), R15
	SHLQ $5, AX
	SHLQ $5, R12
	ADDQ SI, R12
	ADDQ AX, SI
	CMPQ SI, R12
	JGE  probeDone

probeLoop:
	MOVQ 16(SI), R8
	VPBROADCASTQ (SI), Y0
	VPBROADCASTQ 8(SI), Y1
	ADDQ R13, R8
	VMOVDQU (R8), Y2
	VPCMPEQQ Y2, Y0, Y0
	VPCMPEQQ Y2, Y1, Y1
	VMOVMSKPD Y0, AX
	VMOVMSKPD Y1, BX
	SHRL $2, BX
	ORL  24(SI), BX
	ANDL BX, AX
	JZ   probeDone
	TZCNTL AX, AX
	LEAQ 32(R8)(AX*8), R9
	VPMOVZXWD (R9), X3
	MOVWLZX 6(R9), CX
	VMOVDQU X3, (DI)
	CMPL CX, $3
	JHI  probeMore

probeNext:
	LEAQ (DI)(CX*4), DI
	ADDQ $32, SI
	CMPQ SI, R12
	JLT  probeLoop

probeDone:
	SUBQ recs+0(FP), SI
	SHRQ $5, SI
	MOVQ SI, next+56(FP)
	SUBQ dst+32(FP), DI
	SHRQ $2, DI
	MOVQ DI, written+64(FP)
	VZEROUPPER
	RET

probeMore:
	CMPL CX, $7
	JHI  probeSpill
	VPMOVZXWD 16(R9), X3
	VMOVDQU X3, 12(DI)
	JMP  probeNext

probeSpill:
	MOVL (R9), R10
	ANDL $0x7FFF, CX
	CMPL CX, $16
	JHI  probeDone
	MOVL head+52(FP), R11
	SUBL R10, R11
	CMPL R11, R15
	JHI  probeDone
	LEAL -1(R15), R11
	ANDL R10, R11
	VPMOVZXWD (R14)(R11*2), Y3
	VPMOVZXWD 16(R14)(R11*2), Y4
	VMOVDQU Y3, (DI)
	VMOVDQU Y4, 32(DI)
	JMP  probeNext

// Twin of classifyGo, 64 bytes at a time: two lookups in tables of 128 bytes.
//
// func classifyVBMI(text *byte, t *Tables, words int, cut, gap, non *uint64)
TEXT ·classifyVBMI(SB), NOSPLIT, $0-48
	MOVQ text+0(FP), SI
	MOVQ t+8(FP), AX
	MOVQ words+16(FP), CX
	MOVQ cut+24(FP), R8
	MOVQ gap+32(FP), R9
	MOVQ non+40(FP), R10
	VMOVDQU64 (AX), Z0
	VMOVDQU64 64(AX), Z1
	VMOVDQU64 128(AX), Z2
	VMOVDQU64 192(AX), Z3
	MOVL $0x7F7F7F7F, DX
	VPBROADCASTD DX, Z7

vbmiLoop:
	VMOVDQU64 -1(SI), Z5
	VMOVDQU64 (SI), Z4
	VPMOVB2M Z5, K2
	VPMOVB2M Z4, K1
	KMOVQ K1, (R10)
	VPERMI2B Z1, Z0, Z5
	VPERMI2B Z3, Z2, Z4
	VMOVDQU8 Z7, K2, Z5
	VMOVDQU8 Z7, K1, Z4
	VPTESTNMB Z4, Z5, K3
	VPMOVB2M Z4, K4
	KMOVQ K3, (R8)
	KMOVQ K4, (R9)
	ADDQ $64, SI
	ADDQ $8, R8
	ADDQ $8, R9
	ADDQ $8, R10
	DECQ CX
	JNZ  vbmiLoop
	VZEROUPPER
	RET

// SEL puts into acc the entries of row n (of 16) of a table that the bytes of x select: x^n<<4 is below 16 for them, and the saturating
// addition keeps all others, and bytes of 0x80 and above, from being used.
#define SEL(table, n, x, acc) \
	VBROADCASTI128 (n*16)(table), Y10; \
	VBROADCASTI128 (n*16)(R11), Y11; \
	VPXOR x, Y11, Y11; \
	VPADDUSB Y15, Y11, Y11; \
	VPSHUFB Y11, Y10, Y10; \
	VPOR Y10, acc, acc

#define ROWS(table, x, acc) \
	SEL(table, 0, x, acc); \
	SEL(table, 1, x, acc); \
	SEL(table, 2, x, acc); \
	SEL(table, 3, x, acc); \
	SEL(table, 4, x, acc); \
	SEL(table, 5, x, acc); \
	SEL(table, 6, x, acc); \
	SEL(table, 7, x, acc)

// classes computes, for the 32 bytes at off(SI): Y4 = From of the bytes before, Y6 = To.
#define HALF(off) \
	VMOVDQU off-1(SI), Y5; \
	VMOVDQU off(SI), Y7; \
	VPXOR Y4, Y4, Y4; \
	VPXOR Y6, Y6, Y6; \
	ROWS(AX, Y5, Y4); \
	ROWS(BX, Y7, Y6); \
	VPMOVMSKB Y7, R13; \
	VPCMPGTB Y5, Y14, Y8; \
	VPAND Y13, Y8, Y8; \
	VPOR Y8, Y4, Y4; \
	VPCMPGTB Y7, Y14, Y8; \
	VPAND Y13, Y8, Y8; \
	VPOR Y8, Y6, Y6; \
	VPAND Y4, Y6, Y5; \
	VPCMPEQB Y14, Y5, Y5; \
	VPMOVMSKB Y5, R14; \
	VPMOVMSKB Y6, R15

// func classifyAVX2(text *byte, t *Tables, words int, cut, gap, non *uint64, rows *[128]byte)
TEXT ·classifyAVX2(SB), NOSPLIT, $0-56
	MOVQ text+0(FP), SI
	MOVQ t+8(FP), AX
	MOVQ words+16(FP), CX
	MOVQ cut+24(FP), R8
	MOVQ gap+32(FP), R9
	MOVQ non+40(FP), R10
	MOVQ rows+48(FP), R11
	LEAQ 128(AX), BX
	MOVL $0x7F7F7F7F, DX
	VMOVD DX, X13
	VPBROADCASTD X13, Y13
	MOVL $0x70707070, DX
	VMOVD DX, X15
	VPBROADCASTD X15, Y15
	VPXOR Y14, Y14, Y14

avx2Loop:
	HALF(0)
	MOVL R13, (R10)
	MOVL R14, (R8)
	MOVL R15, (R9)
	HALF(32)
	MOVL R13, 4(R10)
	MOVL R14, 4(R8)
	MOVL R15, 4(R9)
	ADDQ $64, SI
	ADDQ $8, R8
	ADDQ $8, R9
	ADDQ $8, R10
	DECQ CX
	JNZ  avx2Loop
	VZEROUPPER
	RET
