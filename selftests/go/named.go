// SPDX-License-Identifier: GPL-2.0-or-later

// named - goroutines with labels, each busy in a function of its own. What is easily got
// wrong is in them: labels with all kinds of characters, several of them, none, and labels
// that a goroutine has from the one that made it. Says its process ID when all of it runs,
// and goes on until its input ends.
package main

import (
	"context"
	"fmt"
	"io/ioutil"
	"os"
	"runtime/pprof"
	"sync"
	"time"
)

var sink int

//go:noinline
func spin(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i
	}
	return sum
}

//go:noinline
func plain() { sink += spin(100000) }

//go:noinline
func hard() { sink += spin(100000) + 1 }

//go:noinline
func inherited() { sink += spin(100000) + 2 }

// The runtime reads the clock on another stack.
//
//go:noinline
func clock() {
	for i := 0; i < 1000; i++ {
		sink += time.Now().Nanosecond()
	}
}

//go:noinline
func unlabelled() { sink += spin(100000) + 3 }

// Functions of type parameters, and calls of C, in programs that can have them.
var generic, calls []func()

var started sync.WaitGroup

func forever(f func()) {
	started.Done()
	for {
		f()
	}
}

func labelled(f func(), args ...string) {
	started.Add(1)
	go pprof.Do(context.Background(), pprof.Labels(args...), func(context.Context) { forever(f) })
}

func main() {
	labelled(plain, "job", "plain")
	labelled(hard, "job", "a;b c{d} \"e\" <f> \u00fc", "user", "one two")
	labelled(clock, "job", "clock")
	started.Add(1)
	pprof.Do(context.Background(), pprof.Labels("job", "inherited"), func(context.Context) {
		go forever(inherited)
	})
	started.Add(1)
	go forever(unlabelled)
	for _, f := range generic {
		labelled(f, "job", "generic")
	}
	for _, f := range calls {
		labelled(f, "job", "calls")
	}
	started.Wait()
	fmt.Println("ready", os.Getpid())
	_, _ = ioutil.ReadAll(os.Stdin)
}
