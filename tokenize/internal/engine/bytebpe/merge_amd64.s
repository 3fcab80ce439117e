//go:build !purego

#include "textflag.h"

// One merge of the word whose ranks are in Z, whose live positions are LIVE and whose symbols begin at SYM(DI). A word that has no merge left goes through the
// motions with empty masks. In: SI tables, R10 disp, R11 slots, R12 bshift, R13 sshift, Z17 = -1. R8 collects whether any word merged.
#define MERGE_STEP(Z, Y, LIVE, SYM) \
	VEXTRACTI64X4 $1, Z, Y8      \
	VPMINUD Y8, Y, Y8            \
	VEXTRACTI128 $1, Y8, X9      \
	VPMINUD X9, X8, X8           \
	VPSHUFD $0x4e, X8, X9        \
	VPMINUD X9, X8, X8           \
	VPSHUFD $0xb1, X8, X9        \
	VPMINUD X9, X8, X8           \
	VMOVD X8, AX                 \
	CMPL AX, $0x3fffffc0         \
	SBBL R15, R15                \
	ORL  R15, R8                 \
	ANDL R15, AX                 \
	MOVL AX, CX                  \
	ANDL $63, AX                 \
	SHRL $6, CX                  \
	MOVL 56(SI), BX              \
	ADDL CX, BX                  \
	MOVQ 32(SI), DX              \
	TESTQ DX, DX                 \
	JZ   2(PC)                   \
	MOVL (DX)(CX*4), BX          \
	MOVL LIVE, R9                \
	MOVL $-2, DX                 \
	SHLXL AX, DX, DX             \
	ANDL R9, DX                  \
	BLSIL DX, R14                \
	ANDL R15, R14                \
	KMOVW R14, K3                \
	VMOVDQA32 Z17, K3, Z          \
	BLSRL DX, DX                 \
	TZCNTL DX, CX                \
	BZHIL AX, R9, DX             \
	ANDNL R9, R14, R9            \
	MOVL R9, LIVE                \
	ORL  $1, DX                  \
	LZCNTL DX, DX                \
	XORL $31, DX                 \
	MOVL R15, R14                \
	ANDL $1, R14                 \
	SHLXL DX, R14, R15           \
	SHLXL AX, R14, R14           \
	KMOVW R14, K1                \
	KMOVW R15, K2                \
	MOVL BX, SYM(DI)(AX*4)       \
	MOVL SYM(DI)(CX*4), R14      \
	MOVL SYM(DI)(DX*4), R15      \
	MOVQ BX, CX                  \
	SHLQ $20, CX                 \
	ORQ  CX, R14                 \
	SHLQ $20, R15                \
	ORQ  BX, R15                 \
	MOVQ R14, BX                 \
	IMULQ 40(SI), BX             \
	SHRXQ R12, BX, CX            \
	MOVWLZX (R10)(CX*2), CX      \
	SHRQ $8, BX                  \
	IMULL BX, CX                 \
	SHRXL R13, CX, CX            \
	MOVQ (R11)(CX*8), CX         \
	MOVL CX, BX                  \
	ANDL $0xffffff, BX           \
	SHRQ $24, CX                 \
	CMPQ CX, R14                 \
	MOVL $0xffffff, R9           \
	CMOVLNE R9, BX               \
	SHLL $6, BX                  \
	ORL  AX, BX                  \
	VPBROADCASTD BX, K1, Z       \
	MOVQ R15, BX                 \
	IMULQ 40(SI), BX             \
	SHRXQ R12, BX, R14           \
	MOVWLZX (R10)(R14*2), R14    \
	SHRQ $8, BX                  \
	IMULL BX, R14                \
	SHRXL R13, R14, R14          \
	MOVQ (R11)(R14*8), R14       \
	MOVL R14, BX                 \
	ANDL $0xffffff, BX           \
	SHRQ $24, R14                \
	CMPQ R14, R15                \
	CMOVLNE R9, BX               \
	SHLL $6, BX                  \
	ORL  DX, BX                  \
	VPBROADCASTD BX, K2, Z

