// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && go1.21

package shstk

// A frame pointer points to the lower end of its frame, so what lies between two of
// them is the frame of the lower one's function, which the frame below that returns to.
const keyLag = 1

// Lower bits of a return address that say nothing, but one.
const pcShift = 1
