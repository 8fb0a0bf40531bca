// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * start.c - the dynamic start from ld.so's first instruction on, constructors, lazy binding through
 * the PLT (built with -z lazy), dlopen(), atexit().
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile double sum;

__attribute__((constructor)) static void before(void)
{
	sum += strtod("0.5", NULL);
}

__attribute__((destructor)) static void after(void)
{
	sum += 1;
}

static void at_exit(void)
{
	puts("bye");
}

/* The dynamic linker calls choose() once, to resolve chosen() to plain(). */
static int plain(int x)
{
	return x + 1;
}

static int (*choose(void))(int)
{
	return plain;
}

static int chosen(int x) __attribute__((ifunc("choose")));

int main(int argc, char **argv)
{
	double (*cosine)(double);
	void *h;

	atexit(at_exit);
	sum += sin(argc) + strlen(argv[0]) + chosen(argc);
	h = dlopen("libm.so.6", RTLD_LAZY);
	cosine = h ? (double (*)(double))dlsym(h, "cos") : NULL;
	if (cosine)
		sum += cosine(sum);
	if (h)
		dlclose(h);
	printf("%s %f\n", argv[0], sum);
	return 0;
}
