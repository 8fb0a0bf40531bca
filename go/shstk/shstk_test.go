// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import (
	"flag"
	"math/rand"
	"reflect"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shstk/go/shstk/internal/fpwalk"
	"shstk/go/shstk/internal/noframe"
)

var (
	traces     = flag.Int64("traces", 300000, "traces that the stress test compares")
	goroutines = flag.Int("goroutines", 300, "goroutines that take them")
)

// checker takes a trace by Callers and by the runtime at one place, and compares.
type checker struct {
	ours, said, once []uintptr
	n, bad           int64
	quick            int64  // that capture took
	first            string // what was wrong first
}

func newChecker() *checker {
	return &checker{
		ours: make([]uintptr, 4096), said: make([]uintptr, 8192), once: make([]uintptr, 4096),
	}
}

func text(frames *runtime.Frames) (s string) {
	for {
		f, more := frames.Next()
		s += "\n\t" + f.Function
		if !more {
			return s
		}
	}
}

//go:noinline
func (c *checker) one() {
	n := Callers(c.ours)
	m := runtime.Callers(1, c.said)
	c.n++
	all := expand(c.ours[:n])
	// The first ones are two calls in this function.
	good := same(all[1:], c.said[1:m])
	if k := attempt(c.once, 1); k > 0 {
		c.quick++
		good = good && (n == m || same(c.once[:k&(1<<askShift-1)], c.ours[1:n]))
	}
	if good {
		return
	}
	if c.bad++; c.bad == 1 {
		c.first = "Callers:" + text(runtime.CallersFrames(all)) +
			"\nruntime.Callers:" + text(runtime.CallersFrames(c.said[:m]))
	}
}

func same(a, b []uintptr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (c *checker) report(t *testing.T) {
	t.Helper()
	if c.n == 0 {
		t.Error("no trace was taken")
	}
	if c.bad != 0 {
		t.Errorf("%d of %d traces differ, the first:\n%s", c.bad, c.n, c.first)
	}
}

// fast says whether a trace of the caller is one of capture's own, once what is on its
// stack had a chance to be learned.
//
//go:noinline
func fast() bool {
	pcs := make([]uintptr, 8192)
	Callers(pcs)
	return attempt(pcs, 1) > 0
}

// Random call trees: functions with frames of several sizes, of which each is called from
// several places, and that let others run meanwhile.
type walker struct {
	*checker
	*rand.Rand
	left *int64 // traces to take, by all
	told int64  // of this one's are subtracted
}

//go:noinline
func small(w *walker, depth int) int {
	w.one()
	n := w.branch(depth)
	w.one()
	return n
}

//go:noinline
func medium(w *walker, depth int) int {
	var pad [100]int
	pad[depth%100] = w.branch(depth)
	w.one()
	return pad[w.Intn(100)]
}

//go:noinline
func large(w *walker, depth int) int {
	var pad [700]int
	w.one()
	pad[depth%700] = w.branch(depth) + w.branch(depth-5)
	return pad[w.Intn(700)]
}

func inlinedOnce(w *walker, depth int) int  { return small(w, depth) + 1 }
func inlinedTwice(w *walker, depth int) int { return inlinedOnce(w, depth) + 1 }

func (w *walker) branch(depth int) (n int) {
	taken := w.n - w.told
	w.told = w.n
	if depth <= 0 || atomic.AddInt64(w.left, -taken) < 0 {
		return 0
	}
	switch w.Intn(8) {
	case 0:
		n = small(w, depth-1)
	case 1:
		n = medium(w, depth-1)
	case 2:
		n = large(w, depth-1)
	case 3:
		n = inlinedTwice(w, depth-1)
	case 4:
		n = small(w, depth-1) + small(w, depth-1)
	case 5:
		runtime.Gosched()
		n = medium(w, depth-1)
	case 6:
		func() {
			defer func() { n = small(w, depth-1) }()
			w.one()
		}()
	case 7:
		n = reflect.ValueOf(small).Call([]reflect.Value{
			reflect.ValueOf(w), reflect.ValueOf(depth - 1)})[0].Interface().(int)
	}
	return n
}

// deeper has a stack grow before the tree begins, by much or by little.
//
//go:noinline
func deeper(w *walker, n int) int {
	if n == 0 {
		return small(w, 20)
	}
	return deeper(w, n-1) + 1
}

// Goroutines whose stacks grow, are moved and shrink, with a collection always under way
// and a profiler's signals.
func TestTracesOfManyGoroutinesAreTheRuntimes(t *testing.T) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	sum := newChecker()
	left := *traces
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for g := 0; g < *goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			w := &walker{newChecker(), rand.New(rand.NewSource(int64(g))), &left, 0}
			for first := true; first || atomic.LoadInt64(&left) > 0; first = false {
				deeper(w, w.Intn(1+g%300))
				if w.Intn(4) == 0 {
					time.Sleep(time.Microsecond)
				}
			}
			mutex.Lock()
			defer mutex.Unlock()
			sum.n += w.n
			sum.bad += w.bad
			sum.quick += w.quick
			if sum.first == "" {
				sum.first = w.first
			}
		}(g)
	}
	group.Wait()
	close(stop)
	t.Logf("%d traces compared, %d of them not the runtime's own", sum.n, sum.quick)
	learning.Lock()
	for _, e := range table[header:] {
		if e.pc&sizelessBit != 0 {
			t.Logf("without a size: %s", runtime.FuncForPC(e.pc&^sizelessBit-1).Name())
		}
	}
	learning.Unlock()
	if sum.quick == 0 {
		t.Error("all of them were the runtime's own")
	}
	sum.report(t)
}

