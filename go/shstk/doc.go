// SPDX-License-Identifier: LGPL-2.1-or-later

// Package shstk takes stack traces of the calling goroutine many times faster than
// runtime.Callers, with the same functions in them.
//
//	var pcs [256]uintptr
//	n := shstk.Callers(pcs[:])
//	frames := shstk.Frames(pcs[:n]) // when they are needed: names, files, lines
//
// It is Go and assembly for Linux on amd64 and arm64, without cgo and without a change of
// the runtime. Elsewhere, on arm64 before Go 1.21, and whenever it is not sure of a
// frame, it is runtime.Callers.
//
// # How it works
//
// Callers follows the frame pointers that Go's compiler keeps. Three things make that
// exact and fast:
//
// Learned sizes. The frame of a Go function has the same size whenever it is at the same
// return address. When a return address is met for the first time, runtime.Callers is
// asked once, and the sizes of all frames of that stack are learned if both see the same
// frames. From then on a frame is accepted only if its return address was learned and
// the way to the next frame is what was learned for it. Where frame pointers skip
// functions, below assembly that keeps none or a panic that a signal caused, the two
// differ; then the address is remembered as one without a size, and stacks with it are
// for runtime.Callers each time.
//
// A verified memo. From some 16 frames on, the last trace of the goroutine is kept: for
// each frame its distance from the upper end of the stack, which stays the same when the
// runtime moves the stack, and its return address. A trace walks until it meets a frame
// that is remembered; above that all return addresses are read from the stack and
// compared, which needs no walk from one frame to the next. One that differs is taken
// as it is on the stack, and the walk goes on from there. So nothing has to be
// invalidated, neither by a stack that grows or shrinks nor by a goroutine that is the
// next one to use the same g, and every address that is returned was read during the
// call. A memo is used without a lock: it belongs to one goroutine, which runs on one
// thread at a time. Memos that are not used between two collections are given up.
//
// One function of assembly. The runtime preempts no goroutine in assembly, so a stack
// is not moved while it is read. It is read from the caller's frame to stack.hi only.
// No return address is changed: panics, stack growth, debuggers and perf see the stack
// that they know.
//
// # What comes back
//
// Return addresses as they are on the stack: one for each frame, also for wrappers that
// the compiler makes, none for inlined functions. Frames adds and removes what
// runtime.Callers would have; runtime.CallersFrames does not, or not in every release.
//
// # Costs
//
// The first trace through new code costs some of runtime.Callers. Learned sizes take 64
// to 128 bytes for each return address, at most 16 MiB, until the program ends; memos 2.5 KiB
// or more for each goroutine that takes deep traces, at most 16 MiB in all, after which
// traces are walks. See the benchmarks: go test -bench . -run '^$'; and, for
// machines that are busy, -bench Ratio -benchtime 1x -rounds 1000.
//
// # Hardware shadow stacks
//
// Intel's, AMD's and Arm's CPUs can keep return addresses on a second stack, which could
// be copied at once. Go programs cannot have them today: the runtime switches goroutines
// by setting the stack pointer and jumping, and so the next return would not match the
// shadow stack and end the program. Each goroutine would need a shadow stack of its own, made
// by a system call and switched with the ordinary one, and Go's linker would have to
// mark programs as ready for it. Nothing of this is in Go 1.27.
package shstk
