// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && !go1.23 && !race && (amd64 || (arm64 && go1.21))

// Code on that stack cannot be watched by the race detector.

package shstk

import (
	"runtime"
	"testing"

	"shstk/go/shstk/internal/noframe"
)

func TestTracesOnTheSystemStackAreTheRuntimes(t *testing.T) {
	var ours, said [64]uintptr
	for i := 0; i < 3; i++ {
		var n, m int
		noframe.OnSystemStack(func() { n, m = Callers(ours[:]), runtime.Callers(1, said[:]) })
		if n == 0 || !same(ours[1:n], said[1:m]) {
			t.Fatalf("%x, but %x", ours[:n], said[:m])
		}
	}
	if !fast() {
		t.Error("traces elsewhere are slow since then")
	}
}