// Symbols and initial ranks of the word at 8*W of the jobs (begin and length, 32 bits each).
#define MERGE_BEGIN(Z, LIVE, SYM, JOB) \
	MOVL JOB(R8), AX             \
	MOVL JOB+4(R8), CX           \
	VPMOVZXBD (R9)(AX*1), Z18     \
	MOVQ 0(SI), R10              \
	KMOVW K7, K1                 \
	VPGATHERDD (R10)(Z18*4), K1, Z19 \
	VMOVDQU32 Z19, SYM+4(DI)      \
	MOVL $0xfffff, DX            \
	MOVL DX, SYM(DI)             \
	MOVL DX, SYM+4(DI)(CX*4)     \
	MOVL $1, DX                  \
	SHLXL CX, DX, DX             \
	SUBL $2, DX                  \
	KMOVW DX, K1                 \
	KMOVW DX, K2                 \
	VALIGND $15, Z18, Z18, Z19      \
	VPSLLD $8, Z19, Z19            \
	VPORD  Z18, Z19, Z19            \
	VMOVDQA32 Z17, Z              \
	MOVQ 8(SI), R10              \
	VPGATHERDD (R10)(Z19*4), K2, Z20 \
	VPSLLD $6, Z20, Z20          \
	VPORD  Z16, Z20, K1, Z        \
	ADDQ $2, CX                  \
	MOVL $-1, DX                 \
	BZHIL CX, DX, DX             \
	MOVL DX, LIVE

#define MERGE_END(LIVE, SYM, JOB, OUT, STARTS) \
	MOVL LIVE, AX                \
	MOVL JOB+4(R8), CX           \
	SHRL $1, AX                  \
	BZHIL CX, AX, AX             \
	KMOVW AX, K1                 \
	VMOVDQU32 SYM+4(DI), Z18      \
	VPCOMPRESSD Z18, K1, Z18       \
	VMOVDQU32 Z18, OUT(R9)        \
	MOVL AX, STARTS(R9)          \
	POPCNTL AX, AX               \
	MOVL AX, STARTS+32(R9)

// func mergeAVX512(t *mergeTables, buf *byte, jobs *mergeJobs, n int, sym *uint32, out *mergeResults)
//
// The array merger of bpe.go on the first n, at least one, of eight words of 1..16 bytes at once, each with 16 readable bytes. A merge is one long chain
// of dependent loads, so some words take little longer than one; no branch but the loop's and those on n depends on data. The ranks of a word are the
// lanes of one register, its live positions are bits with a sentinel on both sides; sym has room for 72 symbols a word.
TEXT ·mergeAVX512(SB), NOSPLIT, $32-48
	MOVQ t+0(FP), SI
	MOVQ buf+8(FP), R9
	MOVQ jobs+16(FP), R8
	MOVQ sym+32(FP), DI
	VPMOVZXBD ·iota64+0(SB), Z16
	VPTERNLOGD $0xff, Z17, Z17, Z17
	KXNORW K7, K7, K7
	MERGE_BEGIN(Z0, 0(SP), 0, 0)
	CMPQ n+24(FP), $1
	JLE  merge_begun
	MERGE_BEGIN(Z1, 4(SP), 288, 8)
	CMPQ n+24(FP), $2
	JLE  merge_begun
	MERGE_BEGIN(Z2, 8(SP), 576, 16)
	CMPQ n+24(FP), $3
	JLE  merge_begun
	MERGE_BEGIN(Z3, 12(SP), 864, 24)
	CMPQ n+24(FP), $4
	JLE  merge_begun
	MERGE_BEGIN(Z4, 16(SP), 1152, 32)
	CMPQ n+24(FP), $5
	JLE  merge_begun
	MERGE_BEGIN(Z5, 20(SP), 1440, 40)
	CMPQ n+24(FP), $6
	JLE  merge_begun
	MERGE_BEGIN(Z6, 24(SP), 1728, 48)
	CMPQ n+24(FP), $7
	JLE  merge_begun
	MERGE_BEGIN(Z7, 28(SP), 2016, 56)

