// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit_test.c - traces through code made at run time: registered unwind
 * information, frame pointers without it, code that takes another's place.
 */
#include <errno.h>

#include "jit.h"
#include "kselftest_harness.h"
#include "shstk.h"

#define MAX 64
#define NOINLINE __attribute__((noinline, noclone))

typedef int (*jit_fn)(int (*callback)(void));

static uint64_t pcs[MAX];
static uint8_t marks[MAX];
static struct shstk_info info;
static int frames;
/* return addresses of the calls into the made code and out of it */
static uint64_t into_jit, out_of_jit;

static NOINLINE int callback(void)
{
	struct shstk_opts opts = { .size = sizeof(opts), .marks = marks };
	volatile int r;

	memset(marks, 0, sizeof(marks));
	info = (struct shstk_info){ .size = sizeof(info) };
	into_jit = (uintptr_t)__builtin_return_address(0);
	r = frames = shstk_capture(pcs, MAX, &opts, &info);
	return r;
}

static NOINLINE int enter(jit_fn fn)
{
	volatile int r;

	out_of_jit = (uintptr_t)__builtin_return_address(0);
	r = fn(callback);
	return r;
}

/* Returns whether the entries are: callback, the code, enter, its caller, and so on. */
static bool through(jit_fn fn)
{
	enter(fn);
	return frames > 4 && pcs[1] == into_jit && pcs[3] == out_of_jit &&
	       info.end == SHSTK_END_COMPLETE;
}

static bool exact(jit_fn fn)
{
	return through(fn) && !info.guessed;
}

/*
 * Returns whether the trace is honest: nothing describes the code, so what follows it is missing or
 * marked.
 */
static bool honest(jit_fn fn)
{
	enter(fn);
	return frames >= 2 && pcs[1] == into_jit && (frames == 2 || marks[2] & SHSTK_MARK_GUESS);
}

static uint8_t section[256];

#define MAKE(what) jit_make(what, sizeof(what), 256)
#define FRAMES(code, what) jit_frames(section, code, sizeof(what), what##_cfi, sizeof(what##_cfi))

TEST(frame_pointers_are_followed_and_marked)
{
	jit_fn fn = MAKE(jit_fp);

	ASSERT_NE(NULL, fn);
	EXPECT_TRUE(through(fn));
	EXPECT_GT(info.guessed, 0u);
	EXPECT_TRUE(marks[2] & SHSTK_MARK_GUESS);
}

TEST(nothing_is_guessed_silently)
{
	jit_fn fn = MAKE(jit_plain);

	ASSERT_NE(NULL, fn);
	EXPECT_TRUE(honest(fn));
}

TEST(registered_code_is_exact)
{
	jit_fn fn = MAKE(jit_plain);

	ASSERT_NE(NULL, fn);
	FRAMES(fn, jit_plain);
	EXPECT_EQ(0, shstk_register_frame(section));
	EXPECT_TRUE(exact(fn));
	EXPECT_TRUE(exact(fn)); /* this time by what the capture before has left */
	EXPECT_EQ(0, shstk_deregister_frame(section));
}

TEST(registered_after_a_trace)
{
	jit_fn fn = MAKE(jit_plain);

	ASSERT_NE(NULL, fn);
	EXPECT_TRUE(honest(fn));
	FRAMES(fn, jit_plain);
	EXPECT_EQ(0, shstk_register_frame(section));
	EXPECT_TRUE(exact(fn));
	EXPECT_EQ(0, shstk_deregister_frame(section));
	EXPECT_TRUE(honest(fn));
}

TEST(section_is_copied)
{
	jit_fn fn = MAKE(jit_plain);

	ASSERT_NE(NULL, fn);
	FRAMES(fn, jit_plain);
	EXPECT_EQ(0, shstk_register_frame(section));
	memset(section, 0xff, sizeof(section));
	EXPECT_TRUE(exact(fn));
	EXPECT_EQ(0, shstk_deregister_frame(section));
}

TEST(other_code_in_the_same_place)
{
	jit_fn fn = MAKE(jit_plain);
	char *page = (char *)fn - 256;
	int i;

	ASSERT_NE(NULL, fn);
	for (i = 0; i < 100; i++) {
		bool plain = i & 1;

		ASSERT_EQ(0, mprotect(page, 65536, PROT_READ | PROT_WRITE));
		memcpy(page + 256, plain ? (const void *)jit_plain : jit_other,
		       plain ? sizeof(jit_plain) : sizeof(jit_other));
		__builtin___clear_cache(page, page + 65536);
		ASSERT_EQ(0, mprotect(page, 65536, PROT_READ | PROT_EXEC));
		if (plain)
			FRAMES(fn, jit_plain);
		else
			FRAMES(fn, jit_other);
		ASSERT_EQ(0, shstk_register_frame(section));
		ASSERT_TRUE(exact(fn));
		ASSERT_EQ(0, shstk_deregister_frame(section));
	}
}

TEST(a_thousand_functions)
{
	static uint8_t sections[1000][128];
	struct shstk_stats before = { .size = sizeof(before) };
	struct shstk_stats after = { .size = sizeof(after) };
	jit_fn fn[1000];
	int i;

	for (i = 0; i < 1000; i++) {
		fn[i] = MAKE(jit_plain);
		ASSERT_NE(NULL, fn[i]);
		jit_frames(sections[i], fn[i], sizeof(jit_plain), jit_plain_cfi,
			   sizeof(jit_plain_cfi));
	}
	ASSERT_TRUE(honest(fn[0]));
	shstk_get_stats(&before);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, shstk_register_frame(sections[i]));
	for (i = 0; i < 1000; i++)
		ASSERT_TRUE(exact(fn[i]));
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, shstk_deregister_frame(sections[i]));
	shstk_get_stats(&after);
	EXPECT_LE(after.modules, before.modules + 1);
	EXPECT_TRUE(honest(fn[999]));
}

TEST(nonsense_is_refused)
{
	EXPECT_EQ(-EINVAL, shstk_register_frame(NULL));
	memset(section, 0, sizeof(section));
	EXPECT_EQ(-EINVAL, shstk_register_frame(section));
	FRAMES(section, jit_plain);
	section[4] = 0xff; /* an FDE in front of any CIE */
	EXPECT_EQ(-EINVAL, shstk_register_frame(section));
	memset(section, 0xff, sizeof(section));
	EXPECT_EQ(-EINVAL, shstk_register_frame(section));
	EXPECT_EQ(-ENOENT, shstk_deregister_frame(section));
	EXPECT_EQ(-ENOENT, shstk_deregister_frame(NULL));
}

TEST_HARNESS_MAIN
