// SPDX-License-Identifier: LGPL-2.1-or-later

// Package symbolize adds names to what package shstktraceback shows: panics, crashes,
// runtime.CallersFrames and the profiles of runtime/pprof have the functions, files and
// lines of C code, with what was inlined.
//
// A program imports it, and that is all; package shstktraceback comes with it:
//
//	import _ "shstk/go/shstktraceback/symbolize"
//
// It is a package of its own because its library, libshstk-go-symbolize, is linked with
// elfutils (LGPL-3.0-or-later or GPL-2.0-or-later), which not every program wants.
//
// It needs shstk_go_symbolize.h and that library, found by the C compiler, or by
// CGO_CFLAGS and CGO_LDFLAGS. Names are looked up by a thread of its own, which sleeps
// until there is something to look up.
package symbolize

/*
#cgo LDFLAGS: -lshstk -lshstk-go-symbolize
#include <shstk_go.h>
#include <shstk_go_symbolize.h>
*/
import "C"

import (
	"runtime"
	"unsafe"

	_ "shstk/go/shstktraceback"
)

// The runtime takes a function that it did not have, if the others are the same again.
func init() {
	if C.shstk_go_symbolize_start() != 0 {
		return // there are no names, as without this package
	}
	runtime.SetCgoTraceback(0, unsafe.Pointer(C.shstk_go_traceback),
		unsafe.Pointer(C.shstk_go_context), unsafe.Pointer(C.shstk_go_symbolize))
}