merge_begun:
	MOVQ 16(SI), R10
	MOVQ 24(SI), R11
	MOVL 48(SI), R12
	MOVL 52(SI), R13

merge_all:
	XORL R8, R8
	MERGE_STEP(Z0, Y0, 0(SP), 0)
	CMPQ n+24(FP), $1
	JLE  merge_next
	MERGE_STEP(Z1, Y1, 4(SP), 288)
	CMPQ n+24(FP), $2
	JLE  merge_next
	MERGE_STEP(Z2, Y2, 8(SP), 576)
	CMPQ n+24(FP), $3
	JLE  merge_next
	MERGE_STEP(Z3, Y3, 12(SP), 864)
	CMPQ n+24(FP), $4
	JLE  merge_next
	MERGE_STEP(Z4, Y4, 16(SP), 1152)
	CMPQ n+24(FP), $5
	JLE  merge_next
	MERGE_STEP(Z5, Y5, 20(SP), 1440)
	CMPQ n+24(FP), $6
	JLE  merge_next
	MERGE_STEP(Z6, Y6, 24(SP), 1728)
	CMPQ n+24(FP), $7
	JLE  merge_next
	MERGE_STEP(Z7, Y7, 28(SP), 2016)

merge_next:
	TESTL R8, R8
	JNZ  merge_all

	MOVQ jobs+16(FP), R8
	MOVQ out+40(FP), R9
	MERGE_END(0(SP), 0, 0, 0, 512)
	CMPQ n+24(FP), $1
	JLE  merge_end
	MERGE_END(4(SP), 288, 8, 64, 516)
	CMPQ n+24(FP), $2
	JLE  merge_end
	MERGE_END(8(SP), 576, 16, 128, 520)
	CMPQ n+24(FP), $3
	JLE  merge_end
	MERGE_END(12(SP), 864, 24, 192, 524)
	CMPQ n+24(FP), $4
	JLE  merge_end
	MERGE_END(16(SP), 1152, 32, 256, 528)
	CMPQ n+24(FP), $5
	JLE  merge_end
	MERGE_END(20(SP), 1440, 40, 320, 532)
	CMPQ n+24(FP), $6
	JLE  merge_end
	MERGE_END(24(SP), 1728, 48, 384, 536)
	CMPQ n+24(FP), $7
	JLE  merge_end
	MERGE_END(28(SP), 2016, 56, 448, 540)

merge_end:
	VZEROUPPER
	RET

