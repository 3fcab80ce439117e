//go:build !purego

#include "textflag.h"

// func flattenARM64(start *uint64, n int, pos *uint16) (count int)
TEXT ·flattenARM64(SB), NOSPLIT, $0-32
	MOVD start+0(FP), R0
	MOVD n+8(FP), R1
	MOVD pos+16(FP), R2
	MOVD R2, R8
	MOVD ZR, R3                // of the block's first byte
	MOVD $(1<<63), R4

flatten_block:
	MOVD.P 8(R0), R5
	RBIT R5, R5
	CBZ  R5, flatten_next

flatten_bit:
	CLZ  R5, R6
	LSR  R6, R4, R7
	ADD  R3, R6
	MOVH.P R6, 2(R2)
	BICS R7, R5, R5
	BNE  flatten_bit

flatten_next:
	ADD  $64, R3
	SUBS $1, R1
	BNE  flatten_block
	SUB  R8, R2
	LSR  $1, R2
	MOVD R2, count+24(FP)
	RET

// The word from BEGIN to END of the text at R2: length -> kind -> masked key -> hash -> line, which is prefetched.
#define PREPARE(BEGIN, END) \
	MOVHU.P 2(R0), END         \
	ADD  BEGIN, R2, R12        \
	SUB  BEGIN, END, R13       \
	CMP  R9, R13               \
	CSEL HI, R9, R13, R13      \
	ADD  R13<<5, R3, R13       \
	LDP  (R12), (R14, R15)     \
	LDP  (R13), (R16, R17)     \
	AND  R16, R14              \
	AND  R17, R15              \
	LDPW 24(R13), (R16, R17)   \
	MUL  R7, R14, R19          \
	MADD R8, R19, R15, R19     \
	LSR  R16, R19              \
	AND  $-64, R19             \
	ADD  R17, R19              \
	ADD  R4, R19, R20          \
	PRFM (R20), PLDL1KEEP      \
	MOVD 16(R13), R16          \
	AND  R16, R14, R17         \
	ORR  R17, R15              \
	STP.P (R14, R15), 16(R5)   \
	AND  $15, R16              \
	MOVW R16, 288(R6)          \
	MOVW.P R19, 4(R6)

// func prepareARM64(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probes)
//
// Two words a turn, without branches; where n is odd, one more is prepared, from whatever position lies there.
TEXT ·prepareARM64(SB), NOSPLIT, $0-48
	MOVD pos+0(FP), R0
	MOVD n+8(FP), R1
	MOVD buf+16(FP), R2
	MOVD kinds+24(FP), R3
	MOVD lines+32(FP), R4
	MOVD out+40(FP), R5
	ADD  $1152, R5, R6         // lines, after 72 pairs
	MOVD $0x9e3779b97f4a7c15, R7
	MOVD $0xc2b2ae3d27d4eb4f, R8
	MOVD $17, R9
	MOVHU.P 2(R0), R10

prepare_two:
	PREPARE(R10, R11)
	PREPARE(R11, R10)
	SUBS $2, R1
	BGT  prepare_two
	RET

// func matchNEON(p *probes, n int, lines *uint64, values *uint64, missed *uint16, first int) (misses int)
//
// A word a turn, without branches: the value of the way that matches, or zero; then the word's number stays in the
// list.
TEXT ·matchNEON(SB), NOSPLIT, $0-56
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
	MOVD lines+16(FP), R2
	MOVD values+24(FP), R3
	MOVD missed+32(FP), R4
	MOVD first+40(FP), R5
	ADD  $1152, R0, R6
	ADD  $288, R6, R7
	MOVD ZR, R8

match_word:
	VLD2R.P 16(R0), [V0.D2, V1.D2]
	VLD1R.P 4(R7), [V2.S4]
	MOVWU.P 4(R6), R9
	ADD  R2, R9
	VLD1 (R9), [V3.D2, V4.D2, V5.D2, V6.D2]
	VCMTST V2.S4, V2.S4, V2.S4 // all ones for A
	VCMEQ V0.D2, V3.D2, V0.D2
	VCMEQ V1.D2, V4.D2, V1.D2
	VORR V2.B16, V1.B16, V3.B16
	VAND V3.B16, V0.B16, V0.B16 // ways 0 and 1 match
	VAND V2.B16, V1.B16, V1.B16 // ways 2 and 3
	VAND V0.B16, V5.B16, V5.B16
	VBIT V1.B16, V6.B16, V5.B16
	VADDP V5.D2, V5.D2, V5.D2
	VMOV V5.D[0], R10
	MOVD.P R10, 8(R3)
	MOVH R5, (R4)(R8<<1)
	CMP  $0, R10
	CINC EQ, R8, R8
	ADD  $1, R5
	SUBS $1, R1
	BNE  match_word
	MOVD R8, misses+48(FP)
	RET

// func emitARM64(values *uint64, n int, out *uint32, spill *uint32, mask, head uint64) (done, written int)
//
// A value a turn: three ids are stored, then as many kept as there are. Spilled ids are copied 16 at once; it stops
// at a long word and at a value whose ids are gone.
TEXT ·emitARM64(SB), NOSPLIT, $0-64
	MOVD values+0(FP), R0
	MOVD n+8(FP), R1
	MOVD out+16(FP), R2
	MOVD R2, R3

emit_word:
	MOVD.P 8(R0), R4
	AND  $0xfffff, R4, R5
	UBFX $20, R4, $20, R6
	UBFX $40, R4, $20, R7
	LSR  $60, R4, R8
	STPW (R5, R6), (R3)
	MOVW R7, 8(R3)
	CMP  $3, R8
	BHI  emit_spilled
	ADD  R8<<2, R3

emit_next:
	SUBS $1, R1
	BNE  emit_word

emit_end:
	MOVD n+8(FP), R4
	SUB  R1, R4
	MOVD R4, done+48(FP)
	SUB  R2, R3
	LSR  $2, R3
	MOVD R3, written+56(FP)
	RET

emit_spilled:
	CMP  $15, R8
	BNE  emit_end
	MOVD spill+24(FP), R9
	MOVD mask+32(FP), R10
	MOVD head+40(FP), R11
	UBFX $0, R4, $40, R4
	SUB  R4, R11
	ADD  $1, R10, R12
	CMP  R12, R11
	BHI  emit_end
	AND  R10, R4
	ADD  R4<<2, R9
	MOVD R3, R10
	ADD  R7<<2, R3

emit_copy:
	VLD1.P 64(R9), [V0.S4, V1.S4, V2.S4, V3.S4]
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R10)
	SUBS $16, R7
	BHI  emit_copy
	B    emit_next
