// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && go1.21

#include "textflag.h"

// func framePointer() uintptr
TEXT ·framePointer(SB), NOSPLIT|NOFRAME, $0-8
	MOVD R29, ret+0(FP)
	RET