// MERGE_STEP for a word of up to 32 bytes: the ranks of positions 16 and up are in ZB, and live positions are bits of 64-bit words.
#define WIDE_STEP(ZA, ZB, LIVE, SYM) \
	VPMINUD ZA, ZB, Z8           \
	VEXTRACTI64X4 $1, Z8, Y9     \
	VPMINUD Y9, Y8, Y8           \
	VEXTRACTI128 $1, Y8, X9      \
	VPMINUD X9, X8, X8           \
	VPSHUFD $0x4e, X8, X9        \
	VPMINUD X9, X8, X8           \
	VPSHUFD $0xb1, X8, X9        \
	VPMINUD X9, X8, X8           \
	VMOVD X8, AX                 \
	CMPL AX, $0x3fffffc0         \
	SBBQ R15, R15                \
	ORQ  R15, R8                 \
	ANDL R15, AX                 \
	MOVL AX, CX                  \
	ANDL $63, AX                 \
	SHRL $6, CX                  \
	MOVL 56(SI), BX              \
	ADDL CX, BX                  \
	MOVQ 32(SI), DX              \
	TESTQ DX, DX                 \
	JZ   2(PC)                   \
	MOVL (DX)(CX*4), BX          \
	MOVQ LIVE, R9                \
	MOVQ $-2, DX                 \
	SHLXQ AX, DX, DX             \
	ANDQ R9, DX                  \
	BLSIQ DX, R14                \
	ANDQ R15, R14                \
	KMOVW R14, K3                \
	RORXQ $16, R14, CX           \
	KMOVW CX, K4                 \
	VMOVDQA32 Z17, K3, ZA        \
	VMOVDQA32 Z17, K4, ZB        \
	BLSRQ DX, DX                 \
	TZCNTQ DX, CX                \
	BZHIQ AX, R9, DX             \
	ANDNQ R9, R14, R9            \
	MOVQ R9, LIVE                \
	ORQ  $1, DX                  \
	LZCNTQ DX, DX                \
	XORQ $63, DX                 \
	MOVQ R15, R14                \
	ANDL $1, R14                 \
	SHLXQ DX, R14, R15           \
	SHLXQ AX, R14, R14           \
	KMOVW R14, K1                \
	KMOVW R15, K2                \
	RORXQ $16, R14, R14          \
	RORXQ $16, R15, R15          \
	KMOVW R14, K5                \
	KMOVW R15, K6                \
	MOVL BX, SYM(DI)(AX*4)       \
	MOVL SYM(DI)(CX*4), R14      \
	MOVL SYM(DI)(DX*4), R15      \
	MOVQ BX, CX                  \
	SHLQ $20, CX                 \
	ORQ  CX, R14                 \
	SHLQ $20, R15                \
	ORQ  BX, R15                 \
	MOVQ R14, BX                 \
	IMULQ 40(SI), BX             \
	SHRXQ R12, BX, CX            \
	MOVWLZX (R10)(CX*2), CX      \
	SHRQ $8, BX                  \
	IMULL BX, CX                 \
	SHRXL R13, CX, CX            \
	MOVQ (R11)(CX*8), CX         \
	MOVL CX, BX                  \
	ANDL $0xffffff, BX           \
	SHRQ $24, CX                 \
	CMPQ CX, R14                 \
	MOVL $0xffffff, R9           \
	CMOVLNE R9, BX               \
	SHLL $6, BX                  \
	ORL  AX, BX                  \
	VPBROADCASTD BX, K1, ZA      \
	VPBROADCASTD BX, K5, ZB      \
	MOVQ R15, BX                 \
	IMULQ 40(SI), BX             \
	SHRXQ R12, BX, R14           \
	MOVWLZX (R10)(R14*2), R14    \
	SHRQ $8, BX                  \
	IMULL BX, R14                \
	SHRXL R13, R14, R14          \
	MOVQ (R11)(R14*8), R14       \
	MOVL R14, BX                 \
	ANDL $0xffffff, BX           \
	SHRQ $24, R14                \
	CMPQ R14, R15                \
	CMOVLNE R9, BX               \
	SHLL $6, BX                  \
	ORL  DX, BX                  \
	VPBROADCASTD BX, K2, ZA      \
	VPBROADCASTD BX, K6, ZB

#define WIDE_BEGIN(ZA, ZB, LIVE, SYM, JOB) \
	MOVL JOB(R8), AX             \
	MOVL JOB+4(R8), CX           \
	VPMOVZXBD (R9)(AX*1), Z18    \
	VPMOVZXBD 16(R9)(AX*1), Z21  \
	MOVQ 0(SI), R10              \
	KMOVW K7, K1                 \
	VPGATHERDD (R10)(Z18*4), K1, Z19 \
	VMOVDQU32 Z19, SYM+4(DI)     \
	KMOVW K7, K1                 \
	VPGATHERDD (R10)(Z21*4), K1, Z19 \
	VMOVDQU32 Z19, SYM+68(DI)    \
	MOVL $0xfffff, DX            \
	MOVL DX, SYM(DI)             \
	MOVL DX, SYM+4(DI)(CX*4)     \
	MOVQ $1, DX                  \
	SHLXQ CX, DX, DX             \
	SUBQ $2, DX                  \
	KMOVW DX, K1                 \
	KMOVW DX, K2                 \
	SHRQ $16, DX                 \
	KMOVW DX, K3                 \
	KMOVW DX, K4                 \
	VALIGND $15, Z18, Z18, Z19   \
	VPSLLD $8, Z19, Z19          \
	VPORD  Z18, Z19, Z19         \
	VALIGND $15, Z18, Z21, Z22   \
	VPSLLD $8, Z22, Z22          \
	VPORD  Z21, Z22, Z22         \
	VMOVDQA32 Z17, ZA            \
	VMOVDQA32 Z17, ZB            \
	MOVQ 8(SI), R10              \
	VPGATHERDD (R10)(Z19*4), K2, Z20 \
	VPSLLD $6, Z20, Z20          \
	VPORD  Z16, Z20, K1, ZA      \
	VPGATHERDD (R10)(Z22*4), K4, Z20 \
	VPSLLD $6, Z20, Z20          \
	VPORD  Z23, Z20, K3, ZB      \
	ADDQ $2, CX                  \
	MOVQ $-1, DX                 \
	BZHIQ CX, DX, DX             \
	MOVQ DX, LIVE

