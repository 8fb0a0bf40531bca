// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"shstk/go/shstk/internal/fpwalk"
)

var rounds = flag.Int("rounds", 0, "rounds of BenchmarkRatio, of which the least counts")

// job is a scenario at a depth: run does it some times and returns the nanoseconds of one
// trace, with what the scenario itself does.
type job struct {
	depth int
	pcs   []uintptr
	trace func([]uintptr) int
}

const slice = 100 // traces that are timed at once

func (j *job) timed(n int, f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func (j *job) fixed() (ns float64) {
	descend(j.depth, func() {
		ns = j.timed(slice, func() {
			for i := 0; i < slice; i++ {
				j.trace(j.pcs)
			}
		})
	})
	return ns
}

func (j *job) ramp() float64 {
	times := slice/(2*(j.depth+1)) + 1
	return j.timed(times*2*(j.depth+1), func() {
		for i := 0; i < times; i++ {
			slope(j.depth, j.trace, j.pcs)
		}
	})
}

func (j *job) bottom() {
	j.trace(j.pcs)
}

func (j *job) once() float64 {
	f := j.bottom
	return j.timed(slice, func() {
		for i := 0; i < slice; i++ {
			descend(j.depth, f)
		}
	})
}

func (j *job) osc() (ns float64) {
	f := j.bottom
	descend(j.depth-4, func() {
		ns = j.timed(slice, func() {
			for i := 0; i < slice; i++ {
				descend(4, f)
			}
		})
	})
	return ns
}

func nothing([]uintptr) int { return 0 }

// copied is what a trace could cost at least that leaves return addresses unread, as one
// does that replaces a return address to learn when a frame has ended: three frames are
// walked, the others are copied from what is remembered.
func (j *job) copied() float64 {
	remembered := make([]uintptr, 2048)
	descend(j.depth, func() { remembered = remembered[:fpwalk.Walk(remembered)] })
	j.trace = func(pcs []uintptr) int {
		n := fpwalk.Walk(pcs[:3])
		return n + copy(pcs[n:], remembered[n:])
	}
	return j.fixed()
}

// BenchmarkRatio times all sources in turn, in slices that are short enough to end
// before something else gets the CPU, and takes the least time of each: what it reports
// hardly depends on what else runs. The time of the calls themselves is subtracted.
func BenchmarkRatio(b *testing.B) {
	if *rounds == 0 {
		b.Skip("takes its time: -rounds=1000")
	}
	for _, scenario := range []struct {
		name string
		run  func(*job) float64
	}{
		{"fixed", (*job).fixed}, {"ramp", (*job).ramp}, {"once", (*job).once}, {"osc", (*job).osc},
	} {
		for _, depth := range []int{8, 16, 24, 32, 48, 64, 128, 256, 512} {
			b.Run(fmt.Sprintf("%s/%d", scenario.name, depth), func(b *testing.B) {
				least := measure(depth, scenario.run)
				base := least[len(sources)]
				if scenario.name == "fixed" {
					base = 0
					b.ReportMetric(leastCopied(depth), "copy-ns")
				}
				ours := least[2] - base
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(least[0]-base, "runtime-ns")
				b.ReportMetric(least[1]-base, "fpwalk-ns")
				b.ReportMetric(ours, "shstk-ns")
				b.ReportMetric((least[0]-base)/ours, "x-runtime")
				b.ReportMetric((least[1]-base)/ours, "x-fpwalk")
			})
		}
	}
}

func measure(depth int, run func(*job) float64) []float64 {
	least := make([]float64, len(sources)+1)
	for round := 0; round < *rounds; round++ {
		for i := range least {
			trace := nothing
			if i < len(sources) {
				trace = sources[i].trace
			}
			ns := run(&job{depth, make([]uintptr, 2048), trace})
			if round == 0 || ns < least[i] {
				least[i] = ns
			}
		}
	}
	return least
}

func leastCopied(depth int) (least float64) {
	for round := 0; round < *rounds; round++ {
		ns := (&job{depth: depth, pcs: make([]uintptr, 2048)}).copied()
		if round == 0 || ns < least {
			least = ns
		}
	}
	return least
}
