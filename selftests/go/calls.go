// SPDX-License-Identifier: GPL-2.0-or-later

// Calls of C and back, for programs that are to have C in them.
package main

// #include <stdint.h>
// extern int shstkGoBack(int n);
//
// static volatile unsigned int shstk_sum;
//
// static __attribute__((noinline)) int shstk_spin(int n)
// {
//	for (int i = 0; i < 20000; i++)
//		shstk_sum += i * n;
//	return shstk_sum;
// }
//
// static __attribute__((noinline)) int shstk_deep(int n)
// {
//	volatile char room[400];
//
//	room[n] = 1;
//	return n ? shstk_deep(n - 1) + room[n] : shstk_spin(3);
// }
//
// static __attribute__((noinline)) int shstk_there(int n)
// {
//	return shstkGoBack(n) + 1;
// }
import "C"

//export shstkGoBack
func shstkGoBack(n C.int) C.int {
	if n == 0 {
		return C.shstk_deep(5)
	}
	return C.shstk_there(n-1) + 1
}

func init() {
	calls = append(calls,
		func() { C.shstk_deep(12) },
		func() { shstkGoBack(4) },
		func() { C.shstk_spin(1) })
}
