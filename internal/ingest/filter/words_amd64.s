//go:build !purego

#include "textflag.h"
#include "go_asm.h"

DATA ·ranges+0(SB)/4, $0x20202020
DATA ·ranges+4(SB)/4, $0x61616161
DATA ·ranges+8(SB)/4, $0x19191919
DATA ·ranges+12(SB)/4, $0x30303030
DATA ·ranges+16(SB)/4, $0x09090909
GLOBL ·ranges(SB), RODATA|NOPTR, $20

// OUT holds the bytes of IN that are letters or digits of ASCII as 0xff; T is used.
#define WORDS(IN, OUT, T) \
	VPOR     Y11, IN, OUT  \
	VPSUBB   Y12, OUT, OUT \
	VPMINUB  Y13, OUT, T   \
	VPCMPEQB T, OUT, OUT   \
	VPSUBB   Y14, IN, IN   \
	VPMINUB  Y15, IN, T    \
	VPCMPEQB T, IN, IN     \
	VPOR     IN, OUT, OUT

// func classifyAVX2(text *byte) (word, high uint64)
TEXT ·classifyAVX2(SB), NOSPLIT, $0-24
	MOVQ text+0(FP), SI
	VPBROADCASTD ·ranges+0(SB), Y11
	VPBROADCASTD ·ranges+4(SB), Y12
	VPBROADCASTD ·ranges+8(SB), Y13
	VPBROADCASTD ·ranges+12(SB), Y14
	VPBROADCASTD ·ranges+16(SB), Y15
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPMOVMSKB Y0, R8
	VPMOVMSKB Y1, R9
	SHLQ $32, R9
	ORQ  R9, R8
	WORDS(Y0, Y2, Y4)
	WORDS(Y1, Y3, Y5)
	VPMOVMSKB Y2, R10
	VPMOVMSKB Y3, R11
	SHLQ $32, R11
	ORQ  R11, R10
	VZEROUPPER
	MOVQ R10, word+8(FP)
	MOVQ R8, high+16(FP)
	RET

DATA ·mixing+0(SB)/8, $0xbf58476d1ce4e5b9
DATA ·mixing+8(SB)/8, $0x94d049bb133111eb
DATA ·mixing+16(SB)/8, $0x9fb21c651e98df25 // shingleFactor
DATA ·mixing+24(SB)/8, $0x6d696e6861736831 // roundSeed1
DATA ·mixing+32(SB)/8, $0x6d696e6861736832 // roundSeed2
DATA ·mixing+40(SB)/8, $0x100000001b3 // wordFactor
DATA ·mixing+48(SB)/8, $0xff
DATA ·mixing+56(SB)/8, $1
DATA ·mixing+64(SB)/8, $8
GLOBL ·mixing(SB), RODATA|NOPTR, $72

// The words of Z are mixed as by mix; T is used.
#define MIX(Z, T) \
	VPSRLQ  $30, Z, T \
	VPXORQ  T, Z, Z   \
	VPMULLQ Z31, Z, Z \
	VPSRLQ  $27, Z, T \
	VPXORQ  T, Z, Z   \
	VPMULLQ Z30, Z, Z \
	VPSRLQ  $31, Z, T \
	VPXORQ  T, Z, Z

// One byte of each of eight words: those that have it take it in, and the rest of it is moved down.
#define STEP(BYTES) \
	VPCMPUQ $6, Z26, Z1, K1     \
	VPANDQ  Z28, BYTES, Z3      \
	VPXORQ  Z3, Z0, Z3          \
	VPMULLQ Z29, Z3, K1, Z0     \
	VPSRLQ  $8, BYTES, BYTES    \
	VPADDQ  Z27, Z26, Z26

#define STEPS(BYTES) \
	STEP(BYTES) \
	STEP(BYTES) \
	STEP(BYTES) \
	STEP(BYTES) \
	STEP(BYTES) \
	STEP(BYTES) \
	STEP(BYTES) \
	STEP(BYTES)

// func hashAVX512(b *batch, words *uint64, n int)
TEXT ·hashAVX512(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), SI
	MOVQ words+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTQ ·mixing+0(SB), Z31
	VPBROADCASTQ ·mixing+8(SB), Z30
	VPBROADCASTQ ·mixing+40(SB), Z29
	VPBROADCASTQ ·mixing+48(SB), Z28
	VPBROADCASTQ ·mixing+56(SB), Z27
	VPBROADCASTQ ·mixing+64(SB), Z25

hash_eight:
	VMOVDQU64 (SI), Z0         // begun
	VMOVDQU64 batch_low(SI), Z2
	VMOVDQU64 batch_size(SI), Z1
	VPXORQ    Z26, Z26, Z26
	STEPS(Z2)
	VPCMPUQ   $6, Z25, Z1, K2
	KORTESTW  K2, K2
	JZ        hash_mix
	VMOVDQU64 batch_high(SI), Z2
	STEPS(Z2)

hash_mix:
	MIX(Z0, Z3)
	VMOVDQU64 Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JGT  hash_eight
	VZEROUPPER
	RET

// func shinglesAVX512(words, x, y *uint64, n int)
TEXT ·shinglesAVX512(SB), NOSPLIT, $0-32
	MOVQ words+0(FP), SI
	MOVQ x+8(FP), DI
	MOVQ y+16(FP), DX
	MOVQ n+24(FP), CX
	VPBROADCASTQ ·mixing+0(SB), Z31
	VPBROADCASTQ ·mixing+8(SB), Z30
	VPBROADCASTQ ·mixing+16(SB), Z29
	VPBROADCASTQ ·mixing+24(SB), Z28
	VPBROADCASTQ ·mixing+32(SB), Z27

shingles_eight:
	VPMULLQ   (SI), Z29, Z0
	VPADDQ    8(SI), Z0, Z0
	VPMULLQ   Z29, Z0, Z0
	VPADDQ    16(SI), Z0, Z0
	VPMULLQ   Z29, Z0, Z0
	VPADDQ    24(SI), Z0, Z0
	VPMULLQ   Z29, Z0, Z0
	VPADDQ    32(SI), Z0, Z0
	VPXORQ    Z28, Z0, Z1
	VPXORQ    Z27, Z0, Z2
	MIX(Z1, Z3)
	MIX(Z2, Z4)
	VMOVDQU64 Z1, (DI)
	VMOVDQU64 Z2, (DX)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, DX
	SUBQ $8, CX
	JGT  shingles_eight
	VZEROUPPER
	RET

// func foldAVX512(values *uint32, sketch *byte, n int)
TEXT ·foldAVX512(SB), NOSPLIT, $0-24
	MOVQ values+0(FP), SI
	MOVQ sketch+8(FP), DI
	MOVQ n+16(FP), CX
	VPBROADCASTQ ·mixing+0(SB), Z31
	VPBROADCASTQ ·mixing+8(SB), Z30

fold_eight:
	VPMOVZXDQ (SI), Z0
	MIX(Z0, Z1)
	VPMOVQB   Z0, (DI)
	ADDQ $32, SI
	ADDQ $8, DI
	SUBQ $8, CX
	JGT  fold_eight
	VZEROUPPER
	RET
