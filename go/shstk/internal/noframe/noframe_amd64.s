// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc

#include "textflag.h"
#include "funcdata.h"

// func Call(f func())
TEXT ·Call(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ (TLS), R14
	XORPS X15, X15
	MOVQ f+0(FP), DX
	MOVQ (DX), AX
	CALL AX
	RET

// func Lost(f func(), frame uintptr)
TEXT ·Lost(SB), NOSPLIT, $8-16
	NO_LOCAL_POINTERS
	MOVQ (TLS), R14
	XORPS X15, X15
	MOVQ f+0(FP), DX
	MOVQ (DX), AX
	MOVQ frame+8(FP), BP	// which is restored on return
	CALL AX
	RET
