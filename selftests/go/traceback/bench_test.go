// SPDX-License-Identifier: GPL-2.0-or-later

package main

import "testing"

// A call of C that calls Go once: what the context function adds to it.
func BenchmarkCallback(b *testing.B) {
	for i := 0; i < b.N; i++ {
		goOuter(1, 0)
	}
}
