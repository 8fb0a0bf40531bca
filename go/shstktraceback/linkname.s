// SPDX-License-Identifier: LGPL-2.1-or-later

// This file lets the compiler accept a declaration without a body: go:linkname.
