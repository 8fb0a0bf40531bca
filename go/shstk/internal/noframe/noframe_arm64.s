// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && go1.21

#include "textflag.h"
#include "funcdata.h"

// func Call(f func())
TEXT ·Call(SB), NOSPLIT, $8-8
	NO_LOCAL_POINTERS
	MOVD f+0(FP), R26
	MOVD (R26), R0
	MOVD (R29), R29		// the caller's, as if there were no frame here
	CALL (R0)
	SUB $8, RSP, R29
	RET

// func Lost(f func(), frame uintptr)
TEXT ·Lost(SB), NOSPLIT, $8-16
	NO_LOCAL_POINTERS
	MOVD f+0(FP), R26
	MOVD (R26), R0
	MOVD frame+8(FP), R29
	CALL (R0)
	SUB $8, RSP, R29
	RET
