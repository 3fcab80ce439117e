//go:build !purego

#include "textflag.h"

// Gathers the bits of X and Y that are in MASK in X, and the others in Y: bits of Y go up by SHIFT, those of X down.
#define EXCHANGE(SHIFT, MASK, X, Y) \
	VSHL  SHIFT, Y.B16, V8.B16        \
	VUSHR SHIFT, X.B16, V9.B16        \
	VBIF  MASK.B16, V8.B16, X.B16     \
	VBIT  MASK.B16, V9.B16, Y.B16

// Two masks of the low nibbles of A and B, and two of the high ones.
#define PACK(A, B, LOW, HIGH) \
	VUZP1 B.B16, A.B16, LOW.B16       \
	VUZP2 B.B16, A.B16, V8.B16        \
	VMOV  V8.B16, HIGH.B16            \
	VSRI  $4, LOW.B16, HIGH.B16       \
	VSLI  $4, V8.B16, LOW.B16

// A mask of the top bits of the 64 bytes that VLD4 dealt to A, B, C, E; B and E are overwritten.
#define TOP_BITS(A, B, C, E, MASK) \
	VSRI  $1, A.B16, B.B16            \
	VSRI  $1, C.B16, E.B16            \
	VSRI  $2, B.B16, E.B16            \
	VUZP1 E.B16, E.B16, V8.B16        \
	VUZP2 E.B16, E.B16, E.B16         \
	VSRI  $4, V8.B16, E.B16           \
	VMOV  E.D[0], MASK

// func classifyNEON(buf *byte, out *block, n int, classBits *[128]byte) (high, nul uint64)
//
// 64 bytes a turn, dealt to four registers, so that a lane has four bytes in a row. A lookup turns each byte into a bit
// for each class. Two exchanges make nibbles, each with one class of four bytes, and packing makes masks of those.
// Of the two halves of the table, VTBL gives zero for the characters of the other, and VTBX leaves them as they are.
TEXT ·classifyNEON(SB), NOSPLIT, $0-48
	MOVD buf+0(FP), R0
	MOVD out+8(FP), R1
	MOVD n+16(FP), R2
	MOVD classBits+24(FP), R3
	VLD1.P 64(R3), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1 (R3), [V20.B16, V21.B16, V22.B16, V23.B16]
	VMOVI $0x40, V24.B16
	VMOVI $0x55, V25.B16
	VMOVI $0x33, V26.B16
	VEOR V27.B16, V27.B16, V27.B16
	MOVD ZR, R4
	MOVD ZR, R5

block:
	VLD4 (R0), [V0.B16, V1.B16, V2.B16, V3.B16]
	VTBL V0.B16, [V16.B16, V17.B16, V18.B16, V19.B16], V4.B16
	VTBL V1.B16, [V16.B16, V17.B16, V18.B16, V19.B16], V5.B16
	VTBL V2.B16, [V16.B16, V17.B16, V18.B16, V19.B16], V6.B16
	VTBL V3.B16, [V16.B16, V17.B16, V18.B16, V19.B16], V7.B16
	VEOR V24.B16, V0.B16, V10.B16
	VEOR V24.B16, V1.B16, V11.B16
	VEOR V24.B16, V2.B16, V12.B16
	VEOR V24.B16, V3.B16, V13.B16
	VTBX V10.B16, [V20.B16, V21.B16, V22.B16, V23.B16], V4.B16
	VTBX V11.B16, [V20.B16, V21.B16, V22.B16, V23.B16], V5.B16
	VTBX V12.B16, [V20.B16, V21.B16, V22.B16, V23.B16], V6.B16
	VTBX V13.B16, [V20.B16, V21.B16, V22.B16, V23.B16], V7.B16
	EXCHANGE($1, V25, V4, V5)
	EXCHANGE($1, V25, V6, V7)
	EXCHANGE($2, V26, V4, V6)
	EXCHANGE($2, V26, V5, V7)
	PACK(V4, V5, V10, V12)     // letter number; newline quote
	PACK(V6, V7, V11, V13)     // space blank; upper, and slash or nul
	VST1 [V10.D2, V11.D2, V12.D2], (R1)
	VMOV V10.D[0], R6
	VMOV V13.D[0], R7
	VMOV V13.D[1], R8
	BIC  R7, R6, R6            // lower
	TOP_BITS(V0, V1, V2, V3, R9)
	MOVD ZR, R10               // continuation bytes
	MOVD ZR, R11               // nul
	ORR  R8, R9, R12
	CBNZ R12, rare

store:
	STP (R10, R9), 48(R1)
	STP (R7, R6), 64(R1)
	STP (ZR, R8), 80(R1)
	MOVD R11, 96(R1)
	ORR  R9, R4, R4
	ORR  R11, R5, R5
	ADD  $64, R0
	ADD  $128, R1
	SUBS $1, R2
	BNE  block
	MOVD R4, high+32(FP)
	MOVD R5, nul+40(FP)
	RET

rare:
	VLD4 (R0), [V0.B16, V1.B16, V2.B16, V3.B16]
	VCMEQ V27.B16, V0.B16, V4.B16
	VCMEQ V27.B16, V1.B16, V5.B16
	VCMEQ V27.B16, V2.B16, V6.B16
	VCMEQ V27.B16, V3.B16, V7.B16
	TOP_BITS(V4, V5, V6, V7, R11)
	BIC  R11, R8, R8           // slash
	VSHL $1, V0.B16, V0.B16
	VSHL $1, V1.B16, V1.B16
	VSHL $1, V2.B16, V2.B16
	VSHL $1, V3.B16, V3.B16
	TOP_BITS(V0, V1, V2, V3, R10)
	BIC  R10, R9, R10          // 0x80..0xbf
	B    store
