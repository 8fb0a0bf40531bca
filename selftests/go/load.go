// SPDX-License-Identifier: GPL-2.0-or-later

// load [JOB...] - a program that does many things at once, but for those jobs, for stacks to be
// taken of: deep and shallow recursion, allocation, stacks that grow, sorting, the clock, channels, locks. Says
// its process ID when all of it runs, and goes on until its input ends; then it leaves a core
// file or prints all goroutines, if the input says so.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io/ioutil"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var sink []byte

//go:noinline
func deep(n int) int {
	if n == 0 {
		sum := 0
		for i := 0; i < 20000; i++ {
			sum += i * i
		}
		return sum
	}
	return deep(n-1) + 1
}

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func grow(n int) int {
	var room [256]byte

	room[n%256] = 1
	if n == 0 {
		return int(room[0])
	}
	return grow(n-1) + int(room[n%256])
}

func growing() {
	var wg sync.WaitGroup

	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			grow(200)
			wg.Done()
		}()
	}
	wg.Wait()
}

func allocating() {
	all := make([][]byte, 0, 100)
	for i := 0; i < 1000; i++ {
		all = append(all, make([]byte, 100+i))
	}
	sink = all[len(all)-1]
}

func sorting() {
	x := make([]int, 5000)
	for i := range x {
		x[i] = (i * 7919) % 5003
	}
	sort.Ints(x)
}

func clock() {
	for i := 0; i < 1000; i++ {
		_ = time.Now()
	}
	runtime.Gosched()
}

// Goroutines that do nothing, each in its own way.
func park() {
	var mu sync.Mutex
	c := make(chan int)

	mu.Lock()
	go func() { mu.Lock() }()
	go func() { select {} }()
	for i := 0; i < 3; i++ {
		go func() { <-c }()
	}
	for !parked() {
		time.Sleep(10 * time.Millisecond)
	}
}

// What the runtime says of a goroutine of park() that has come to where it waits.
var waits = regexp.MustCompile(`\[(chan receive|select \(no cases\)|semacquire|sync\.Mutex\.Lock)[],]`)

// Whether all goroutines of park() wait.
func parked() bool {
	var text bytes.Buffer
	n := 0

	_ = pprof.Lookup("goroutine").WriteTo(&text, 2)
	for _, one := range strings.Split(text.String(), "\n\n") {
		if strings.Contains(one, "created by main.park") && waits.MatchString(one) {
			n++
		}
	}
	return n == 5
}

// End with a core file, every thread as it is now: without the runtime's handler.
func dump() {
	var act [32]byte

	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGQUIT),
		uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	select {}
}

// Calls of C, in programs that have any.
var calls []func()

func main() {
	work := map[string]func(){
		"deep":  func() { deep(200) },
		"fib":   func() { fib(30) },
		"alloc": allocating,
		"sort":  sorting,
		"grow":  growing,
		"clock": clock,
	}
	for i, f := range calls {
		work[fmt.Sprint("call", i)] = f
	}
	for _, name := range os.Args[1:] {
		delete(work, name)
	}
	var started sync.WaitGroup
	started.Add(len(work))
	for name, f := range work {
		f := f
		go pprof.Do(context.Background(), pprof.Labels("job", name), func(context.Context) {
			started.Done()
			for {
				f()
			}
		})
	}
	started.Wait()
	park()
	fmt.Println("ready", os.Getpid())
	in, _ := ioutil.ReadAll(os.Stdin)
	switch string(in) {
	case "core":
		dump()
	case "stacks":
		_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
	}
}
