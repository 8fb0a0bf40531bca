// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && !go1.23 && (amd64 || (arm64 && go1.21))

package noframe

import _ "unsafe"

// OnSystemStack calls f on the thread's own stack. Later releases of Go let no other
// package have this.
//
//go:linkname OnSystemStack runtime.systemstack
//go:noescape
func OnSystemStack(f func())
