// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

// Package fpwalk is a walk along the frame pointers with nothing around it: what
// package shstk is compared with.
package fpwalk

import "unsafe"

func framePointer() uintptr

// A stack's words are no objects of the collector's.
func word(address uintptr) *uintptr {
	return *(**uintptr)(unsafe.Pointer(&address))
}

// Walk fills pcs with the return addresses of the frames from its caller on.
//
//go:nosplit
//go:noinline
//go:norace
//go:nocheckptr
func Walk(pcs []uintptr) int {
	frame := framePointer()
	n := 0
	for ; n < len(pcs) && frame != 0; n++ {
		pcs[n] = *word(frame + 8)
		frame = *word(frame)
	}
	return n
}
