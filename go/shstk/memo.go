// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A goroutine's last trace. Frames are named by their distance from the upper end of
// the stack, which does not change when the stack is moved. Nothing in it is trusted:
// capture uses a remembered frame only where its frame pointer led to that place, or
// where all return addresses below turned out to be those that are remembered.
//
// It is a chain all the same, whatever is put together in it: each frame lies above the
// one before it by the size that was learned for the return address between them.
type memo struct {
	first   uintptr        // the innermost frame; those below it are no longer there
	size    uintptr        // the most frames it holds; the outermost is the last one
	offsets *uint32        // of size + 1: places of frames, from stack.hi - 2^32
	fresh   *uint32        // of 2 size: the same of frames that are being looked at
	pcs     *uintptr       // of size: their return addresses
	slot    unsafe.Pointer // where it belongs
}

// A goroutine's place for its memo, by a hash of its g. The first one there that wants a
// memo owns it, and uses it without any lock: a goroutine runs on one thread at a time,
// and nobody else looks at its memo. Another one with the same hash does without.
type slot struct {
	memo   uintptr // *memo, once there is an owner
	owner  uintptr // the g; others leave the memo alone
	deep   uint32  // bytes of stack from which on a memo was found to pay
	made   uint32  // frames that the memo holds; 0 before there is one
	used   uint32  // since the last collection, by capture
	wanted uint32  // since then, without there being one
	keep   *memo   // the same as memo, for the collector
	_      [24]byte
}

const (
	slotCount = 4096
	slotShift = 6          // log2 of a slot's size
	hash      = 0x61c88647 // the golden ratio's
	deep      = 16         // a memo saves nothing with fewer frames

	firstFrames = 128       // a memo's size to begin with
	mostFrames  = 1 << 16   // and at last
	frameBytes  = 3*4 + 8   // of a memo for each frame
	mostBytes   = 16 << 20  // of all memos
	never       = 1<<31 - 1 // made, where there was no more room for one
	deepFirst   = deep * 48 // bytes of stack that so many frames might have
)

var (
	slots    [slotCount]slot
	owning   sync.Mutex // guards who owns which slot, and what is below
	memoSum  int64      // bytes of all memos
	sweeping bool       // after each collection
)

// current returns the g of the calling goroutine.
func current() uintptr

func init() {
	for i := range slots {
		slots[i].deep = deepFirst
	}
}

// provide makes a memo for the calling goroutine's slot that has room for more than n
// frames, and more than the one that is there.
//
//go:noinline
func provide(s *slot, n int) {
	if !owning.TryLock() {
		return
	}
	defer owning.Unlock()
	g := current()
	made := atomic.LoadUint32(&s.made)
	if owner := atomic.LoadUintptr(&s.owner); owner != g && (owner != 0 || made != 0) {
		return
	}
	if atomic.SwapUint32(&s.wanted, 1) == 0 {
		return // one trace now and then needs none
	}
	frames := uintptr(firstFrames)
	for frames <= uintptr(n) || frames <= uintptr(made) {
		frames *= 2
	}
	bytes := int64(frames) * frameBytes
	if frames > mostFrames || memoSum+bytes > mostBytes {
		atomic.StoreUint32(&s.made, never)
		return
	}
	if !sweeping {
		sweeping = true
		runtime.SetFinalizer(&sentinel{s}, (*sentinel).collected)
	}
	memoSum += bytes
	if s.keep != nil {
		memoSum -= int64(s.keep.size) * frameBytes
	}
	s.keep = newMemo(frames, s)
	atomic.StoreUint32(&s.made, uint32(frames))
	atomic.StoreUint32(&s.used, 1)
	atomic.StoreUintptr(&s.memo, uintptr(unsafe.Pointer(s.keep)))
	atomic.StoreUintptr(&s.owner, g)
}

// sentinel is garbage at once, so that a collection is noticed: that is when slots are
// looked through.
type sentinel struct{ s *slot }

func (x *sentinel) collected() {
	sweep()
	runtime.SetFinalizer(x, (*sentinel).collected)
}

// sweep takes slots from goroutines that did not use them since the last collection; most
// of these have ended. A trace that has begun may still use such a memo. It has ended
// when the next collection has, for which every goroutine had to leave assembly: so the
// memo is given up by the sweep after that.
func sweep() {
	owning.Lock()
	defer owning.Unlock()
	for i := range slots {
		s := &slots[i]
		atomic.StoreUint32(&s.wanted, 0)
		switch {
		case atomic.SwapUint32(&s.used, 0) != 0:
		case atomic.LoadUintptr(&s.owner) != 0:
			atomic.StoreUintptr(&s.owner, 0)
		case s.keep != nil:
			memoSum -= int64(s.keep.size) * frameBytes
			s.keep = nil
			atomic.StoreUintptr(&s.memo, 0)
			atomic.StoreUint32(&s.made, 0)
		case atomic.LoadUint32(&s.made) == never && memoSum < mostBytes/2:
			atomic.StoreUint32(&s.made, 0)
		}
	}
}

func newMemo(frames uintptr, s *slot) *memo {
	offsets := make([]uint32, frames+1)
	offsets[frames] = ^uint32(0) // no frame has this place
	fresh := make([]uint32, 2*frames)
	pcs := make([]uintptr, frames)
	return &memo{
		first: frames, size: frames, slot: unsafe.Pointer(s),
		offsets: &offsets[0], fresh: &fresh[0], pcs: &pcs[0],
	}
}
