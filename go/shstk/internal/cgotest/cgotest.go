// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && cgo && (amd64 || (arm64 && go1.21))

// Package cgotest has C code between Go functions, for tests.
package cgotest

// #include <stdint.h>
// void shstk_test_back(uintptr_t number);
// int shstk_test_thread(uintptr_t number);
// int shstk_test_handler(uintptr_t number);
// #cgo LDFLAGS: -lpthread
import "C"

import "runtime/cgo"

//export shstkTestBack
func shstkTestBack(number C.uintptr_t) {
	cgo.Handle(number).Value().(func())()
}

// Back has C code call f.
func Back(f func()) {
	h := cgo.NewHandle(f)
	defer h.Delete()
	C.shstk_test_back(C.uintptr_t(h))
}

// Thread has a thread that Go has not made call f.
func Thread(f func()) bool {
	h := cgo.NewHandle(f)
	defer h.Delete()
	return C.shstk_test_thread(C.uintptr_t(h)) == 0
}

// Handler has a signal handler of C code call f.
func Handler(f func()) bool {
	h := cgo.NewHandle(f)
	defer h.Delete()
	return C.shstk_test_handler(C.uintptr_t(h)) == 0
}
