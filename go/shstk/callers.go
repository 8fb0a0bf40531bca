// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import "runtime"

// What capture answers when it has no trace.
const (
	unknown = -1 // a return address whose frame's size is not learned yet
	refused = -2 // this stack is for runtime.Callers
)

// Where a memo would pay that is not there, or a larger one than is, the number of the
// slot for it, plus one, is above this bit of the answer.
const askShift = 31

// capture is Callers for what is known. It has to be called by Callers itself.
//
//go:noescape
func capture(pcs []uintptr) int

// Callers fills pcs with the return addresses of the calling goroutine, innermost
// first, and returns how many there are. The first one is in the caller of Callers, as
// with runtime.Callers(1, pcs). Each was read from the stack during the call.
//
// They are what is on the stack: an inlined function has none of its own, and wrappers
// that the compiler makes have one. Frames turns them into the frames that
// runtime.Callers would have shown.
//
// Where Callers cannot be sure of each frame it hands on to runtime.Callers: while the
// code of a new call is learned, below a signal's panic, in callbacks from C, and below
// assembly that keeps no frame pointer.
//
//go:noinline
func Callers(pcs []uintptr) int {
	n := capture(pcs)
	if uint64(n) < 1<<askShift {
		return n
	}
	if n == unknown && learn() {
		n = capture(pcs)
	}
	if n < 0 {
		return runtime.Callers(2, pcs)
	}
	if uint64(n) >= 1<<askShift {
		slot := n>>askShift - 1
		n &= 1<<askShift - 1
		provide(&slots[slot], n)
	}
	return n
}
