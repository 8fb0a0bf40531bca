// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * effects_many.c - a C function of effects.ml with more arguments than there are registers for them
 */
#define CAML_NAME_SPACE
#include <caml/mlvalues.h>

value many(value a, value b, value c, value d, value e, value f, value g, value h, value i);
value many(value a, value b, value c, value d, value e, value f, value g, value h, value i)
{
	volatile long sum = 0;

	for (long n = 0; n < 20000; n++)
		sum += n & (a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i);
	return Val_long(sum & 1023);
}

/* For OCaml's bytecode, which the program is never compiled to. */
value many_bytes(value *args, int nr);
value many_bytes(value *args, int nr)
{
	(void)nr;
	return many(args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7],
		    args[8]);
}
