// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import "runtime"

// Frames returns the functions, files and lines of what Callers returned: the same that
// runtime.CallersFrames has for what runtime.Callers returns, with inlined functions
// and without wrappers, in every release of Go.
func Frames(pcs []uintptr) *runtime.Frames {
	return runtime.CallersFrames(expand(pcs))
}

// expand returns what runtime.Callers would have. What it has returned already, for
// Callers, comes out as it went in.
func expand(pcs []uintptr) []uintptr {
	all := make([]uintptr, 0, len(pcs)+len(pcs)/2)
	for i := 0; i < len(pcs); i++ {
		says := []uintptr{pcs[i]}
		if known, ok := expansion.Load(pcs[i]); ok {
			says = known.([]uintptr)
		}
		all = append(all, says...)
		for j := 1; j < len(says) && i+1 < len(pcs) && pcs[i+1] == says[j]; j++ {
			i++
		}
	}
	return all
}