#define WIDE_END(LIVE, SYM, JOB, OUT, STARTS) \
	MOVQ LIVE, AX                \
	MOVL JOB+4(R8), CX           \
	SHRQ $1, AX                  \
	BZHIQ CX, AX, AX             \
	MOVWLZX AX, DX               \
	KMOVW DX, K1                 \
	POPCNTL DX, DX               \
	VMOVDQU32 SYM+4(DI), Z18     \
	VPCOMPRESSD Z18, K1, Z18     \
	VMOVDQU32 Z18, OUT(R9)       \
	MOVL AX, CX                  \
	SHRL $16, CX                 \
	KMOVW CX, K1                 \
	VMOVDQU32 SYM+68(DI), Z18    \
	VPCOMPRESSD Z18, K1, Z18     \
	VMOVDQU32 Z18, OUT(R9)(DX*4) \
	MOVL AX, STARTS(R9)          \
	POPCNTL AX, AX               \
	MOVL AX, STARTS+16(R9)

// func mergeWideAVX512(t *mergeTables, buf *byte, jobs *wideJobs, sym *uint32, out *wideResults)
//
// mergeAVX512 for four words of 1..32 bytes, each with 32 readable bytes, in two registers a word.
TEXT ·mergeWideAVX512(SB), NOSPLIT, $32-40
	MOVQ t+0(FP), SI
	MOVQ buf+8(FP), R9
	MOVQ jobs+16(FP), R8
	MOVQ sym+24(FP), DI
	VPMOVZXBD ·iota64+0(SB), Z16
	VPMOVZXBD ·iota64+16(SB), Z23
	VPTERNLOGD $0xff, Z17, Z17, Z17
	KXNORW K7, K7, K7
	WIDE_BEGIN(Z0, Z1, 0(SP), 0, 0)
	WIDE_BEGIN(Z2, Z3, 8(SP), 288, 8)
	WIDE_BEGIN(Z4, Z5, 16(SP), 576, 16)
	WIDE_BEGIN(Z6, Z7, 24(SP), 864, 24)
	MOVQ 16(SI), R10
	MOVQ 24(SI), R11
	MOVL 48(SI), R12
	MOVL 52(SI), R13

wide_all:
	XORL R8, R8
	WIDE_STEP(Z0, Z1, 0(SP), 0)
	WIDE_STEP(Z2, Z3, 8(SP), 288)
	WIDE_STEP(Z4, Z5, 16(SP), 576)
	WIDE_STEP(Z6, Z7, 24(SP), 864)
	TESTQ R8, R8
	JNZ  wide_all

	MOVQ jobs+16(FP), R8
	MOVQ out+32(FP), R9
	WIDE_END(0(SP), 0, 0, 0, 512)
	WIDE_END(8(SP), 288, 8, 128, 516)
	WIDE_END(16(SP), 576, 16, 256, 520)
	WIDE_END(24(SP), 864, 24, 384, 524)
	VZEROUPPER
	RET
