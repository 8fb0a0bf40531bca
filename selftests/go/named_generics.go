// SPDX-License-Identifier: GPL-2.0-or-later

// A function whose name has spaces, braces, semicolons and quotation marks in it.
package main

type pair struct {
	A int
	B string
}

//go:noinline
func fold[T any](x T, n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i
	}
	return sum
}

func init() {
	generic = append(generic, func() {
		sink += fold(struct {
			A int    `json:"a;b"`
			B string `yaml:"<c>"`
		}{}, 100000)
	}, func() { sink += fold(map[string]pair{}, 100000) })
}
