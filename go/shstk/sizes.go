// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

package shstk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The size of a Go function's frame is the same whenever it is at the same return
// address. So sizes are learned, from stacks that runtime.Callers, which has the
// compiler's tables, sees in the same way as the frame pointers do, and capture accepts
// a frame only if its size is the one that was learned. A return address of code that
// keeps no frame pointer is told apart by this, once, and then has no size: whatever it
// is part of is for runtime.Callers.
//
// An entry is a return address and its frame's size in bytes. An address is at the place
// that its lower bits say or, if another one is there, in the next that is free.
const (
	tableHeader = 64 // bytes in front of the entries; the first word is a mask
	sizelessBit = 1 << 63
	rootBit     = 1 << 62

	// Of a free entry: whoever sees an address without its size yet leaves the stack.
	noSize = 1 << 60

	firstEntries = 1 << 11
	mostEntries  = 1 << 18
)

type entry struct {
	pc   uintptr // 0: none; with sizelessBit one without a size; with rootBit see setRoot
	size uintptr
}

var (
	// The table, read by capture at any time: nothing is known before there is one.
	sizes  = unsafe.Pointer(&newTable(1)[header])
	rootPC uintptr // where a goroutine's first function returns to

	learning sync.Mutex
	table    []entry // what sizes points into, at the first entry
	entries  int     // that are in use
)

const header = tableHeader / unsafe.Sizeof(entry{})

// place returns where an address is, or should be.
func place(t []entry, pc uintptr) *entry {
	e := t[header:]
	i := pc >> pcShift & t[0].pc / 2
	for e[i].pc != 0 && e[i].pc&^sizelessBit != pc {
		i = (i + 1) % uintptr(len(e))
	}
	return &e[i]
}

// The mask gives the index in words of 8 bytes.
func newTable(n int) []entry {
	t := make([]entry, int(header)+n)
	t[0].pc = uintptr(n)*2 - 2
	for i := range t[header:] {
		t[int(header)+i].size = noSize
	}
	return t
}

// grow keeps three quarters of the table free. Traces that have begun go on in the old
// one, which is there until they end: the collector waits for each of them.
func grow() {
	bigger := newTable((len(table) - int(header)) * 2)
	for _, e := range table[header:] {
		if e.pc != 0 {
			*place(bigger, e.pc&^sizelessBit) = e
		}
	}
	table = bigger
	atomic.StorePointer(&sizes, unsafe.Pointer(&table[header]))
}

// put has an entry for an address, if there is room.
func put(e *entry, pc, size uintptr) {
	if entries >= mostEntries {
		return
	}
	atomic.StoreUintptr(&e.size, size)
	atomic.StoreUintptr(&e.pc, pc)
	if entries++; entries*4 > len(table) {
		grow()
	}
}

// set has an address known with a size in bytes.
func set(pc, size uintptr) {
	e := place(table, pc)
	switch {
	case e.pc == 0:
		put(e, pc, size)
	case e.size != size:
		forbid(pc)
	}
}

// setRoot has an address known as one in the first function of a goroutine.
func setRoot(pc uintptr) {
	if e := place(table, pc|rootBit); e.pc == 0 {
		put(e, pc|rootBit, noSize)
	}
}

// forbid has an address known as one without a size.
func forbid(pc uintptr) {
	if e := place(table, pc); e.pc == 0 {
		put(e, pc|sizelessBit, noSize)
	} else {
		atomic.StoreUintptr(&e.pc, pc|sizelessBit)
	}
}

func sizeless(pc uintptr) bool {
	return place(table, pc).pc&sizelessBit != 0
}

func init() {
	pcs := make([]uintptr, 64)
	for {
		n := runtime.Callers(0, pcs)
		if n < len(pcs) {
			pcs = pcs[:n]
			break
		}
		pcs = make([]uintptr, 2*len(pcs))
	}
	last := pcs[len(pcs)-1]
	if f := runtime.FuncForPC(last - 1); f == nil || f.Name() != "runtime.goexit" || !stackIsKnown() {
		return // runtime.Callers serves all
	}
	rootPC = last
	table = newTable(firstEntries)
	atomic.StorePointer(&sizes, unsafe.Pointer(&table[header]))
}
