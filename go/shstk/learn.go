// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import (
	"runtime"
	"sync"
)

// chain follows the frame pointers from learn on: where each frame lies below the upper
// end of the stack, and its return address. Returns how many, or refused if they do not
// lead up to the last frame of this stack.
//
//go:noescape
func chain(frames *uintptr, pcs *uintptr, room int) int

// bounds returns the stack that the runtime says this goroutine has, and where it is on it.
func bounds() (lo, hi, sp uintptr)

// stackIsKnown says whether a goroutine's stack is where this package takes it to be. The
// one that initialises packages has an ordinary stack: its size is a power of two.
func stackIsKnown() bool {
	lo, hi, sp := bounds()
	size := hi - lo
	return lo < sp && sp < hi && size >= 2048 && size&(size-1) == 0
}

const (
	firstLearned = 512     // frames of the first attempt
	mostLearned  = 1 << 20 // a stack of more is not learned from
)

// learner is what one stack is learned with; guarded by learning.
type learner struct {
	frames, pcs, said []uintptr
}

var scratch = learner{
	make([]uintptr, firstLearned), make([]uintptr, firstLearned), make([]uintptr, 2*firstLearned),
}

// expansion has what runtime.Callers says instead of a return address, where that is
// something else: the address and those of the functions that the code at it was inlined
// into, or nothing for a wrapper. It is read without the mutex.
var expansion sync.Map

// learn learns the sizes of all frames of this stack. It is false if there is nothing to
// learn from it now.
//
//go:noinline
func learn() bool {
	if !learning.TryLock() {
		return false
	}
	defer learning.Unlock()
	l := &scratch
	for {
		n := chain(&l.frames[0], &l.pcs[0], len(l.pcs))
		if n < 0 {
			return false
		}
		said := runtime.Callers(2, l.said)
		if n < len(l.pcs) && said < len(l.said) {
			return l.compare(n, said)
		}
		if len(l.said) > mostLearned {
			return false
		}
		l = &learner{
			make([]uintptr, 2*len(l.pcs)), make([]uintptr, 2*len(l.pcs)),
			make([]uintptr, 2*len(l.said)),
		}
	}
}

// compare sets the sizes of n frames if the runtime said the same of them.
func (l *learner) compare(n, said int) bool {
	pcs, logical := l.pcs[:n], l.said[:said]
	if n < 2 || pcs[n-1] != rootPC {
		return false
	}
	for _, pc := range pcs {
		if sizeless(pc) {
			return false
		}
	}
	if wrong, ok := align(pcs, logical, nil); !ok {
		forbid(wrong)
		return false
	}
	align(pcs, logical, func(pc uintptr, says []uintptr) {
		if len(says) == 1 {
			return
		}
		if _, there := expansion.Load(pc); !there {
			expansion.Store(pc, append([]uintptr(nil), says...))
		}
	})
	for i := keyLag; i < n-1; i++ {
		set(pcs[i-keyLag], l.frames[i]-l.frames[i+1])
	}
	setRoot(pcs[n-2])
	return true
}

func entryOf(pc uintptr) uintptr {
	if f := runtime.FuncForPC(pc - 1); f != nil {
		return f.Entry()
	}
	return 0
}

// The most wrappers that follow one another: a method of an embedded type, called by
// reflection, of a function that reflection made.
const mostWrappers = 4

// wrapper says whether pcs begins with wrappers, which the runtime does not show: code it
// knows, after which both go on with the same address.
func wrapper(pcs []uintptr, next uintptr) bool {
	for i := 0; i < len(pcs) && i <= mostWrappers; i++ {
		if pcs[i] == next {
			return i > 0
		}
		if entryOf(pcs[i]) == 0 {
			return false
		}
	}
	return false
}

// align lays what the runtime says beside what the frame pointers say, and calls each
// for every return address with what the runtime says of it. The runtime has more,
// inlined functions behind what is inlined into them, and less, no wrappers. It is
// false if the runtime has functions between that frame pointers led past, or not the
// same ones; then wrong is the address after which that is so.
func align(pcs, logical []uintptr, each func(pc uintptr, says []uintptr)) (wrong uintptr, ok bool) {
	at := 0
	for i, pc := range pcs {
		from := at
		switch {
		case at == len(logical):
			return pcs[i-1], false
		case logical[at] == pc:
			at += 1 + inlined(pcs[i:], logical[at+1:])
		case !wrapper(pcs[i:], logical[at]):
			if i > 0 {
				pc = pcs[i-1]
			}
			return pc, false
		}
		if each != nil {
			each(pc, logical[from:at])
		}
	}
	return pcs[len(pcs)-1], at == len(logical)
}

// inlined counts those of logical that belong to the code at pcs[0].
func inlined(pcs, logical []uintptr) int {
	entry := entryOf(pcs[0])
	for i, pc := range logical {
		if entry == 0 || entryOf(pc) != entry || len(pcs) > 1 && pc == pcs[1] {
			return i
		}
	}
	return len(logical)
}
