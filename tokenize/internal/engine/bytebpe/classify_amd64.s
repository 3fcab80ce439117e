//go:build !purego

#include "textflag.h"

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

#define CONSTANT(VALUE, Z) \
	MOVL VALUE, R14          \
	VPBROADCASTD R14, Z

// The bits of class N of 16 characters, at shift R15 of BITS.
#define CLASS_BITS(N, BITS) \
	VPSLLD $(31-N), Z11, Z5  \
	VPMOVD2M Z5, K3          \
	KMOVW K3, R14            \
	SHLXQ R15, R14, R14      \
	ORQ  R14, BITS

// func highVBMI2(buf *byte, blocks *block, n int, classes *byte) (bytes int)
//
// highBMI2 for 16 characters at once. classes has three bytes more, which are read.
TEXT ·highVBMI2(SB), NOSPLIT, $8-40
	MOVQ buf+0(FP), SI
	MOVQ blocks+8(FP), DI
	MOVQ n+16(FP), AX
	MOVQ AX, 0(SP)
	MOVQ classes+24(FP), R9
	XORL R8, R8
	CONSTANT($0xff, Z12)
	CONSTANT($0xe0, Z13)
	CONSTANT($0xf0, Z14)
	CONSTANT($0xf8, Z15)
	CONSTANT($0x3f, Z16)
	CONSTANT($0xc0, Z17)
	CONSTANT($0x80, Z18)
	CONSTANT($0x800, Z19)
	CONSTANT($0x10000, Z20)
	CONSTANT($0x10ffff, Z21)
	CONSTANT($0xd800, Z22)
	CONSTANT($0x1f, Z23)
	CONSTANT($7, Z24)
	CONSTANT($0xffff, Z25)
	CONSTANT($0x7f, Z26)
	VMOVDQU64 ·iota64(SB), Z31

high16_block:
	MOVQ 56(DI), R11
	TESTQ R11, R11
	JZ   high16_next
	MOVQ 48(DI), R10
	ANDNQ R11, R10, R11               // first bytes
	XORL AX, AX
	XORL BX, BX
	XORL CX, CX
	XORL DX, DX
	XORL R12, R12
	XORL R13, R13
	TESTQ R11, R11
	JZ   high16_spread
	KMOVQ R11, K1
	VPCOMPRESSB.Z Z31, K1, Z30        // where they are
	POPCNTQ R11, R10                  // how many are left
	XORL R15, R15                     // how many are done

high16_chars:
	VPMOVZXBD X30, Z0
	MOVL $-1, R14
	BZHIL R10, R14, R14
	KMOVW R14, K2                     // lanes in use
	KMOVW R14, K3
	VPXORD Z1, Z1, Z1
	VPGATHERDD (SI)(Z0*1), K3, Z1
	VPSRLD $8, Z1, Z2
	VPSRLD $16, Z1, Z3
	VPSRLD $24, Z1, Z4
	VPANDD Z12, Z1, Z5                // the first byte
	VPCMPUD $5, Z13, Z5, K2, K4       // three bytes or more
	VPCMPUD $5, Z14, Z5, K2, K5       // four
	VPCMPUD $5, Z15, Z5, K2, K6       // K6 collects lanes that are not valid
	VPANDD Z17, Z2, Z6
	VPCMPUD $4, Z18, Z6, K2, K3
	KORW K3, K6, K6
	VPANDD Z17, Z3, Z6
	VPCMPUD $4, Z18, Z6, K4, K3
	KORW K3, K6, K6
	VPANDD Z17, Z4, Z6
	VPCMPUD $4, Z18, Z6, K5, K3
	KORW K3, K6, K6
	VPANDD Z16, Z2, Z2
	VPANDD Z16, Z3, Z3
	VPANDD Z16, Z4, Z4
	VPANDD Z23, Z5, Z7                // the code point
	VPANDD Z24, Z5, K5, Z7
	VPSLLD $6, Z7, Z7
	VPORD Z2, Z7, Z7
	VPSLLD $6, Z7, K4, Z7
	VPORD Z3, Z7, K4, Z7
	VPSLLD $6, Z7, K5, Z7
	VPORD Z4, Z7, K5, Z7
	VMOVDQA32 Z18, Z8                 // the least of as many bytes
	VMOVDQA32 Z19, K4, Z8
	VMOVDQA32 Z20, K5, Z8
	VPCMPUD $1, Z8, Z7, K2, K3
	KORW K3, K6, K6
	VPCMPUD $6, Z21, Z7, K2, K3
	KORW K3, K6, K6
	VPSUBD Z22, Z7, Z9
	VPCMPUD $1, Z19, Z9, K2, K3       // surrogates
	KORW K3, K6, K6
	KORTESTW K6, K6
	JNE  high16_bad
	VPSRLD $7, Z7, Z9
	KMOVW K2, K3
	VPXORD Z10, Z10, Z10
	VPGATHERDD (R9)(Z9*2), K3, Z10
	VPANDD Z25, Z10, Z10
	VPSLLD $7, Z10, Z10
	VPANDD Z26, Z7, Z9
	VPORD Z9, Z10, Z10
	KMOVW K2, K3
	VPXORD Z11, Z11, Z11
	VPGATHERDD 17408(R9)(Z10*1), K3, Z11
	CLASS_BITS(0, AX)
	CLASS_BITS(1, BX)
	CLASS_BITS(2, CX)
	CLASS_BITS(3, DX)
	CLASS_BITS(4, R12)
	CLASS_BITS(5, R13)
	KMOVW K2, R14
	POPCNTL R14, R14
	LEAQ (R8)(R14*2), R8
	KMOVW K4, R14
	POPCNTL R14, R14
	ADDQ R14, R8
	KMOVW K5, R14
	POPCNTL R14, R14
	ADDQ R14, R8
	VALIGND $4, Z30, Z30, Z30
	ADDQ $16, R15
	SUBQ $16, R10
	JGT  high16_chars

high16_spread:
	MOVQ 48(DI), R10
	MOVQ 56(DI), R11
	ANDNQ R11, R10, R11
	SPREAD(AX, 0)
	SPREAD(BX, 8)
	SPREAD(CX, 16)
	SPREAD(DX, 80)
	SPREAD(R12, 64)
	SPREAD(R13, 72)

high16_next:
	ADDQ $64, SI
	ADDQ $128, DI
	DECQ 0(SP)
	JNZ  high16_block
	VZEROUPPER
	MOVQ R8, bytes+32(FP)
	RET

high16_bad:
	VZEROUPPER
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
