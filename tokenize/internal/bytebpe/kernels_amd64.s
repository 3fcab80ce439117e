//go:build !purego

#include "textflag.h"

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET

DATA ·multipliers+0(SB)/8, $0x9e3779b97f4a7c15
DATA ·multipliers+8(SB)/8, $0xc2b2ae3d27d4eb4f
GLOBL ·multipliers(SB), RODATA|NOPTR, $16

// func prepareBMI2(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probes)
//
// A word a turn, without branches: length -> kind -> masked key -> hash -> line, which is prefetched.
TEXT ·prepareBMI2(SB), NOSPLIT, $0-48
	MOVQ pos+0(FP), R8
	MOVQ n+8(FP), CX
	MOVQ buf+16(FP), SI
	MOVQ kinds+24(FP), DI
	MOVQ lines+32(FP), R9
	MOVQ out+40(FP), R10
	LEAQ 1152(R10), R15 // lines, after 72 pairs
	MOVL $17, R13
	MOVWQZX (R8), AX

prepare_word:
	MOVWQZX 2(R8), BX
	MOVQ    BX, DX
	SUBQ    AX, DX
	CMPQ    DX, R13
	CMOVQGT R13, DX
	SHLQ    $5, DX
	ADDQ    DI, DX
	MOVQ    (SI)(AX*1), R11
	MOVQ    8(SI)(AX*1), R12
	ANDQ    (DX), R11
	ANDQ    8(DX), R12
	MOVQ    R11, R14
	IMULQ   ·multipliers+0(SB), R14
	MOVQ    R12, AX
	IMULQ   ·multipliers+8(SB), AX
	ADDQ    AX, R14
	MOVL    24(DX), AX
	SHRXQ   AX, R14, R14
	ANDQ    $-64, R14
	MOVL    28(DX), AX
	ADDQ    AX, R14
	PREFETCHT0 (R9)(R14*1)
	MOVQ    16(DX), AX
	MOVQ    R11, (R10)
	MOVL    R14, (R15)
	MOVL    AX, DX
	ANDL    $15, DX
	MOVL    DX, 288(R15)
	ANDQ    R11, AX
	ORQ     R12, AX
	MOVQ    AX, 8(R10)
	ADDQ    $16, R10
	ADDQ    $4, R15
	ADDQ    $2, R8
	MOVQ    BX, AX
	DECQ    CX
	JNZ     prepare_word
	RET

DATA ·pairOrder+0(SB)/8, $0
DATA ·pairOrder+8(SB)/8, $1
DATA ·pairOrder+16(SB)/8, $8
DATA ·pairOrder+24(SB)/8, $9
DATA ·pairOrder+32(SB)/8, $2
DATA ·pairOrder+40(SB)/8, $3
DATA ·pairOrder+48(SB)/8, $10
DATA ·pairOrder+56(SB)/8, $11
DATA ·pairOrder+64(SB)/8, $4
DATA ·pairOrder+72(SB)/8, $5
DATA ·pairOrder+80(SB)/8, $12
DATA ·pairOrder+88(SB)/8, $13
DATA ·pairOrder+96(SB)/8, $6
DATA ·pairOrder+104(SB)/8, $7
DATA ·pairOrder+112(SB)/8, $14
DATA ·pairOrder+120(SB)/8, $15
GLOBL ·pairOrder(SB), RODATA|NOPTR, $128

// func prepareAVX512(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probes)
//
// Eight words a turn; up to seven words past n are prepared too, from whatever positions lie there. Lanes: the text of words 0 2 4 6 and
// 1 3 5 7, whose low and high halves interleave to words in order.
TEXT ·prepareAVX512(SB), NOSPLIT, $0-48
	MOVQ pos+0(FP), R8
	MOVQ n+8(FP), CX
	MOVQ buf+16(FP), SI
	MOVQ kinds+24(FP), DI
	MOVQ lines+32(FP), R9
	MOVQ out+40(FP), R10
	LEAQ 1152(R10), R15
	MOVL $1, AX
	VPBROADCASTQ AX, Z16
	VPTERNLOGD $0xff, Z17, Z17, Z17   // -1
	MOVL $64, AX
	VPBROADCASTQ AX, Z18
	MOVL $8, AX
	VPBROADCASTQ AX, Z19
	MOVL $16, AX
	VPBROADCASTQ AX, Z20
	VPBROADCASTQ ·multipliers+0(SB), Z21
	VPBROADCASTQ ·multipliers+8(SB), Z22
	MOVQ $-64, AX
	VPBROADCASTQ AX, Z23
	MOVL (8*32+24)(DI), AX
	VPBROADCASTQ AX, Z24              // shift of A
	MOVL (9*32+24)(DI), AX
	VPBROADCASTQ AX, Z25              // shift of B
	MOVL (9*32+28)(DI), AX
	VPBROADCASTQ AX, Z26              // base of B
	MOVL (17*32+28)(DI), AX
	VPBROADCASTQ AX, Z27              // line of longer words
	MOVL $15, AX
	VPBROADCASTD AX, Y28
	VMOVDQU64 ·pairOrder+0(SB), Z29
	VMOVDQU64 ·pairOrder+64(SB), Z30
	VPXORQ Z31, Z31, Z31

