// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import (
	"fmt"
	"runtime"
	"testing"

	"shstk/go/shstk/internal/fpwalk"
)

// What a benchmark calls; each takes a trace of its caller.
var sources = []struct {
	name  string
	trace func([]uintptr) int
}{
	{"runtime", func(pcs []uintptr) int { return runtime.Callers(0, pcs) }},
	{"fpwalk", fpwalk.Walk},
	{"shstk", Callers},
}

var scenarios = []struct {
	name string
	run  func(b *testing.B, depth int, trace func([]uintptr) int)
}{
	{"fixed", fixed}, {"ramp", ramp}, {"once", once}, {"osc", osc},
}

// descend calls f below n frames of its own.
//
//go:noinline
func descend(n int, f func()) int {
	if n == 0 {
		f()
		return 0
	}
	return descend(n-1, f) + 1
}

// fixed: again and again at one place.
func fixed(b *testing.B, depth int, trace func([]uintptr) int) {
	pcs := make([]uintptr, 2048)
	descend(depth, func() {
		trace(pcs)
		b.ResetTimer()
		for i := 0; i < b.N; i++ {
			trace(pcs)
		}
	})
}

//go:noinline
func slope(n int, trace func([]uintptr) int, pcs []uintptr) int {
	trace(pcs)
	r := 0
	if n > 0 {
		r = slope(n-1, trace, pcs)
	}
	trace(pcs)
	return r + 1
}

// ramp: on entry and on exit of each level.
func ramp(b *testing.B, depth int, trace func([]uintptr) int) {
	pcs := make([]uintptr, 2048)
	slope(depth, trace, pcs)
	b.ResetTimer()
	for i := 0; i < b.N; i += 2 * (depth + 1) {
		slope(depth, trace, pcs)
	}
}

// once: at the bottom, then all return, and again.
func once(b *testing.B, depth int, trace func([]uintptr) int) {
	pcs := make([]uintptr, 2048)
	f := func() { trace(pcs) }
	descend(depth, f)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		descend(depth, f)
	}
}

// osc: four levels below the same place.
func osc(b *testing.B, depth int, trace func([]uintptr) int) {
	pcs := make([]uintptr, 2048)
	f := func() { trace(pcs) }
	descend(depth-4, func() {
		descend(4, f)
		b.ResetTimer()
		for i := 0; i < b.N; i++ {
			descend(4, f)
		}
	})
}

func BenchmarkCallers(b *testing.B) {
	for _, s := range scenarios {
		for _, depth := range []int{8, 16, 24, 32, 128, 512} {
			for _, source := range sources {
				b.Run(fmt.Sprintf("%s/%d/%s", s.name, depth, source.name), func(b *testing.B) {
					s.run(b, depth, source.trace)
				})
			}
		}
	}
}
