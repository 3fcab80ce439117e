//go:build !purego

#include "textflag.h"

// Twin of keysGo. For each span: the chunk's first 16 bytes, masked to its length, their hash, the line, a
// prefetch.
//
// func keysARM64(text *byte, spans *Span, n int, rules *keyRule, recs *record, lines *line)
TEXT ·keysARM64(SB), NOSPLIT, $0-48
	MOVD text+0(FP), R0
	MOVD spans+8(FP), R1
	MOVD n+16(FP), R2
	MOVD rules+24(FP), R3
	MOVD recs+32(FP), R4
	MOVD lines+40(FP), R5
	MOVD $0x9E3779B97F4A7C15, R6
	MOVD $0xC2B2AE3D27D4EB4F, R7
	MOVD $17, R8
	CBZ  R2, keysDone

keysLoop:
	LDPW.P 8(R1), (R9, R10)      // start, end
	SUBW R9, R10
	CMPW R8, R10
	CSELW HI, R8, R10, R10
	ADD  R9, R0, R9
	ADD  R10<<5, R3, R10         // its rule
	LDP  (R9), (R11, R12)
	LDP  (R10), (R13, R14)
	LDPW 16(R10), (R15, R16)     // and, add
	LDPSW 24(R10), (R17, R19)    // f, or
	AND  R13, R11
	AND  R14, R12
	ORR  R19, R11
	STP.P (R11, R12), 16(R4)
	EOR  R6, R11
	EOR  R7, R12
	MUL  R11, R12, R13
	UMULH R11, R12, R14
	EOR  R14, R13
	AND  R15, R13
	ADDW R16, R13
	ADD  R5, R13, R14
	PRFM (R14), PLDL1KEEP
	STP.P (R13, R17), 16(R4)
	SUBS $1, R2
	BNE  keysLoop

keysDone:
	RET

// Twin of probeGo.
//
// func probeNEON(recs *record, i, n int, lines *line, dst *uint32, spill *uint16,
//	size, head uint32) (next, written int)
TEXT ·probeNEON(SB), NOSPLIT, $0-72
	MOVD recs+0(FP), R0
	MOVD i+8(FP), R1
	MOVD n+16(FP), R2
	MOVD lines+24(FP), R3
	MOVD dst+32(FP), R4
	MOVD R4, R5
	ADD  R1<<5, R0, R6
	ADD  R2<<5, R0, R7

probeLoop:
	CMP  R7, R6
	BGE  probeDone
	VLD2R.P 16(R6), [V0.D2, V1.D2] // lo, hi
	LDP.P 16(R6), (R8, R9)       // off, f
	ADD  R3, R8
	VDUP R9, V2.D2
	VLD1 (R8), [V3.D2, V4.D2]
	VCMTST V2.D2, V2.D2, V2.D2   // all ones in a line of four
	VCMEQ V0.D2, V3.D2, V3.D2
	VCMEQ V0.D2, V4.D2, V0.D2
	VCMEQ V1.D2, V4.D2, V1.D2
	VORR V2.B16, V1.B16, V1.B16
	VAND V1.B16, V3.B16, V3.B16  // ways 0 and 1 match
	VAND V2.B16, V0.B16, V0.B16  // ways 2 and 3
	VUZP1 V0.S4, V3.S4, V3.S4
	VUZP1 V3.H8, V3.H8, V3.H8
	VMOV V3.D[0], R10            // 16 bits a way
	CBZ  R10, probeMiss
	RBIT R10, R10
	CLZ  R10, R10
	ADD  R10>>1, R8              // 8 bytes a way
	FMOVD 32(R8), F0
	MOVHU 38(R8), R11
	VUXTL V0.H4, V0.S4
	VST1 [V0.S4], (R5)
	CMP  $3, R11
	BHI  probeMore

probeNext:
	ADD  R11<<2, R5
	B    probeLoop

probeMiss:
	SUB  $32, R6

probeDone:
	SUB  R0, R6
	LSR  $5, R6
	MOVD R6, next+56(FP)
	SUB  R4, R5
	LSR  $2, R5
	MOVD R5, written+64(FP)
	RET

probeMore:
	CMP  $7, R11
	BHI  probeSpill
	FMOVD 48(R8), F0
	VUXTL V0.H4, V0.S4
	ADD  $12, R5, R12
	VST1 [V0.S4], (R12)
	B    probeNext

