// SPDX-License-Identifier: LGPL-2.1-or-later

// Package shstktraceback shows C frames in the stacks that Go's runtime takes: in CPU
// profiles of runtime/pprof, in the traces of panics and of goroutines.
//
// A program imports it, and that is all:
//
//	import _ "shstk/go/shstktraceback"
//
// Without it a sample in C is charged to runtime.cgocall. With it the stack has the C
// functions above that, and those below Go functions that C calls back, up to the 32
// addresses that the runtime keeps. Stacks are taken by libshstk, which needs no frame
// pointers, no lock and no allocation in a signal handler.
//
// Names of C functions: go tool pprof finds them in the program itself. Nothing in the
// process looks them up, unless package shstktraceback/symbolize is imported.
//
// It needs libshstk (shstk_go.h), found by the C compiler, or by CGO_CFLAGS and
// CGO_LDFLAGS. C libraries that are loaded by dlopen() are looked at when C next calls Go, or
// at the next garbage collection. A sample in one of them that comes before takes longer, unless
// Warm is called after dlopen().
package shstktraceback

/*
#cgo LDFLAGS: -lshstk
#include <shstk_go.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// The runtime's own description of the program. Its first words are the same from Go 1.16
// on: a pointer, six slices, a pointer, the lowest and the highest address of functions,
// and then these two.
//
//go:linkname lastmoduledata runtime.lastmoduledatap
var lastmoduledata *moduledata

type moduledata struct {
	_           uintptr
	_           [6][]byte
	_           uintptr
	minpc       uintptr
	maxpc       uintptr
	text, etext uintptr
}

// Warm looks up what samples need to know about the C libraries that are loaded now. If none was
// loaded since it was done last, it takes as long as a call of C.
func Warm() {
	m := lastmoduledata
	C.shstk_go_set_text(C.uintptr_t(m.text), C.uintptr_t(m.etext))
}

// sentinel is garbage at once, so that each collection is noticed: that is when libraries that
// were loaded meanwhile are looked up.
type sentinel struct{ _ [32]byte }

func (s *sentinel) collected() {
	Warm()
	runtime.SetFinalizer(s, (*sentinel).collected)
}

func init() {
	Warm()
	runtime.SetFinalizer(new(sentinel), (*sentinel).collected)
	runtime.SetCgoTraceback(0, unsafe.Pointer(C.shstk_go_traceback),
		unsafe.Pointer(C.shstk_go_context), nil)
}
