// SPDX-License-Identifier: GPL-2.0-or-later

// Command versus is what providers of runtime.SetCgoTraceback are compared with: it is
// built with each of them, and with none.
//
//	versus profile FILE FUNCTION DEPTH   writes a CPU profile of so many frames of C
//	versus signals DEPTH ROUNDS          prints the nanoseconds of a signal below them
package main

// #include "calls.h"
import "C"

import (
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"time"
)

//export goBack
func goBack(n C.int) C.int {
	return goSpin(n)
}

//go:noinline
func goSpin(n C.int) C.int {
	sum := C.int(0)
	for i := C.int(0); i < n; i++ {
		sum += i & sum
	}
	return sum
}

func number(text string) C.int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return C.int(n)
}

func profile(path, function string, depth C.int) {
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		switch function {
		case "c_small":
			C.c_small(depth, 1000000)
		case "c_large":
			C.c_large(depth, 1000000)
		case "c_below":
			C.c_below(depth, 1000000)
		}
	}
	pprof.StopCPUProfile()
	if err := file.Close(); err != nil {
		panic(err)
	}
}

func main() {
	switch os.Args[1] {
	case "profile":
		profile(os.Args[2], os.Args[3], number(os.Args[4]))
	case "signals":
		fmt.Println(C.c_signals(number(os.Args[2]), number(os.Args[3])))
	}
}
