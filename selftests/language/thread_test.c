// SPDX-License-Identifier: GPL-2.0-or-later
/* thread_test.c - what the instructions of pthread_self() tell of arm64 (tools/language/python/thread.c). */
#include <stddef.h>
#include <stdint.h>

#include "tools/language/python/python.h"

#include "kselftest_harness.h"

/* Instructions, and what they tell; 0: nothing. */
struct code {
	uint32_t words[PYTHON_SELF_CODE];
	uint64_t distance;
};

static void compare(struct __test_metadata *_metadata, const struct code *c)
{
	uint64_t distance = 0;

	EXPECT_EQ(c->distance != 0, python_thread_distance(c->words, &distance));
	EXPECT_EQ(c->distance, distance);
}

TEST(pthread_self_tells_how_far_it_is_below_the_thread_pointer)
{
	static const struct code cases[] = {
		/* glibc 2.36; 2.41 and 2.43 */
		{ { 0xd53bd040, 0xd11d0000, 0xd65f03c0, 0xd503201f }, 0x740 },
		{ { 0xd503245f, 0xd53bd040, 0xd11c8000, 0xd65f03c0 }, 0x720 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		compare(_metadata, &cases[i]);
}

TEST(other_instructions_tell_nothing)
{
	static const struct code cases[] = {
		{ { 0, 0, 0, 0 }, 0 },
		/* what is called before the function is bound */
		{ { 0xb0003930, 0xf947fe11, 0x913fe210, 0xd61f0220 }, 0 },
		/* bti twice; another register is read; another one is the result, or the number is shifted */
		{ { 0xd503245f, 0xd503245f, 0xd53bd040, 0xd11c8000 }, 0 },
		{ { 0xd53bd041, 0xd11c8000, 0xd65f03c0, 0xd503201f }, 0 },
		{ { 0xd53bd040, 0xd11c8001, 0xd65f03c0, 0xd503201f }, 0 },
		{ { 0xd53bd040, 0xd15c8000, 0xd65f03c0, 0xd503201f }, 0 },
		/* added, not subtracted; something follows */
		{ { 0xd53bd040, 0x911c8000, 0xd65f03c0, 0xd503201f }, 0 },
		{ { 0xd53bd040, 0xd11c8000, 0xd503201f, 0xd65f03c0 }, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		compare(_metadata, &cases[i]);
}

TEST_HARNESS_MAIN