prepare_eight:
	MOVWQZX (R8), AX
	MOVWQZX 2(R8), BX
	VMOVDQU (SI)(AX*1), X0
	VMOVDQU (SI)(BX*1), X1
	MOVWQZX 4(R8), AX
	MOVWQZX 6(R8), BX
	VINSERTI128 $1, (SI)(AX*1), Y0, Y0
	VINSERTI128 $1, (SI)(BX*1), Y1, Y1
	MOVWQZX 8(R8), AX
	MOVWQZX 10(R8), BX
	VINSERTI32X4 $2, (SI)(AX*1), Z0, Z0
	VINSERTI32X4 $2, (SI)(BX*1), Z1, Z1
	MOVWQZX 12(R8), AX
	MOVWQZX 14(R8), BX
	VINSERTI32X4 $3, (SI)(AX*1), Z0, Z0
	VINSERTI32X4 $3, (SI)(BX*1), Z1, Z1
	VPMOVZXWQ (R8), Z2
	VPMOVZXWQ 2(R8), Z3
	VPSUBQ Z2, Z3, Z2                 // lengths
	VPSLLQ $3, Z2, Z3
	VPSLLVQ Z3, Z16, Z4
	VPADDQ Z17, Z4, Z4                // mask of the low half
	VPSUBQ Z18, Z3, Z3
	VPMAXSQ Z31, Z3, Z3
	VPSLLVQ Z3, Z16, Z5
	VPADDQ Z17, Z5, Z5                // mask of the high half
	VPCMPQ $2, Z19, Z2, K1            // A: at most 8
	VPCMPQ $6, Z20, Z2, K2            // longer than 16
	VPUNPCKLQDQ Z1, Z0, Z6
	VPUNPCKHQDQ Z1, Z0, Z7
	VPANDQ Z4, Z6, Z6                 // lo
	VPANDQ Z5, Z7, Z7                 // hi
	VPMULLQ Z21, Z6, Z8
	VPMULLQ Z22, Z7, Z9
	VPADDQ Z9, Z8, Z8
	VPSRLVQ Z25, Z8, Z9
	VPSRLVQ Z24, Z8, K1, Z9
	VPANDQ Z23, Z9, Z9
	VMOVDQA64 Z26, Z10
	VMOVDQA64 Z31, K1, Z10
	VPADDQ Z10, Z9, Z9
	VMOVDQA64 Z27, K2, Z9
	VPMOVQD Z9, Y9
	VMOVDQU Y9, (R15)
	VMOVDQA64 Z6, K1, Z7              // second: lo for A
	VMOVDQA32.Z Y28, K1, Y10
	VMOVDQU Y10, 288(R15)
	VPUNPCKLQDQ Z7, Z6, Z0            // pairs 0 2 4 6
	VPUNPCKHQDQ Z7, Z6, Z1            // pairs 1 3 5 7
	VMOVDQA64 Z29, Z2
	VMOVDQA64 Z30, Z3
	VPERMI2Q Z1, Z0, Z2
	VPERMI2Q Z1, Z0, Z3
	VMOVDQU64 Z2, (R10)
	VMOVDQU64 Z3, 64(R10)
	MOVL 0(R15), AX
	MOVL 4(R15), BX
	PREFETCHT0 (R9)(AX*1)
	PREFETCHT0 (R9)(BX*1)
	MOVL 8(R15), AX
	MOVL 12(R15), BX
	PREFETCHT0 (R9)(AX*1)
	PREFETCHT0 (R9)(BX*1)
	MOVL 16(R15), AX
	MOVL 20(R15), BX
	PREFETCHT0 (R9)(AX*1)
	PREFETCHT0 (R9)(BX*1)
	MOVL 24(R15), AX
	MOVL 28(R15), BX
	PREFETCHT0 (R9)(AX*1)
	PREFETCHT0 (R9)(BX*1)
	ADDQ $128, R10
	ADDQ $32, R15
	ADDQ $16, R8
	SUBQ $8, CX
	JHI  prepare_eight
	VZEROUPPER
	RET