type shape interface{ trace(c *checker) }
type base struct{ pad int }
type derived struct {
	pad int
	base
}
type twice struct{ *derived }

//go:noinline
func (b base) trace(c *checker) { c.one() }

func TestEveryKindOfCallIsTheRuntimes(t *testing.T) {
	c := newChecker()
	kinds := map[string]func(){
		"interface, promoted method": func() { shape(twice{&derived{}}).trace(c) },
		"method value":               func() { f := shape(&derived{}).trace; f(c) },
		"method expression":          func() { shape.trace(derived{}, c) },
		"reflection":                 func() { reflect.ValueOf(&derived{}).MethodByName("Trace") },
		"reflection's call of a method value": func() {
			reflect.ValueOf(shape(twice{&derived{}}).trace).Call([]reflect.Value{reflect.ValueOf(c)})
		},
		"function made by reflection": func() {
			f := reflect.MakeFunc(reflect.TypeOf(func() {}), func([]reflect.Value) []reflect.Value {
				c.one()
				return nil
			})
			f.Interface().(func())()
			f.Call(nil)
		},
		"sort":     func() { sort.Slice([]int{3, 1, 2}, func(i, j int) bool { c.one(); return i < j }) },
		"once":     func() { new(sync.Once).Do(c.one) },
		"deferred": func() { defer c.one(); defer func() { c.one() }() },
	}
	for name, f := range kinds {
		for i := 0; i < 3; i++ {
			f()
		}
		if c.bad != 0 {
			t.Error(name)
			break
		}
	}
	c.report(t)
}

//go:noinline
func fault(p *int) int { return *p }

//go:noinline
func faultBelow(p *int) int { return fault(p) + 1 }

func TestTracesInAndAfterPanicsAreTheRuntimes(t *testing.T) {
	c := newChecker()
	for i := 0; i < 3; i++ {
		for _, f := range []func(){
			func() { panic("") },
			func() { faultBelow(nil) },
			func() { var m map[int]int; m[1] = 1 },
			func() { defer c.one(); defer func() { panic("once more") }(); panic("") },
		} {
			func() {
				defer c.one()
				defer func() { recover(); c.one() }()
				defer c.one()
				f()
			}()
			c.one()
		}
		done := make(chan bool)
		go func() {
			defer close(done)
			defer c.one()
			runtime.Goexit()
		}()
		<-done
	}
	c.report(t)
}

