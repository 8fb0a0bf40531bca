// SPDX-License-Identifier: GPL-2.0-or-later

//go:build shstk

package main

import _ "shstk/go/shstktraceback"
