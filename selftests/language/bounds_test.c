// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bounds_test.c - processes that have too much for tools/language/.
 *
 * This program has the symbols of Python 3.11, so its own file is one of the interpreter.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tools/language/languages.h"
#include "tools/proc/maps.h"

#include "kselftest_harness.h"

#define PAGE 4096

unsigned long Py_Version = 0x030b02f0;
uint8_t _PyRuntime[PAGE];
uint8_t PyCode_Type[512];
int _PyEval_EvalFrameDefault(void);

int _PyEval_EvalFrameDefault(void)
{
	return 0;
}

static int read_version(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	(void)addr;
	if (size != sizeof(Py_Version))
		return -EFAULT;
	memcpy(buf, &Py_Version, size);
	return 0;
}

/* Opens this program as a file that a process has mapped. Returns false if it cannot be found. */
static bool open_module(struct language_module *ret)
{
	struct mapping m;
	struct maps maps;
	bool found = false;

	*ret = (struct language_module){ .fd = -1, .read = read_version };
	if (maps_open(getpid(), "maps", &maps))
		return false;
	while (!found && maps_next(&maps, &m)) {
		found = m.exec && m.start <= (uintptr_t)read_version &&
			(uintptr_t)read_version < m.end;
		ret->start = m.start;
		ret->offset = m.offset;
	}
	maps_close(&maps);
	ret->fd = found ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : -1;
	return ret->fd >= 0;
}

TEST(more_interpreters_than_can_be_known_are_said)
{
	struct languages *all = languages_create(NULL);
	struct language_module module;

	ASSERT_TRUE(all && open_module(&module));
	languages_stopped_only(all);
	for (int i = 1; i < LANGUAGE_TARGETS; i++, module.start += PAGE)
		ASSERT_EQ(i, languages_find(all, &module));
	EXPECT_EQ(NULL, languages_refused(all));
	EXPECT_EQ(0, languages_find(all, &module));
	ASSERT_NE(NULL, languages_refused(all));
	TH_LOG("%s", languages_refused(all));
	module.start -= PAGE;
	EXPECT_EQ(LANGUAGE_TARGETS - 1, languages_find(all, &module));
	close(module.fd);
	languages_destroy(all);
}

TEST_HARNESS_MAIN
