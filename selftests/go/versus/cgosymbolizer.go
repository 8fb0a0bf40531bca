// SPDX-License-Identifier: GPL-2.0-or-later

//go:build cgosymbolizer

package main

import _ "github.com/ianlancetaylor/cgosymbolizer"