// func matchAVX2(p *probes, n int, lines *uint64, values *uint64, missed *uint16, first int) (misses int)
//
// A word a turn: one compare of four lanes, the value of the matching way; the numbers of words without a match, counted from first, are
// listed without a branch. A value read where nothing matched lies up to 288 bytes past the line.
TEXT ·matchAVX2(SB), NOSPLIT, $0-56
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ lines+16(FP), DI
	MOVQ values+24(FP), R10
	MOVQ missed+32(FP), R11
	MOVQ first+40(FP), R12
	XORL R13, R13
	LEAQ 1152(SI), R8

match_word:
	VMOVDQU   (SI), X0
	VPERMQ    $0x50, Y0, Y0
	MOVL      (R8), AX
	VPCMPEQQ  (DI)(AX*1), Y0, Y1
	ADDQ      DI, AX
	VMOVMSKPD Y1, BX
	MOVL      BX, DX
	SHRL      $2, DX
	ORL       288(R8), DX
	MOVW      R12, (R11)(R13*2)
	ANDL      DX, BX
	CMPL      BX, $1
	ADCQ      $0, R13
	TZCNTL    BX, BX
	MOVQ      32(AX)(BX*8), AX
	MOVQ      AX, (R10)
	ADDQ      $8, R10
	INCQ      R12
	ADDQ      $16, SI
	ADDQ      $4, R8
	DECQ      CX
	JNZ       match_word
	VZEROUPPER
	MOVQ R13, misses+48(FP)
	RET

// func emitAVX2(values *uint64, n int, out *uint32, spill *uint32, mask, head uint64) (done, written int)
//
// A value a turn: three ids stored at once, then as many kept as there are. Spilled ids are copied 16 at once; it stops at
// a long word and at a value whose ids are gone.
TEXT ·emitAVX2(SB), NOSPLIT, $0-64
	MOVQ values+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ out+16(FP), R10
	MOVQ spill+24(FP), R11
	MOVQ mask+32(FP), R12
	MOVQ $0x000fffff000fffff, R13

emit_word:
	MOVQ  (SI), R8
	PDEPQ R13, R8, R9
	MOVQ  R9, (R10)
	MOVQ  R8, R9
	SHRQ  $40, R9
	ANDL  $0xfffff, R9
	MOVL  R9, 8(R10)
	MOVQ  R8, DX
	SHRQ  $60, DX
	CMPL  DX, $3
	JHI   emit_spilled
	LEAQ  (R10)(DX*4), R10

emit_next:
	ADDQ $8, SI
	DECQ CX
	JNZ  emit_word
	JMP  emit_end

emit_spilled:
	CMPL DX, $15
	JNE  emit_end
	SHLQ $24, R8
	SHRQ $24, R8
	MOVQ head+40(FP), DX
	SUBQ R8, DX
	LEAQ 1(R12), BX
	CMPQ DX, BX
	JHI  emit_end
	ANDQ R12, R8
	LEAQ (R11)(R8*4), AX
	MOVQ R10, BX
	LEAQ (R10)(R9*4), R10

emit_copy:
	VMOVDQU (AX), Y0
	VMOVDQU 32(AX), Y1
	VMOVDQU Y0, (BX)
	VMOVDQU Y1, 32(BX)
	ADDQ $64, AX
	ADDQ $64, BX
	SUBQ $16, R9
	JHI  emit_copy
	JMP  emit_next

emit_end:
	VZEROUPPER
	MOVQ n+8(FP), AX
	SUBQ CX, AX
	MOVQ AX, done+48(FP)
	SUBQ out+16(FP), R10
	SHRQ $2, R10
	MOVQ R10, written+56(FP)
	RET

