// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc

package shstk

// A frame pointer points to where the frame above it begins, so what lies between two
// of them is the frame of the function that the lower one returns to.
const keyLag = 0

// Lower bits of a return address that say nothing, but one.
const pcShift = 0