func TestTracesInGoroutinesTheRuntimeStartsAreTheRuntimes(t *testing.T) {
	c := newChecker()
	done := make(chan bool)
	run := func(i int, s string) { c.one(); done <- true }
	for i := 0; i < 3; i++ {
		go run(1, "")
		<-done
		time.AfterFunc(0, func() { run(1, "") })
		<-done
		runtime.SetFinalizer(&struct{ x [64]int }{}, func(interface{}) { run(1, "") })
		for finished := false; !finished; {
			runtime.GC()
			select {
			case <-done:
				finished = true
			case <-time.After(time.Millisecond):
			}
		}
	}
	c.report(t)
}

// Assembly through which frame pointers do not lead.
func TestFramesThatTheChainMissesAreThere(t *testing.T) {
	c := newChecker()
	for i := 0; i < 5; i++ {
		noframe.Call(c.one)
		noframe.Call(func() { noframe.Call(c.one) })
		noframe.Lost(c.one, 0)
		noframe.Lost(c.one, 8)
		noframe.Lost(c.one, ^uintptr(7))
	}
	c.report(t)
	slow := false
	noframe.Call(func() { slow = !fast() })
	if !slow {
		t.Error("a chain that misses a frame was accepted")
	}
	if !fast() {
		t.Error("traces elsewhere are slow since then")
	}
}

func TestCodeOnceLearnedIsTracedFast(t *testing.T) {
	for _, depth := range []int{0, 10, 30, 100, 1000, 5000} {
		ok := false
		descend(depth, func() { ok = fast() })
		if !ok {
			t.Errorf("not at depth %d", depth)
		}
	}
}

func TestATraceIsAsLongAsItsRoom(t *testing.T) {
	all, some := make([]uintptr, 2048), make([]uintptr, 2048)
	if Callers(nil) != 0 {
		t.Error("frames without room")
	}
	for _, depth := range []int{0, 20, 100, 700} {
		descend(depth, func() {
			n := fpwalk.Walk(all)
			for round := 0; round < 3; round++ {
				for room := n + 2; room > 0; room -= 1 + room/40 {
					some[room] = 1
					got := Callers(some[:room:room])
					if want := room; want > n && got != n || want <= n && got != want {
						t.Fatalf("depth %d, room %d: %d frames of %d", depth, room, got, n)
					}
					if !same(some[1:got], all[1:got]) || some[room] != 1 {
						t.Fatalf("depth %d, room %d: other frames", depth, room)
					}
				}
			}
		})
	}
}

func TestADeepStackIsTheWalks(t *testing.T) {
	all, ours := make([]uintptr, 300000), make([]uintptr, 300000)
	for _, depth := range []int{100000, 50000, 50003, 127, 128, 129, 100000} {
		descend(depth, func() {
			for i := 0; i < 3; i++ {
				n, m := fpwalk.Walk(all), Callers(ours)
				if m < depth || !same(all[1:n], ours[1:m]) {
					t.Fatalf("depth %d: %d frames and %d", depth, n, m)
				}
			}
		})
	}
}

