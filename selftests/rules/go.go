// SPDX-License-Identifier: GPL-2.0-or-later

// A program without C, which computes for ever below a number of calls, by two goroutines.
package main

import "os"

//go:noinline
func spin(n *int) {
	for {
		*n += 3
		*n ^= *n << 1
	}
}

//go:noinline
func deep(depth int, n *int) int {
	if depth == 0 {
		spin(n)
	}
	return deep(depth-1, n) + *n
}

func main() {
	os.Stdout.WriteString("ready\n")
	go func() {
		var n int
		deep(7, &n)
	}()
	var n int
	deep(20, &n)
}