probeSpill:
	AND  $0x7FFF, R11
	CMP  $16, R11
	BHI  probeMiss
	MOVWU 32(R8), R12
	MOVWU size+48(FP), R13
	MOVWU head+52(FP), R14
	SUBW R12, R14
	CMPW R13, R14
	BHI  probeMiss
	SUB  $1, R13
	AND  R13, R12
	MOVD spill+40(FP), R13
	ADD  R12<<1, R13
	VLD1 (R13), [V0.H8, V1.H8]
	VUXTL2 V0.H8, V3.S4
	VUXTL V0.H4, V2.S4
	VUXTL2 V1.H8, V5.S4
	VUXTL V1.H4, V4.S4
	VST1 [V2.S4, V3.S4, V4.S4, V5.S4], (R5)
	B    probeNext

// From and To of the bytes in X: 0x7f for those from 0x80, which neither half of a table replaces.
#define CLASSES(X, FROM, TO) \
	VCMTST V14.B16, X.B16, TO.B16  \
	VUSHR $1, TO.B16, TO.B16       \
	VMOV TO.B16, FROM.B16          \
	VEOR V15.B16, X.B16, V13.B16   \
	VTBX X.B16, [V16.B16, V17.B16, V18.B16, V19.B16], FROM.B16 \
	VTBX V13.B16, [V20.B16, V21.B16, V22.B16, V23.B16], FROM.B16 \
	VTBX X.B16, [V24.B16, V25.B16, V26.B16, V27.B16], TO.B16 \
	VTBX V13.B16, [V28.B16, V29.B16, V30.B16, V31.B16], TO.B16

// A mask of the top bits of the 64 bytes that VLD4 dealt to A, B, C, E; B and E are overwritten.
#define TOP_BITS(A, B, C, E, MASK) \
	VSRI $1, A.B16, B.B16          \
	VSRI $1, C.B16, E.B16          \
	VSRI $2, B.B16, E.B16          \
	VUZP1 E.B16, E.B16, V13.B16    \
	VUZP2 E.B16, E.B16, E.B16      \
	VSRI $4, V13.B16, E.B16        \
	VMOV E.D[0], MASK

// Twin of classifyGo, 64 bytes at a time: two lookups in tables of 128 bytes. The bytes are dealt to four registers, so
// the byte before another is in the same lane of the register before, or in the lane before of the last register.
//
// func classifyNEON(text *byte, t *Tables, words int, cut, gap, non *uint64)
TEXT ·classifyNEON(SB), NOSPLIT, $0-48
	MOVD text+0(FP), R0
	MOVD t+8(FP), R1
	MOVD words+16(FP), R2
	MOVD cut+24(FP), R3
	MOVD gap+32(FP), R4
	MOVD non+40(FP), R5
	VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R1), [V20.B16, V21.B16, V22.B16, V23.B16]
	VLD1.P 64(R1), [V24.B16, V25.B16, V26.B16, V27.B16]
	VLD1 (R1), [V28.B16, V29.B16, V30.B16, V31.B16]
	VMOVI $0x80, V14.B16
	VMOVI $0x40, V15.B16
	SUB  $1, R0, R6
	VLD1R (R6), [V0.B16]
	CLASSES(V0, V12, V4)

classifyLoop:
	VLD4.P 64(R0), [V0.B16, V1.B16, V2.B16, V3.B16]
	CLASSES(V3, V11, V7)
	VEXT $15, V11.B16, V12.B16, V12.B16
	CLASSES(V0, V8, V4)
	CLASSES(V1, V9, V5)
	CLASSES(V2, V10, V6)
	TOP_BITS(V0, V1, V2, V3, R6)
	VCMTST V12.B16, V4.B16, V0.B16
	VCMTST V8.B16, V5.B16, V1.B16
	VCMTST V9.B16, V6.B16, V2.B16
	VCMTST V10.B16, V7.B16, V3.B16
	VMOV V11.B16, V12.B16
	TOP_BITS(V0, V1, V2, V3, R7)
	TOP_BITS(V4, V5, V6, V7, R8)
	MVN  R7, R7
	MOVD.P R7, 8(R3)
	MOVD.P R8, 8(R4)
	MOVD.P R6, 8(R5)
	SUBS $1, R2
	BNE  classifyLoop
	RET
