//go:build !purego

#include "textflag.h"

// func prefetchLines(p *byte, n int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

loop:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $64, R1, R1
	BGT  loop
	RET
