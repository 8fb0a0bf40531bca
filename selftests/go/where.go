// SPDX-License-Identifier: GPL-2.0-or-later

// where - what the runtime says of addresses of this program: one in each line of the
// input, in hexadecimal, counted from main.main; one line for each function there,
// name, file and line with tabs between, then an empty line.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
)

// Code of this program that is only there to be named: generics.go, calls.go.
var more, calls []func()

func main() {
	base := reflect.ValueOf(main).Pointer()
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if len(os.Args) > 1 {
		for _, f := range more {
			f()
		}
	}
	for in.Scan() {
		off, err := strconv.ParseInt(in.Text(), 16, 64)
		if err != nil {
			panic(err)
		}
		// Return addresses, of which the second is there because the last one
		// is not expanded.
		frames := runtime.CallersFrames([]uintptr{base + uintptr(off) + 1, base + 1})
		for {
			f, more := frames.Next()
			if !more {
				break
			}
			fmt.Fprintf(out, "%s\t%s\t%d\n", f.Function, f.File, f.Line)
		}
		fmt.Fprintln(out)
	}
}
