// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && (amd64 || (arm64 && go1.21))

// Package noframe has functions in assembly through which frame pointers do not lead.
package noframe

// Call calls f and saves no frame pointer: its caller is missing from the chain.
func Call(f func())

// Lost calls f with the frame pointer set to a wrong value.
func Lost(f func(), frame uintptr)
