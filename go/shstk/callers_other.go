// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build !(linux && gc && (amd64 || (arm64 && go1.21)))

package shstk

import "runtime"

// Callers is runtime.Callers(1, pcs) on this machine: see the package's documentation.
//
//go:noinline
func Callers(pcs []uintptr) int {
	return runtime.Callers(2, pcs)
}

// Frames is runtime.CallersFrames(pcs) on this machine.
func Frames(pcs []uintptr) *runtime.Frames {
	return runtime.CallersFrames(pcs)
}
