// SPDX-License-Identifier: GPL-2.0-or-later

// Generic functions and types: their names have brackets, blanks, braces and semicolons.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type pair[K comparable, V any] struct {
	key   K
	value V
}

//go:noinline
func (p *pair[K, V]) set(key K, value V) {
	p.key = key
	p.value = value
	fmt.Fprintln(os.Stderr, p)
}

//go:noinline
func each[T any, U any](from []T, f func(T) U) []U {
	var to []U
	for _, v := range from {
		to = append(to, f(v))
	}
	return to
}

func generics() {
	p := &pair[string, struct{ A, B int }]{}
	p.set("key", struct{ A, B int }{1, 2})
	each([]int{1, 2, 3}, func(i int) string { return strconv.Itoa(i) })
}

func init() {
	more = append(more, generics)
}