DATA ·bytesOf+0(SB)/4, $0x20202020
DATA ·bytesOf+4(SB)/4, $0x61616161
DATA ·bytesOf+8(SB)/4, $0x1a1a1a1a
DATA ·bytesOf+12(SB)/4, $0x30303030
DATA ·bytesOf+16(SB)/4, $0x0a0a0a0a
DATA ·bytesOf+20(SB)/4, $0x09090909
DATA ·bytesOf+24(SB)/4, $0x05050505
DATA ·bytesOf+28(SB)/4, $0x0d0d0d0d
DATA ·bytesOf+32(SB)/4, $0x27272727
DATA ·bytesOf+36(SB)/4, $0x41414141
DATA ·bytesOf+40(SB)/4, $0x2f2f2f2f
GLOBL ·bytesOf(SB), RODATA|NOPTR, $44

// func classifyAVX512(buf *byte, out *block, n int) (high, nul uint64)
//
// 64 bytes a turn: range compares into mask registers, stored as they are.
TEXT ·classifyAVX512(SB), NOSPLIT, $0-40
	MOVQ buf+0(FP), SI
	MOVQ out+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTD ·bytesOf+0(SB), Z16  // blank
	VPBROADCASTD ·bytesOf+4(SB), Z17  // a
	VPBROADCASTD ·bytesOf+8(SB), Z18  // 26
	VPBROADCASTD ·bytesOf+12(SB), Z19 // 0
	VPBROADCASTD ·bytesOf+16(SB), Z20 // 10, \n
	VPBROADCASTD ·bytesOf+20(SB), Z21 // \t
	VPBROADCASTD ·bytesOf+24(SB), Z22 // 5
	VPBROADCASTD ·bytesOf+28(SB), Z23 // \r
	VPBROADCASTD ·bytesOf+32(SB), Z24 // '
	VPBROADCASTD ·bytesOf+36(SB), Z25 // A
	VPBROADCASTD ·bytesOf+40(SB), Z26 // /
	MOVL $0xc0c0c0c0, AX
	VPBROADCASTD AX, Z28
	VPXORQ Z27, Z27, Z27
	XORL AX, AX
	XORL DX, DX

classify_block:
	VMOVDQU64 (SI), Z0
	VPORQ     Z16, Z0, Z1
	VPSUBB    Z17, Z1, Z1
	VPCMPUB   $1, Z18, Z1, K1 // letter
	VPSUBB    Z19, Z0, Z2
	VPCMPUB   $1, Z20, Z2, K2 // number
	VPSUBB    Z21, Z0, Z3
	VPCMPUB   $1, Z22, Z3, K3 // \t..\r
	VPCMPEQB  Z16, Z0, K4     // blank
	KORQ      K3, K4, K3
	VPCMPEQB  Z20, Z0, K5
	VPCMPEQB  Z23, Z0, K6
	KORQ      K5, K6, K5      // newline
	VPCMPEQB  Z24, Z0, K6     // quote
	KMOVQ     K1, (DI)
	KMOVQ     K2, 8(DI)
	KMOVQ     K3, 16(DI)
	KMOVQ     K4, 24(DI)
	KMOVQ     K5, 32(DI)
	KMOVQ     K6, 40(DI)
	VPSUBB    Z25, Z0, Z4
	VPCMPUB   $1, Z18, Z4, K2 // A..Z
	KANDNQ    K1, K2, K1      // a..z
	VPCMPEQB  Z26, Z0, K3     // slash
	VPCMPEQB  Z27, Z0, K4     // nul
	VPMOVB2M  Z0, K5          // high
	VMOVDQU64 Z27, 48(DI)
	VPCMPB    $1, Z28, Z0, K6 // 0x80..0xbf
	KMOVQ     K6, 48(DI)
	KMOVQ     K2, 64(DI)
	KMOVQ     K1, 72(DI)
	KMOVQ     K3, 88(DI)
	KMOVQ     K4, R8
	KMOVQ     K5, R9
	MOVQ      R8, 96(DI)
	MOVQ      R9, 56(DI)
	ORQ       R8, DX
	ORQ       R9, AX
	ADDQ      $64, SI
	ADDQ      $128, DI
	DECQ      CX
	JNZ       classify_block
	VZEROUPPER
	MOVQ AX, high+24(FP)
	MOVQ DX, nul+32(FP)
	RET

