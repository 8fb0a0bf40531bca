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

// In the place of the capacity of capture's argument: such answers are wanted.
const tell = -1

// capture is Callers for what is known; Callers itself has to call it. Where there is more to do,
// it answers as above if told so, and otherwise jumps to slow or handOn, which then are as if
// Callers had called them.
//
//go:noescape
func capture(pcs []uintptr) int

// attempt has capture take a trace as if called from further up, and returns its answer. 1 is
// the function that calls attempt.
//
//go:noescape
func attempt(pcs []uintptr, up int) int

// From attempt in slow up to Callers. Between them is a wrapper, which the compiler makes for what
// assembly jumps to.
const fromSlow = 3

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
//go:nosplit
//go:noinline
//go:norace
func Callers(pcs []uintptr) int {
	return capture(pcs)
}

// slow is Callers where something is to be learned, or a memo would pay.
//
//go:noinline
func slow(pcs []uintptr) int {
	n := attempt(pcs, fromSlow)
	if n == unknown && learn() {
		n = attempt(pcs, fromSlow)
	}
	if n < 0 {
		return runtime.Callers(3, pcs)
	}
	if n >= 1<<askShift {
		slot := n>>askShift - 1
		n &= 1<<askShift - 1
		provide(&slots[slot], n)
	}
	return n
}

// handOn is Callers for a stack that it cannot be sure of.
//
//go:noinline
func handOn(pcs []uintptr) int {
	return runtime.Callers(3, pcs)
}
