//go:build !purego

#include "textflag.h"

// The algorithm is that of Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021). Each
// fault that two bytes in a row can have is a bit. The first table has those which the upper half of the first byte
// allows, the second those of its lower half, and the third those of the upper half of the second byte: what all
// three allow is a fault.
//
//	0x01  a first byte without a continuation      0x10  a surrogate
//	0x02  a continuation after ASCII               0x20  ASCII in two bytes
//	0x04  two bytes' worth in three                0x40  beyond U+13FFFF, or three bytes' worth in four
//	0x08  beyond U+10FFFF                          0x80  two continuations, which third and fourth bytes must be
DATA ·faults+0(SB)/8, $0x0202020202020202
DATA ·faults+8(SB)/8, $0x4915012180808080
DATA ·faults+16(SB)/8, $0xcbcbcb8b8383a3e7
DATA ·faults+24(SB)/8, $0xcbcbdbcbcbcbcbcb
DATA ·faults+32(SB)/8, $0x0101010101010101
DATA ·faults+40(SB)/8, $0x01010101babaaee6
DATA ·faults+48(SB)/4, $0x0f0f0f0f
DATA ·faults+52(SB)/4, $0x60606060
DATA ·faults+56(SB)/4, $0x70707070
DATA ·faults+60(SB)/4, $0x80808080
GLOBL ·faults(SB), RODATA|NOPTR, $64

// func validAVX2(text *byte, n int) bool
TEXT ·validAVX2(SB), NOSPLIT, $0-17
	MOVQ text+0(FP), SI
	MOVQ n+8(FP), CX
	ADDQ SI, CX

	LEAQ -64(CX), DX

pair:
	CMPQ      SI, DX
	JHI       ascii
	VMOVDQU   (SI), Y0
	VPOR      32(SI), Y0, Y1
	VPMOVMSKB Y1, AX
	TESTL     AX, AX
	JNZ       mixed
	ADDQ      $64, SI
	JMP       pair

ascii: // the last 32 bytes, if there are any left
	CMPQ      SI, CX
	JAE       valid
	VMOVDQU   (SI), Y0
	VPMOVMSKB Y0, AX
	TESTL     AX, AX
	JNZ       mixed

valid:
	VZEROUPPER
	MOVB $1, ret+16(FP)
	RET

mixed:
	VBROADCASTI128 ·faults+0(SB), Y15
	VBROADCASTI128 ·faults+16(SB), Y14
	VBROADCASTI128 ·faults+32(SB), Y13
	VPBROADCASTD   ·faults+48(SB), Y12
	VPBROADCASTD   ·faults+52(SB), Y11
	VPBROADCASTD   ·faults+56(SB), Y10
	VPBROADCASTD   ·faults+60(SB), Y9
	VPXOR          Y8, Y8, Y8 // the faults
	VPXOR          Y7, Y7, Y7 // the bytes before: ASCII

block:
	VMOVDQU    (SI), Y0
	VPERM2I128 $0x21, Y0, Y7, Y1
	VPALIGNR   $15, Y1, Y0, Y2 // the byte before each
	VPALIGNR   $14, Y1, Y0, Y3
	VPALIGNR   $13, Y1, Y0, Y4
	VPSRLW     $4, Y2, Y5
	VPAND      Y12, Y5, Y5
	VPSHUFB    Y5, Y15, Y5
	VPAND      Y12, Y2, Y6
	VPSHUFB    Y6, Y14, Y6
	VPAND      Y6, Y5, Y5
	VPSRLW     $4, Y0, Y6
	VPAND      Y12, Y6, Y6
	VPSHUFB    Y6, Y13, Y6
	VPAND      Y6, Y5, Y5
	VPSUBUSB   Y11, Y3, Y3     // at least 0x80 after the first of three bytes or more
	VPSUBUSB   Y10, Y4, Y4     // and after the first of four
	VPOR       Y3, Y4, Y3
	VPAND      Y9, Y3, Y3
	VPXOR      Y3, Y5, Y5
	VPOR       Y5, Y8, Y8
	VMOVDQA    Y0, Y7
	ADDQ       $32, SI
	CMPQ       SI, CX
	JB         block
	VPTEST     Y8, Y8
	SETEQ      ret+16(FP)
	VZEROUPPER
	RET