// Constants of classifyAVX2, 32 times each.
DATA ·wide+0(SB)/8, $0x2020202020202020
DATA ·wide+8(SB)/8, $0x2020202020202020
DATA ·wide+16(SB)/8, $0x2020202020202020
DATA ·wide+24(SB)/8, $0x2020202020202020
DATA ·wide+32(SB)/8, $0x6161616161616161
DATA ·wide+40(SB)/8, $0x6161616161616161
DATA ·wide+48(SB)/8, $0x6161616161616161
DATA ·wide+56(SB)/8, $0x6161616161616161
DATA ·wide+64(SB)/8, $0x1919191919191919
DATA ·wide+72(SB)/8, $0x1919191919191919
DATA ·wide+80(SB)/8, $0x1919191919191919
DATA ·wide+88(SB)/8, $0x1919191919191919
DATA ·wide+96(SB)/8, $0x3030303030303030
DATA ·wide+104(SB)/8, $0x3030303030303030
DATA ·wide+112(SB)/8, $0x3030303030303030
DATA ·wide+120(SB)/8, $0x3030303030303030
DATA ·wide+128(SB)/8, $0x0909090909090909
DATA ·wide+136(SB)/8, $0x0909090909090909
DATA ·wide+144(SB)/8, $0x0909090909090909
DATA ·wide+152(SB)/8, $0x0909090909090909
DATA ·wide+160(SB)/8, $0x0404040404040404
DATA ·wide+168(SB)/8, $0x0404040404040404
DATA ·wide+176(SB)/8, $0x0404040404040404
DATA ·wide+184(SB)/8, $0x0404040404040404
DATA ·wide+192(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA ·wide+200(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA ·wide+208(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA ·wide+216(SB)/8, $0x0a0a0a0a0a0a0a0a
DATA ·wide+224(SB)/8, $0x0d0d0d0d0d0d0d0d
DATA ·wide+232(SB)/8, $0x0d0d0d0d0d0d0d0d
DATA ·wide+240(SB)/8, $0x0d0d0d0d0d0d0d0d
DATA ·wide+248(SB)/8, $0x0d0d0d0d0d0d0d0d
DATA ·wide+256(SB)/8, $0x2727272727272727
DATA ·wide+264(SB)/8, $0x2727272727272727
DATA ·wide+272(SB)/8, $0x2727272727272727
DATA ·wide+280(SB)/8, $0x2727272727272727
DATA ·wide+288(SB)/8, $0x4141414141414141
DATA ·wide+296(SB)/8, $0x4141414141414141
DATA ·wide+304(SB)/8, $0x4141414141414141
DATA ·wide+312(SB)/8, $0x4141414141414141
DATA ·wide+320(SB)/8, $0x2f2f2f2f2f2f2f2f
DATA ·wide+328(SB)/8, $0x2f2f2f2f2f2f2f2f
DATA ·wide+336(SB)/8, $0x2f2f2f2f2f2f2f2f
DATA ·wide+344(SB)/8, $0x2f2f2f2f2f2f2f2f
DATA ·wide+352(SB)/8, $0xc0c0c0c0c0c0c0c0
DATA ·wide+360(SB)/8, $0xc0c0c0c0c0c0c0c0
DATA ·wide+368(SB)/8, $0xc0c0c0c0c0c0c0c0
DATA ·wide+376(SB)/8, $0xc0c0c0c0c0c0c0c0
GLOBL ·wide(SB), RODATA|NOPTR, $384

// The top bits of Y2 and Y3 as 64 bits in R8, stored to a field of the block.
#define STORE_MASK(FIELD) \
	VPMOVMSKB Y2, R8     \
	VPMOVMSKB Y3, R9     \
	SHLQ $32, R9         \
	ORQ  R9, R8          \
	MOVQ R8, FIELD(DI)

// Y2, Y3: bytes of Y0, Y1 equal to a constant.
#define EQUAL_TO(CONST) \
	VPCMPEQB CONST, Y0, Y2 \
	VPCMPEQB CONST, Y1, Y3

// Y2, Y3: bytes of A, B that are at least LOW and at most LOW + SPAN.
#define IN_RANGE(A, B, LOW, SPAN) \
	VPSUBB LOW, A, Y2      \
	VPSUBB LOW, B, Y3      \
	VPMINUB SPAN, Y2, Y4   \
	VPMINUB SPAN, Y3, Y5   \
	VPCMPEQB Y4, Y2, Y2    \
	VPCMPEQB Y5, Y3, Y3

// func classifyAVX2(buf *byte, out *block, n int) (high, nul uint64)
TEXT ·classifyAVX2(SB), NOSPLIT, $0-40
	MOVQ buf+0(FP), SI
	MOVQ out+8(FP), DI
	MOVQ n+16(FP), CX
	XORL AX, AX
	XORL DX, DX
	VPXOR Y15, Y15, Y15
	VMOVDQU ·wide+0(SB), Y8
	VMOVDQU ·wide+32(SB), Y9
	VMOVDQU ·wide+64(SB), Y10
	VMOVDQU ·wide+192(SB), Y11
	VMOVDQU ·wide+224(SB), Y12
	VMOVDQU ·wide+256(SB), Y13
	VMOVDQU ·wide+320(SB), Y14

avx2_block:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPMOVMSKB Y0, R8
	VPMOVMSKB Y1, R9
	SHLQ $32, R9
	ORQ  R9, R8
	MOVQ R8, 56(DI)           // high
	ORQ  R8, AX
	VPOR Y8, Y0, Y6
	VPOR Y8, Y1, Y7
	IN_RANGE(Y6, Y7, Y9, Y10)
	STORE_MASK(0)             // letter
	MOVQ R8, BX
	VMOVDQU ·wide+288(SB), Y6
	IN_RANGE(Y0, Y1, Y6, Y10)
	STORE_MASK(64)            // upper
	XORQ R8, BX
	MOVQ BX, 72(DI)           // lower
	VMOVDQU ·wide+96(SB), Y6
	VMOVDQU ·wide+128(SB), Y7
	IN_RANGE(Y0, Y1, Y6, Y7)
	STORE_MASK(8)             // number
	EQUAL_TO(Y8)
	STORE_MASK(24)            // blank
	MOVQ R8, BX
	VMOVDQU ·wide+160(SB), Y6
	IN_RANGE(Y0, Y1, Y7, Y6)
	STORE_MASK(16)
	ORQ  R8, BX
	MOVQ BX, 16(DI)           // space
	EQUAL_TO(Y11)
	VPCMPEQB Y12, Y0, Y4
	VPCMPEQB Y12, Y1, Y5
	VPOR Y4, Y2, Y2
	VPOR Y5, Y3, Y3
	STORE_MASK(32)            // newline
	EQUAL_TO(Y13)
	STORE_MASK(40)            // quote
	EQUAL_TO(Y14)
	STORE_MASK(88)            // slash
	EQUAL_TO(Y15)
	STORE_MASK(96)            // nul
	ORQ  R8, DX
	VMOVDQU ·wide+352(SB), Y6
	VPCMPGTB Y0, Y6, Y2
	VPCMPGTB Y1, Y6, Y3
	STORE_MASK(48)            // 0x80..0xbf
	MOVQ $0, 80(DI)
	ADDQ $64, SI
	ADDQ $128, DI
	DECQ CX
	JNZ  avx2_block
	VZEROUPPER
	MOVQ AX, high+24(FP)
	MOVQ DX, nul+32(FP)
	RET

// By the number of bytes: the bits of the code point, what the marker bits are compared under and with, and the least code point.
DATA ·utf8Kinds+32(SB)/4, $0x1f3f0000
DATA ·utf8Kinds+36(SB)/4, $0xe0c00000
DATA ·utf8Kinds+40(SB)/4, $0xc0800000
DATA ·utf8Kinds+44(SB)/4, $0x80
DATA ·utf8Kinds+48(SB)/4, $0x0f3f3f00
DATA ·utf8Kinds+52(SB)/4, $0xf0c0c000
DATA ·utf8Kinds+56(SB)/4, $0xe0808000
DATA ·utf8Kinds+60(SB)/4, $0x800
DATA ·utf8Kinds+64(SB)/4, $0x073f3f3f
DATA ·utf8Kinds+68(SB)/4, $0xf8c0c0c0
DATA ·utf8Kinds+72(SB)/4, $0xf0808080
DATA ·utf8Kinds+76(SB)/4, $0x10000
GLOBL ·utf8Kinds(SB), RODATA|NOPTR, $80

// Puts the bits of one class, a bit a first byte, at those bytes and the ones after them, and adds them to a mask of the block.
#define SPREAD(BITS, FIELD) \
	PDEPQ R11, BITS, BITS    \
	MOVQ FIELD-128(DI), R14  \
	SHRQ $63, R14            \
	LEAQ (R14)(BITS*2), R15  \
	ANDQ R10, R15            \
	ORQ  R15, BITS           \
	LEAQ (R14)(BITS*2), R15  \
	ANDQ R10, R15            \
	ORQ  R15, BITS           \
	LEAQ (R14)(BITS*2), R15  \
	ANDQ R10, R15            \
	ORQ  R15, BITS           \
	ORQ  BITS, FIELD(DI)

// func highBMI2(buf *byte, blocks *block, n int, classes *byte) (bytes int)
//
// Adds the classes of characters beyond ASCII to classified blocks. First bytes are taken from the last to the first; each class shifts one bit into its
// register, and at the end the bits are dealt to the first bytes and spread to the bytes after them. It returns the number of bytes of
// all these characters, or -1 where one is not valid; a lone continuation byte shows as a sum that is too small. The block before the
// first is read, and does not matter, since no character begins before the window.
TEXT ·highBMI2(SB), NOSPLIT, $8-40
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), DI
	MOVQ n+16(FP), AX
	MOVQ AX, 0(SP)
	MOVQ classes+24(FP), R9
	XORL R8, R8

high_block:
	MOVQ 56(DI), R11
	TESTQ R11, R11
	JZ   high_next
	MOVQ 48(DI), R10
	ANDNQ R11, R10, R11
	XORL AX, AX
	XORL BX, BX
	XORL CX, CX
	XORL DX, DX
	XORL R12, R12
	XORL R13, R13
	TESTQ R11, R11
	JZ   high_spread

high_char:
	LZCNTQ R11, R14
	XORQ $63, R14
	BTRQ R14, R11
	MOVL (SI)(R14*1), R15
	BSWAPL R15
	MOVL R15, R14
	NOTL R14
	LZCNTL R14, R14
	CMPL R14, $4
	JHI  high_bad
	ADDQ R14, R8
	SHLL $4, R14
	LEAQ ·utf8Kinds(SB), R10
	ADDQ R10, R14
	MOVL 4(R14), R10
	ANDL R15, R10
	CMPL R10, 8(R14)
	JNE  high_bad
	PEXTL (R14), R15, R15
	CMPL R15, 12(R14)
	JCS  high_bad
	CMPL R15, $0x10ffff
	JHI  high_bad
	LEAL -0xd800(R15), R10
	CMPL R10, $0x800
	JCS  high_bad
	MOVL R15, R10
	SHRL $7, R10
	MOVWLZX (R9)(R10*2), R10
	SHLL $7, R10
	ANDL $127, R15
	ORL  R15, R10
	MOVBLZX 17408(R9)(R10*1), R10
	BTL  $0, R10
	ADCQ AX, AX
	BTL  $1, R10
	ADCQ BX, BX
	BTL  $2, R10
	ADCQ CX, CX
	BTL  $3, R10
	ADCQ DX, DX
	BTL  $4, R10
	ADCQ R12, R12
	BTL  $5, R10
	ADCQ R13, R13
	TESTQ R11, R11
	JNZ  high_char

high_spread:
	MOVQ 48(DI), R10
	MOVQ 56(DI), R11
	ANDNQ R11, R10, R11
	SPREAD(AX, 0)
	SPREAD(BX, 8)
	SPREAD(CX, 16)
	SPREAD(DX, 80)
	SPREAD(R12, 64)
	SPREAD(R13, 72)

high_next:
	ADDQ $64, SI
	ADDQ $128, DI
	DECQ 0(SP)
	JNZ  high_block
	MOVQ R8, bytes+32(FP)
	RET

high_bad:
	MOVQ $-1, bytes+32(FP)
	RET

DATA ·iota64+0(SB)/8, $0x0706050403020100
DATA ·iota64+8(SB)/8, $0x0f0e0d0c0b0a0908
DATA ·iota64+16(SB)/8, $0x1716151413121110
DATA ·iota64+24(SB)/8, $0x1f1e1d1c1b1a1918
DATA ·iota64+32(SB)/8, $0x2726252423222120
DATA ·iota64+40(SB)/8, $0x2f2e2d2c2b2a2928
DATA ·iota64+48(SB)/8, $0x3736353433323130
DATA ·iota64+56(SB)/8, $0x3f3e3d3c3b3a3938
GLOBL ·iota64(SB), RODATA|NOPTR, $64

// func flattenVBMI2(start *uint64, n int, pos *uint16) (count int)
//
// The byte numbers of the set bits are packed to the front, widened, and stored; 64 places past the count are written.
TEXT ·flattenVBMI2(SB), NOSPLIT, $0-32
	MOVQ start+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ pos+16(FP), DI
	VMOVDQU64 ·iota64(SB), Z0
	VPXORQ Z3, Z3, Z3
	MOVL $64, AX
	VPBROADCASTW AX, Z4

flatten_block:
	MOVQ  (SI), BX
	KMOVQ BX, K1
	VPCOMPRESSB Z0, K1, Z1
	VPMOVZXBW Y1, Z2
	VPADDW Z3, Z2, Z2
	VMOVDQU64 Z2, (DI)
	POPCNTQ BX, BX
	CMPQ  BX, $32
	JHI   flatten_many

flatten_next:
	VPADDW Z4, Z3, Z3
	LEAQ  (DI)(BX*2), DI
	ADDQ  $8, SI
	DECQ  CX
	JNZ   flatten_block
	VZEROUPPER
	SUBQ  pos+16(FP), DI
	SHRQ  $1, DI
	MOVQ  DI, count+24(FP)
	RET

flatten_many:
	VEXTRACTI64X4 $1, Z1, Y1
	VPMOVZXBW Y1, Z2
	VPADDW Z3, Z2, Z2
	VMOVDQU64 Z2, 64(DI)
	JMP flatten_next

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

#define MERGE_END(LIVE, SYM, JOB, OUT, COUNT) \
	MOVL LIVE, AX                \
	MOVL JOB+4(R8), CX           \
	SHRL $1, AX                  \
	BZHIL CX, AX, AX             \
	KMOVW AX, K1                 \
	VMOVDQU32 SYM+4(DI), Z18      \
	VPCOMPRESSD Z18, K1, Z18       \
	VMOVDQU32 Z18, OUT(R9)        \
	POPCNTL AX, AX               \
	MOVL AX, COUNT(R9)

// func mergeAVX512(t *mergeTables, buf *byte, jobs *mergeJobs, sym *uint32, out *mergeResults)
//
// The array merger of bpe.go on eight words of 1..16 bytes at once, each with 16 readable bytes. A merge is one long chain of dependent loads, so eight
// words take little longer than one; no branch but the loop's depends on data. The ranks of a word are the lanes of one register, its live
// positions are bits with a sentinel on both sides; sym has room for 72 symbols a word.
TEXT ·mergeAVX512(SB), NOSPLIT, $32-40
	MOVQ t+0(FP), SI
	MOVQ buf+8(FP), R9
	MOVQ jobs+16(FP), R8
	MOVQ sym+24(FP), DI
	VPMOVZXBD ·iota64+0(SB), Z16
	VPTERNLOGD $0xff, Z17, Z17, Z17
	KXNORW K7, K7, K7
	MERGE_BEGIN(Z0, 0(SP), 0, 0)
	MERGE_BEGIN(Z1, 4(SP), 288, 8)
	MERGE_BEGIN(Z2, 8(SP), 576, 16)
	MERGE_BEGIN(Z3, 12(SP), 864, 24)
	MERGE_BEGIN(Z4, 16(SP), 1152, 32)
	MERGE_BEGIN(Z5, 20(SP), 1440, 40)
	MERGE_BEGIN(Z6, 24(SP), 1728, 48)
	MERGE_BEGIN(Z7, 28(SP), 2016, 56)
	MOVQ 16(SI), R10
	MOVQ 24(SI), R11
	MOVL 48(SI), R12
	MOVL 52(SI), R13

merge_all:
	XORL R8, R8
	MERGE_STEP(Z0, Y0, 0(SP), 0)
	MERGE_STEP(Z1, Y1, 4(SP), 288)
	MERGE_STEP(Z2, Y2, 8(SP), 576)
	MERGE_STEP(Z3, Y3, 12(SP), 864)
	MERGE_STEP(Z4, Y4, 16(SP), 1152)
	MERGE_STEP(Z5, Y5, 20(SP), 1440)
	MERGE_STEP(Z6, Y6, 24(SP), 1728)
	MERGE_STEP(Z7, Y7, 28(SP), 2016)
	TESTL R8, R8
	JNZ  merge_all

	MOVQ jobs+16(FP), R8
	MOVQ out+32(FP), R9
	MERGE_END(0(SP), 0, 0, 0, 512)
	MERGE_END(4(SP), 288, 8, 64, 516)
	MERGE_END(8(SP), 576, 16, 128, 520)
	MERGE_END(12(SP), 864, 24, 192, 524)
	MERGE_END(16(SP), 1152, 32, 256, 528)
	MERGE_END(20(SP), 1440, 40, 320, 532)
	MERGE_END(24(SP), 1728, 48, 384, 536)
	MERGE_END(28(SP), 2016, 56, 448, 540)
	VZEROUPPER
	RET
