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

// func prepareBMI2(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probe)
//
// A word a turn, without branches: length -> kind -> masked key -> hash -> line, which is prefetched.
TEXT ·prepareBMI2(SB), NOSPLIT, $0-48
	MOVQ pos+0(FP), R8
	MOVQ n+8(FP), CX
	MOVQ buf+16(FP), SI
	MOVQ kinds+24(FP), DI
	MOVQ lines+32(FP), R9
	MOVQ out+40(FP), R10
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
	MOVL    R14, 16(R10)
	MOVL    AX, DX
	ANDL    $15, DX
	MOVL    DX, 20(R10)
	ANDQ    R11, AX
	ORQ     R12, AX
	MOVQ    AX, 8(R10)
	ADDQ    $24, R10
	ADDQ    $2, R8
	MOVQ    BX, AX
	DECQ    CX
	JNZ     prepare_word
	RET

// func lookupAVX2(probes *probe, n int, lines *uint64, out *uint32, spill *uint32, mask, head uint64) (hits, written int)
//
// A word a turn: one compare of four lanes, the value of the matching way, up to three ids stored at once. Ids that were spilled are copied, 16
// at once.
TEXT ·lookupAVX2(SB), NOSPLIT, $0-72
	MOVQ probes+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ lines+16(FP), DI
	MOVQ out+24(FP), R10
	MOVQ spill+32(FP), R11
	MOVQ mask+40(FP), R12
	MOVQ $0x000fffff000fffff, R13

lookup_word:
	VMOVDQU   (SI), X0
	VPERMQ    $0x50, Y0, Y0
	MOVL      16(SI), AX
	VPCMPEQQ  (DI)(AX*1), Y0, Y1
	ADDQ      DI, AX
	VMOVMSKPD Y1, BX
	MOVL      BX, DX
	SHRL      $2, DX
	ORL       20(SI), DX
	ANDL      DX, BX
	JZ        lookup_end
	TZCNTL    BX, BX
	MOVQ      32(AX)(BX*8), R8
	PDEPQ     R13, R8, R9
	MOVQ      R9, (R10)
	MOVQ      R8, R9
	SHRQ      $40, R9
	ANDL      $0xfffff, R9
	MOVL      R9, 8(R10)
	MOVQ      R8, DX
	SHRQ      $60, DX
	CMPL      DX, $3
	JHI       lookup_spilled
	LEAQ      (R10)(DX*4), R10

lookup_next:
	ADDQ $24, SI
	DECQ CX
	JNZ  lookup_word
	JMP  lookup_end

lookup_spilled:
	MOVQ R8, AX
	SHLQ $24, AX
	SHRQ $24, AX
	MOVQ head+48(FP), DX
	SUBQ AX, DX
	LEAQ 1(R12), BX
	CMPQ DX, BX
	JHI  lookup_end
	ANDQ R12, AX
	VMOVDQU (R11)(AX*4), Y0
	VMOVDQU 32(R11)(AX*4), Y1
	VMOVDQU Y0, (R10)
	VMOVDQU Y1, 32(R10)
	LEAQ (R10)(R9*4), R10
	JMP  lookup_next

lookup_end:
	VZEROUPPER
	MOVQ n+8(FP), AX
	SUBQ CX, AX
	MOVQ AX, hits+56(FP)
	SUBQ out+24(FP), R10
	SHRQ $2, R10
	MOVQ R10, written+64(FP)
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

// func mergeAVX512(t *mergeTables, word *byte, n int, sym *uint32, out *uint32) (count int)
//
// The array merger of bpe.go for 2..16 bytes, 16 of them readable, with nothing but the loop's branch depending on data. Z0 holds rank<<6 | position
// of the pair at each position, R8 the live positions with a sentinel on both sides; sym has room for 32 symbols.
TEXT ·mergeAVX512(SB), NOSPLIT, $0-48
	MOVQ t+0(FP), SI
	MOVQ word+8(FP), AX
	MOVQ n+16(FP), CX
	MOVQ sym+24(FP), DI

	VPMOVZXBD (AX), Z1              // bytes at lane p-1 for position p
	VPMOVZXBD ·iota64+0(SB), Z6
	MOVL $0xffff, DX
	KMOVW DX, K1
	MOVQ 0(SI), R9
	VPGATHERDD (R9)(Z1*4), K1, Z2   // symbols
	VMOVDQU32 Z2, 4(DI)
	MOVL $0xfffff, DX
	MOVL DX, (DI)
	MOVL DX, 4(DI)(CX*4)
	// Pairs: lane p holds word[p-1]<<8 | word[p], for p in 1..n-1.
	MOVL $1, DX
	SHLXL CX, DX, DX
	SUBL $2, DX
	KMOVW DX, K1
	VALIGND $15, Z1, Z1, Z3         // lane p: byte p-1 (lane 0 is not used)
	VPSLLD $8, Z3, Z3
	VPORD  Z1, Z3, Z3
	MOVL $-1, DX
	VPBROADCASTD DX, Z5
	VMOVDQA32 Z5, Z0
	MOVQ 8(SI), R9
	KMOVW K1, K2
	VPGATHERDD (R9)(Z3*4), K2, Z4
	VPSLLD $6, Z4, Z4
	VPORD  Z6, Z4, K1, Z0

	LEAQ 2(CX), DX
	MOVL $-1, R8
	BZHIQ DX, R8, R8
	MOVQ 16(SI), R9
	MOVQ 24(SI), R10
	MOVQ 40(SI), R11
	MOVL 48(SI), R12
	MOVL 52(SI), R13