func TestNothingIsAllocated(t *testing.T) {
	pcs := make([]uintptr, 512)
	descend(100, func() {
		if n := testing.AllocsPerRun(100, func() { Callers(pcs) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestNamesAndLinesAreTheRuntimes(t *testing.T) {
	ours, said := make([]uintptr, 512), make([]uintptr, 512)
	take := func() {
		for i := 0; i < 2; i++ {
			n, m := Callers(ours), runtime.Callers(1, said)
			a, b := Frames(ours[:n]), runtime.CallersFrames(said[:m])
			for line := 0; ; line++ {
				f, more := a.Next()
				g, moreB := b.Next()
				if f.Function != g.Function || f.File != g.File || f.Line != g.Line || more != moreB {
					t.Fatalf("%v, but %v", f, g)
				}
				if !more {
					break
				}
			}
		}
	}
	shapes := []func(){take, func() { descend(3, take) }, func() { func() { descend(30, take) }() }}
	for _, f := range shapes {
		reflect.ValueOf(f).Call(nil)
	}
}

// What Callers has from the runtime has inlined functions already.
func TestFramesOfTheRuntimesTraceAreTheSame(t *testing.T) {
	said := make([]uintptr, 512)
	descend(5, func() {
		n := Callers(said)
		n = runtime.Callers(0, said)
		if all := expand(said[:n]); !same(all, said[:n]) {
			t.Error("not the same")
		}
	})
}

// memos counts the slots that have an owner, and the bytes of all memos.
func memos() (owned int, bytes int64) {
	owning.Lock()
	defer owning.Unlock()
	for i := range slots {
		if atomic.LoadUintptr(&slots[i].owner) != 0 {
			owned++
		}
	}
	return owned, memoSum
}

func TestMemosOfGoroutinesThatEndedAreGivenUp(t *testing.T) {
	var group sync.WaitGroup
	for g := 0; g < 500; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			pcs := make([]uintptr, 256)
			descend(100, func() {
				for i := 0; i < 5; i++ {
					Callers(pcs)
				}
			})
		}()
	}
	group.Wait()
	if owned, bytes := memos(); owned == 0 || bytes == 0 {
		t.Fatalf("%d memos, %d bytes", owned, bytes)
	}
	// Whatever else runs has a memo or two.
	for {
		if _, bytes := memos(); bytes <= 10*firstFrames*frameBytes {
			break
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func TestMemosTakeNoMoreThanTheirShare(t *testing.T) {
	all := make([]slot, 2*mostBytes/(mostFrames*frameBytes))
	for i := range all {
		for atomic.LoadUint32(&all[i].made) == 0 { // a sweep may have the lock
			provide(&all[i], mostFrames/2)
		}
	}
	denied := 0
	for i := range all {
		if all[i].made == never {
			denied++
		}
	}
	if _, bytes := memos(); bytes > mostBytes || denied == 0 {
		t.Errorf("%d bytes, %d slots without", bytes, denied)
	}
	owning.Lock()
	defer owning.Unlock()
	for i := range all {
		if all[i].keep != nil {
			memoSum -= int64(all[i].keep.size) * frameBytes
		}
	}
}

// Two functions with frames of different sizes, which call each other as a string says.
//
//go:noinline
func narrow(order string, f func()) int {
	return next(order, f) + 1
}

//go:noinline
func wide(order string, f func()) int {
	var pad [30]int
	pad[len(order)%30] = next(order, f)
	return pad[0] + pad[len(order)%30]
}

//go:noinline
func next(order string, f func()) int {
	switch {
	case order == "":
		f()
		return 0
	case order[0] == 'n':
		return narrow(order[1:], f)
	}
	return wide(order[1:], f)
}

// Where two neighbours change places, all other frames stay where they are, and return where
// they did.
func TestAFrameThatDiffersIsSeenWhereverItIs(t *testing.T) {
	const order = "nwnwnnwwnwwnnwnwnwwwnnnwnwnwnnwwnwwnnwnwnwwwnnnw"
	all, ours := make([]uintptr, 512), make([]uintptr, 512)
	take := func() {
		n, m := fpwalk.Walk(all), Callers(ours)
		if n != m || !same(all[1:n], ours[1:m]) {
			t.Fatalf("%d frames, not %d, or others", m, n)
		}
	}
	// With some frames more below them, each is any of the four that are compared at once.
	for more := 0; more < 4; more++ {
		f := func() { descend(more, take) }
		for i := 1; i < len(order); i++ {
			changed := order[:i-1] + order[i:i+1] + order[i-1:i] + order[i+1:]
			for round := 0; round < 3; round++ {
				next(changed, f)
				next(order, f)
			}
		}
	}
}
