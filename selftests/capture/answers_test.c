// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * answers_test.c - tests that shstk_hook_function() forgets where a function began when other code lies
 * there, also if the cache of rules has been flushed 65536 times since, after which its generations have
 * the same numbers again; and that the map's modules that are gone are freed where nothing but this function
 * is called.
 *
 * Compiled with -DPLUGIN=1 and 2 it is two libraries with as much code, of one function and of two.
 */
#ifdef PLUGIN
#define FUNCTION(name, size)                                                        \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		".cfi_startproc\n.fill " #size ", 1, 0\n.cfi_endproc\n.size " #name ", " #size)
#if PLUGIN == 1
FUNCTION(begin, 8192);
#else
FUNCTION(begin, 4096);
FUNCTION(second, 4096);
#endif
#else
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook.h"
#include "modmap.h"
#include "rulecache.h"

#include "kselftest_harness.h"

#define INSIDE \
	6000 /* bytes from the beginning of the code, in the second function if there are two */

static __attribute__((noinline)) uint64_t current(void)
{
	return rulecache_gen();
}

TEST(an_answer_is_forgotten_after_65536_flushes)
{
	void *library = dlopen("answers_1.so", RTLD_NOW);
	uint64_t begin, gen;

	ASSERT_NE(library, NULL);
	begin = (uintptr_t)dlsym(library, "begin");
	ASSERT_EQ(shstk_hook_function(begin + INSIDE), begin);
	gen = current();
	dlclose(library);
	library = dlopen("answers_2.so", RTLD_NOW);
	ASSERT_NE(library, NULL);
	if ((uintptr_t)dlsym(library, "begin") != begin)
		SKIP(return, "the second library lies elsewhere");
	/* The library notices here that others are loaded. */
	shstk_hook_function((uintptr_t)current);
	do
		rulecache_flush();
	while (current() != gen);
	EXPECT_EQ(shstk_hook_function(begin + INSIDE), begin + 4096);
}

TEST(modules_that_are_gone_are_freed)
{
	void *library = dlopen("answers_1.so", RTLD_NOW);
	uint64_t begin, gen;

	if (!(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) &
	      MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		SKIP(return, "there is no membarrier(2)");
	ASSERT_NE(library, NULL);
	begin = (uintptr_t)dlsym(library, "begin");
	ASSERT_EQ(shstk_hook_function(begin + INSIDE), begin);
	gen = current();
	dlclose(library);
	ASSERT_NE(dlopen("answers_2.so", RTLD_NOW), NULL);
	shstk_hook_function((uintptr_t)current);
	EXPECT_NE(current(), gen); /* the module was found to be gone */
	EXPECT_FALSE(modmap_has_retired());
}

TEST_HARNESS_MAIN
#endif