merge_next:
	VEXTRACTI64X4 $1, Z0, Y1
	VPMINUD Y1, Y0, Y1
	VEXTRACTI128 $1, Y1, X2
	VPMINUD X2, X1, X1
	VPSHUFD $0x4e, X1, X2
	VPMINUD X2, X1, X1
	VPSHUFD $0xb1, X1, X2
	VPMINUD X2, X1, X1
	VMOVD X1, AX
	CMPL AX, $0x3fffffc0
	JAE  merge_done
	MOVL AX, CX
	ANDL $63, AX              // i
	SHRL $6, CX
	MOVQ 32(SI), DX
	TESTQ DX, DX
	JZ   merge_linear
	MOVL (DX)(CX*4), BX       // the merged symbol
merge_result:
	MOVQ $-2, DX
	SHLXQ AX, DX, DX
	ANDQ R8, DX
	TZCNTQ DX, R15            // j, which dies
	BLSRQ DX, DX
	TZCNTQ DX, CX             // k, the next one
	BTRQ R15, R8
	BZHIQ AX, R8, DX
	LZCNTQ DX, DX
	XORQ $63, DX              // h, the one before
	MOVL $1, R14
	SHLXL R15, R14, R15
	KMOVW R15, K3
	VMOVDQA32 Z5, K3, Z0
	SHLXL AX, R14, R15
	KMOVW R15, K1
	SHLXL DX, R14, R15
	KMOVW R15, K2
	MOVL BX, (DI)(AX*4)
	MOVL (DI)(CX*4), R14
	MOVL (DI)(DX*4), R15
	MOVQ BX, CX
	SHLQ $20, CX
	ORQ  CX, R14              // key with the next
	SHLQ $20, R15
	ORQ  BX, R15              // key with the one before

	MOVQ R14, BX
	IMULQ R11, BX
	SHRXQ R12, BX, CX
	MOVWLZX (R9)(CX*2), CX
	SHRQ $8, BX
	IMULL BX, CX
	SHRXL R13, CX, CX
	MOVQ (R10)(CX*8), CX
	MOVL CX, BX
	ANDL $0xffffff, BX
	SHRQ $24, CX
	CMPQ CX, R14
	MOVL $0xffffff, CX
	CMOVLNE CX, BX
	SHLL $6, BX
	ORL  AX, BX
	VPBROADCASTD BX, K1, Z0

	MOVQ R15, BX
	IMULQ R11, BX
	SHRXQ R12, BX, R14
	MOVWLZX (R9)(R14*2), R14
	SHRQ $8, BX
	IMULL BX, R14
	SHRXL R13, R14, R14
	MOVQ (R10)(R14*8), R14
	MOVL R14, BX
	ANDL $0xffffff, BX
	SHRQ $24, R14
	CMPQ R14, R15
	CMOVLNE CX, BX
	SHLL $6, BX
	ORL  DX, BX
	VPBROADCASTD BX, K2, Z0
	JMP  merge_next

merge_linear:
	MOVL 56(SI), BX
	ADDL CX, BX
	JMP  merge_result

merge_done:
	MOVQ n+16(FP), CX
	SHRQ $1, R8
	BZHIQ CX, R8, R8
	KMOVW R8, K1
	MOVQ out+32(FP), DX
	VMOVDQU32 4(DI), Z1
	VPCOMPRESSD Z1, K1, Z1
	VMOVDQU32 Z1, (DX)
	POPCNTQ R8, R8
	MOVQ R8, count+40(FP)
	VZEROUPPER
	RET
