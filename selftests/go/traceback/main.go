// SPDX-License-Identifier: GPL-2.0-or-later

// Command traceback writes a CPU profile of itself to the file that is named.
//
//	traceback FILE SECONDS callbacks   calls C, which calls Go, which calls C again
//	traceback FILE SECONDS throw       two threads throw C++ exceptions all the time, and
//	                                   get SIGPROF every 50 us; prints how many
//	traceback FILE SECONDS stacks      asks for the stacks of all goroutines meanwhile
//	traceback FILE SECONDS names       prints runtime.CallersFrames of Go that C called
//	traceback FILE SECONDS stack       prints runtime.Stack there
//	traceback FILE SECONDS crash       reads nowhere, in C
//	traceback FILE SECONDS load        loads a library; it is looked up without being told
//
// Built with the tag symbolize it has names of C functions.
package main

/*
#include <stdint.h>
#include "work.h"
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	_ "shstk/go/shstktraceback"
)

//export goBack
func goBack(n C.int) C.int {
	return goInner(n)
}

//go:noinline
func goInner(n C.int) C.int {
	return C.c_spin(n) + 1
}

//go:noinline
func goOuter(depth, n C.int) C.int {
	return C.c_there(depth, n) + 1
}

// Every goroutine that calls C in a loop, until the time is over.
func work(seconds float64, each func()) {
	for start := C.cpu_seconds(); float64(C.cpu_seconds()-start) < seconds; {
		each()
	}
}

// Each of them keeps its thread, so that it gets all of the signals.
func throwing(seconds float64) {
	runtime.LockOSThread()
	C.c_add_to_storm()
	work(seconds, func() { C.cc_throw(100) })
}

func callbacks() { goOuter(6, 1000000) }

// How often the other goroutine was seen in Go that C called.
var seen int

// The stacks of all goroutines, of which one is in Go that C called.
func stacks() {
	time.Sleep(time.Millisecond)
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	if !strings.Contains(string(text), "main.goInner") {
		return
	}
	seen++
	if !strings.Contains(string(text), "non-Go") {
		panic("a goroutine in a callback has no C functions:\n" + string(text))
	}
}

// goNames is called by C and prints the functions that called it, as it is told.
//
//export goNames
func goNames(n C.int) C.int {
	if n != 0 {
		text := make([]byte, 1<<16)
		fmt.Printf("%s", text[:runtime.Stack(text, false)])
		return 0
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		fmt.Println(frame.Function, frame.File, frame.Line)
		if !more {
			return 0
		}
	}
}

// Collects until finalizers that were due have run.
func collect() {
	for i := 0; i < 2; i++ {
		done := make(chan bool)
		runtime.SetFinalizer(&[32]byte{}, func(*[32]byte) { close(done) })
		runtime.GC()
		<-done
	}
}

func load() {
	collect()
	before := C.c_looked_through()
	collect()
	if C.c_looked_through() != before {
		panic("libraries are looked through though none was loaded")
	}
	if C.c_load() == 0 {
		panic("no library could be loaded")
	}
	collect()
	if C.c_looked_through() == before {
		panic("a library that was loaded is not looked up")
	}
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		panic(err)
	}
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	switch os.Args[3] {
	case "callbacks":
		work(seconds, callbacks)
	case "throw":
		go throwing(1e9)
		throwing(seconds)
		fmt.Println("signals:", C.c_signals_sent())
	case "names":
		C.c_names(0)
	case "stack":
		C.c_names(1)
	case "load":
		load()
	case "crash":
		C.c_crash(nil)
	case "stacks":
		go work(1e9, callbacks)
		work(seconds, stacks)
		if seen == 0 {
			panic("no goroutine was seen in a callback")
		}
	}
	pprof.StopCPUProfile()
	if err := file.Close(); err != nil {
		panic(err)
	}
}
