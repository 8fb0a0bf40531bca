// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && cgo && (amd64 || (arm64 && go1.21))

package cgotest

import (
	"runtime"
	"testing"

	"shstk/go/shstk"
)

// traced compares a trace with the runtime's, by the names of all functions.
type traced struct {
	t *testing.T
	n int
}

func names(frames *runtime.Frames) (all []string) {
	for {
		f, more := frames.Next()
		all = append(all, f.Function)
		if !more {
			return all
		}
	}
}

//go:noinline
func (c *traced) one() {
	ours, said := make([]uintptr, 512), make([]uintptr, 512)
	n := shstk.Callers(ours)
	m := runtime.Callers(1, said)
	a, b := names(shstk.Frames(ours[:n])), names(runtime.CallersFrames(said[:m]))
	c.n++
	if len(a) != len(b) {
		c.t.Fatalf("%q, but %q", a, b)
	}
	for i := range a {
		if a[i] != b[i] {
			c.t.Fatalf("%q, but %q", a, b)
		}
	}
}

//go:noinline
func below(n int, f func()) int {
	if n == 0 {
		f()
		return 0
	}
	return below(n-1, f) + 1
}

func TestTracesInCallbacksAreTheRuntimes(t *testing.T) {
	c := &traced{t: t}
	for _, depth := range []int{0, 10, 100} {
		for i := 0; i < 3; i++ {
			deep := func() { below(depth, c.one) }
			below(depth, func() { Back(deep) })
			below(depth, func() { Back(func() { Back(deep) }) })
			below(depth, c.one)
		}
	}
	if c.n != 27 {
		t.Errorf("%d traces of 27", c.n)
	}
}

func TestTracesOnThreadsOfCAreTheRuntimes(t *testing.T) {
	c := &traced{t: t}
	for i := 0; i < 5; i++ {
		if !Thread(func() { below(30, c.one) }) {
			t.Fatal("no thread")
		}
	}
	if c.n != 5 {
		t.Errorf("%d traces of 5", c.n)
	}
}

func TestTracesInSignalHandlersOfCAreTheRuntimes(t *testing.T) {
	c := &traced{t: t}
	for i := 0; i < 5; i++ {
		if !Handler(func() { below(30, c.one) }) {
			t.Fatal("no handler")
		}
	}
	if c.n != 5 {
		t.Errorf("%d traces of 5", c.n)
	}
}
