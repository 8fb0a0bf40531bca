// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * module_test.c - captures through libraries that come, go, replace each other,
 * lack parts of their unwind information, or are no files at all.
 *
 * The plugins lie beside the program; see build.mk for how they differ.
 */
#include <dlfcn.h>
#include <elf.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "modmap.h" /* before the harness, which defines ARRAY_SIZE only if it is missing */

#include "kselftest_harness.h"
#include "truth.h"

#define MAX 256

__thread struct truth *truth;

#ifdef __SANITIZE_THREAD__
/* The sanitizer sees the loader's memory but not its locks, and reports races that are none. */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:ld-linux-x86-64.so.2\n";
}
#endif

typedef int (*plugin_fn)(struct truth *t, int (*fn)(void *), void *arg);

static void plugin_path(char *path, const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	snprintf(path, PATH_MAX, "%.3000s/%s", dirname(self), name);
}

static void *open_plugin(const char *name, plugin_fn *fn)
{
	char path[PATH_MAX];
	void *lib;

	plugin_path(path, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		printf("# %s\n", dlerror());
	else
		*(void **)fn = dlsym(lib, "plugin_call");
	return lib;
}

/* Index of the first entry of leaf()'s trace whose return address the program has noted itself. */
static int first_entry = 2;

static noinline int leaf(void *arg)
{
	struct shstk_info *info = arg;
	uint64_t pcs[MAX];
	int i, n, good = 0;

	for (i = 0; i < 2; i++) {
		*info = INFO();
		n = shstk_capture(pcs, MAX, NULL, info);
		good += truth_equal(pcs, n, first_entry) && info->end == SHSTK_END_COMPLETE;
	}
	return good;
}

static noinline int through(plugin_fn fn, struct shstk_info *info)
{
	struct truth t = { .n = 0 };
	int ret;

	truth = &t;
	TRUTH_ENTER();
	ret = fn(&t, leaf, info);
	NO_TAIL_CALL();
	TRUTH_LEAVE();
	return ret;
}

static void check_plugin(struct __test_metadata *_metadata, const char *name, unsigned int guessed)
{
	struct shstk_info info;
	plugin_fn fn = NULL;
	void *lib = open_plugin(name, &fn);

	ASSERT_NE(lib, NULL);
	EXPECT_EQ(through(fn, &info), 2);
	EXPECT_EQ(info.guessed, guessed);
	dlclose(lib);
}

TEST(a_library_opened_later_is_found)
{
	check_plugin(_metadata, "plugin_small.so", 0);
}

TEST(a_library_without_a_search_table_is_unwound)
{
	check_plugin(_metadata, "plugin_nohdr.so", 0);
}

TEST(a_library_without_section_headers_is_unwound)
{
	check_plugin(_metadata, "plugin_nosections.so", 0);
}

TEST(a_library_with_debug_frame_only_is_unwound)
{
	check_plugin(_metadata, "plugin_debugframe.so", 0);
}

TEST(a_library_without_information_is_guessed_by_its_frame_pointer)
{
	check_plugin(_metadata, "plugin_nocfi.so", 1);
}

TEST(a_library_whose_file_was_deleted_is_unwound)
{
	char from[PATH_MAX], to[PATH_MAX], cmd[2 * PATH_MAX + 16];
	struct shstk_info info;
	plugin_fn fn = NULL;
	void *lib;
	int fd;

	/* The copy is not made in /tmp, which is mounted noexec on some machines. */
	plugin_path(to, "deleted-XXXXXX");
	fd = mkstemp(to);
	ASSERT_GE(fd, 0);
	close(fd);
	plugin_path(from, "plugin_small.so");
	snprintf(cmd, sizeof(cmd), "cp '%s' '%s'", from, to);
	ASSERT_EQ(system(cmd), 0);
	lib = dlopen(to, RTLD_NOW);
	ASSERT_NE(lib, NULL);
	*(void **)&fn = dlsym(lib, "plugin_call");
	unlink(to);
	EXPECT_EQ(through(fn, &info), 2);
	EXPECT_EQ(info.guessed, 0);
	dlclose(lib);
}

/* The second library is mapped where the first one was, and its frames differ. */
TEST(a_library_that_takes_anothers_place_is_unwound_by_its_own_rules)
{
	static const char *const name[] = { "plugin_small.so", "plugin_large.so" };
	int i, same = 0, wrong = 0;
	uint64_t last = 0;

	for (i = 0; i < 40; i++) {
		struct shstk_info info;
		plugin_fn fn = NULL;
		void *lib = open_plugin(name[i & 1], &fn);

		ASSERT_NE(lib, NULL);
		same += (uintptr_t)fn == last;
		last = (uintptr_t)fn;
		wrong += through(fn, &info) != 2;
		wrong += through(fn, &info) != 2;
		dlclose(lib);
	}
	EXPECT_EQ(wrong, 0);
	if (!same)
		SKIP(return, "the loader never used the same address twice");
}

/* Loads the plugin with large frames while the one with small frames goes with three others. */
TEST(libraries_that_go_do_not_hide_that_one_comes)
{
	static const char *const name[] = { "plugin_small.so", "plugin_nohdr.so", "plugin_apart.so",
					    "plugin_debugframe.so" };
	struct shstk_info info;
	plugin_fn fn[4], other;
	void *lib[4];
	int i;

	for (i = 0; i < 4; i++) {
		lib[i] = open_plugin(name[i], &fn[i]);
		ASSERT_NE(lib[i], NULL);
	}
	EXPECT_EQ(through(fn[0], &info), 2);
	for (i = 3; i >= 0; i--)
		dlclose(lib[i]);
	ASSERT_NE(open_plugin("plugin_large.so", &other), NULL);
	EXPECT_EQ(through(other, &info), 2);
	if (other != fn[0])
		SKIP(return, "the loader used another address");
}

/* A word of the loader can happen to be the number of loads, without being the counter. */
TEST(the_last_trace_is_known_again_with_any_number_of_counters)
{
	const uint64_t gen = 3ull << 48;
	static uint64_t word;
	uint64_t state;

	while (modmap_watch.n < MODMAP_COUNTERS) {
		const uint64_t **counter = &modmap_watch.counter[modmap_watch.n];

		if (!*counter)
			*counter = &word;
		modmap_watch.n++;
		modmap_loads_saw(modmap_loads());
		state = modmap_state_seen(gen);
		EXPECT_TRUE(modmap_state_is(state, gen));
		EXPECT_FALSE(modmap_state_is(state, gen + (1ull << 48)));
		if (*counter != &word)
			continue;
		word++;
		EXPECT_FALSE(modmap_state_is(state, gen));
		word--;
	}
}

static long churn_wrong;

static void *churn(void *arg)
{
	static const char *const name[] = { "plugin_small.so", "plugin_large.so",
					    "plugin_nohdr.so" };
	int i, me = *(int *)arg;

	for (i = 0; i < 150; i++) {
		struct shstk_info info;
		plugin_fn fn = NULL;
		void *lib = open_plugin(name[(i + me) % 3], &fn);

		if (!lib || through(fn, &info) != 2 || through(fn, &info) != 2)
			__atomic_fetch_add(&churn_wrong, 1, __ATOMIC_RELAXED);
		if (lib)
			dlclose(lib);
		if (!(i % 50))
			shstk_modules_changed();
	}
	return NULL;
}

TEST(libraries_opened_and_closed_by_four_threads_do_no_harm)
{
	struct shstk_stats stats = { .size = sizeof(stats) };
	int me[4] = { 0, 1, 2, 3 };
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, churn, &me[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(churn_wrong, 0);
	shstk_modules_changed();
	shstk_get_stats(&stats);
	printf("# %llu modules known at the end\n", (unsigned long long)stats.modules);
	EXPECT_LE(stats.modules, 20);
}

/* A function made at run time: it makes a frame record, calls its argument and returns. */
#ifdef __x86_64__
static const uint8_t jit_code[] = {
	0x55, /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0x48, 0x89, 0xd7, /* mov %rdx, %rdi */
	0xff, 0xd6, /* call *%rsi */
	0x5d, /* pop %rbp */
	0xc3, /* ret */
};
#else
static const uint32_t jit_code[] = {
	0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
	0x910003fd, /* mov x29, sp */
	0xaa0203e0, /* mov x0, x2 */
	0xd63f0020, /* blr x1 */
	0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
	0xd65f03c0, /* ret */
};
#endif

TEST(code_made_at_run_time_is_guessed_by_its_frame_pointer)
{
	struct shstk_info info;
	void *code;
	int i;

	first_entry = 3; /* the made code does not note its return address */
	for (i = 0; i < 3; i++) {
		code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(code, MAP_FAILED);
		memcpy(code, jit_code, sizeof(jit_code));
		mprotect(code, 4096, PROT_READ | PROT_EXEC);
		__builtin___clear_cache(code, (char *)code + 4096);
		EXPECT_EQ(through((plugin_fn)code, &info), 2);
		EXPECT_EQ(info.guessed, 1);
		munmap(code, 4096);
	}
}

/*
 * The unwound program is an invented one, mapped at other addresses: a library, and code that lies
 * between the segments of this library.
 */
#define BASE 0x10000000ull

struct apart {
	char path[PATH_MAX];
	uint64_t code, end, offset, room, last, entry;
};

static void find_room(struct apart *a, const Elf64_Ehdr *eh)
{
	const Elf64_Phdr *ph = (const void *)((const char *)eh + eh->e_phoff);

	for (int i = 0; i < eh->e_phnum; i++) {
		uint64_t end = (ph[i].p_vaddr + ph[i].p_memsz + 4095) & ~4095ull;

		if (ph[i].p_type != PT_LOAD)
			continue;
		a->last = BASE + end;
		if (!(ph[i].p_flags & PF_X))
			continue;
		a->code = BASE + (ph[i].p_vaddr & ~4095ull);
		a->offset = ph[i].p_offset & ~4095ull;
		a->end = BASE + end;
		for (int j = i + 1; j < eh->e_phnum; j++) {
			if (ph[j].p_type != PT_LOAD)
				continue;
			if ((ph[j].p_vaddr & ~4095ull) >= end + 4096)
				a->room = a->end;
			break;
		}
	}
}

static void find_apart(struct apart *a)
{
	Dl_info info;
	plugin_fn fn;
	void *lib;

	*a = (struct apart){ .code = 0 };
	plugin_path(a->path, "plugin_apart.so");
	lib = open_plugin("plugin_apart.so", &fn);
	if (!lib || !dladdr((void *)fn, &info))
		return;
	a->entry = BASE + ((uintptr_t)fn - (uintptr_t)info.dli_fbase);
	find_room(a, info.dli_fbase);
	dlclose(lib);
}

/* Every word of the stack is a return address to the code in between. */
static int read_room(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct apart *a = arg;
	uint64_t word = a->room + 16;

	(void)addr;
	if (len != sizeof(word))
		return -1;
	memcpy(buf, &word, sizeof(word));
	return 0;
}

static int add_apart(struct shstk_space *s, const struct apart *a)
{
	return shstk_space_add_file(s, a->path, a->code, a->end, a->offset);
}

static int add_room(struct shstk_space *s, const struct apart *a)
{
	return shstk_space_add_code(s, a->room, a->room + 4096);
}

/* The rest of a mapping that covered the whole library, behind what was mapped into the gap. */
static int add_behind(struct shstk_space *s, const struct apart *a)
{
	return shstk_space_add_code(s, a->room + 4096, a->last);
}

typedef int (*add_fn)(struct shstk_space *s, const struct apart *a);

static bool begin_space(const struct apart *a, struct shstk_space **s, struct shstk_regs *regs)
{
	*regs = (struct shstk_regs){ .size = sizeof(*regs), .known = ~0u, .pc = a->entry };
#ifdef __x86_64__
	regs->r[7] = 0x7fff0000;
	return !shstk_space_create(SHSTK_ARCH_X86, s);
#else
	regs->r[31] = 0x7fff0000;
	regs->r[30] = a->room + 16;
	return !shstk_space_create(SHSTK_ARCH_ARM64, s);
#endif
}

/*
 * Returns whether the library's function is unwound by its own rules, and has the code in between
 * as its caller.
 */
static bool is_described(struct shstk_space *s, const struct shstk_regs *regs,
			 const struct apart *a)
{
	struct shstk_info info = INFO();
	uint64_t pcs[MAX];
	int nr = shstk_unwind(s, regs, read_room, (void *)a, pcs, MAX, NULL, &info);

	return nr >= 2 && pcs[0] == a->entry && pcs[1] == a->room + 16 && !info.guessed;
}

/* Returns is_described() for a space with these mappings. */
static bool is_whole(const struct apart *a, const add_fn *add, unsigned int n)
{
	struct shstk_space *s;
	struct shstk_regs regs;
	bool ok = begin_space(a, &s, &regs);

	for (unsigned int i = 0; ok && i < n; i++)
		ok = !add[i](s, a);
	if (!ok)
		return false;
	ok = is_described(s, &regs, a);
	shstk_space_destroy(s);
	return ok;
}

TEST(what_lies_between_the_segments_of_a_library_is_no_part_of_it)
{
	static const add_fn add[] = { add_apart, add_room, add_apart };
	struct apart a;

	find_apart(&a);
	ASSERT_NE(0ull, a.entry);
	ASSERT_NE(0ull, a.room);
	EXPECT_TRUE(is_whole(&a, add, 2));
	EXPECT_TRUE(is_whole(&a, add + 1, 2));
}

TEST(what_is_told_of_a_librarys_data_leaves_its_code)
{
	static const add_fn add[] = { add_apart, add_behind, add_room, add_apart };
	struct apart a;

	find_apart(&a);
	ASSERT_NE(0ull, a.entry);
	ASSERT_LT(a.room + 4096, a.last);
	EXPECT_TRUE(is_whole(&a, add, 3));
	EXPECT_TRUE(is_whole(&a, add + 1, 3));
}

TEST(rules_of_addresses_are_those_of_what_is_mapped_now)
{
	struct shstk_space *s;
	struct shstk_regs regs;
	struct apart a;

	find_apart(&a);
	ASSERT_TRUE(begin_space(&a, &s, &regs));
	ASSERT_EQ(0, add_room(s, &a));
	ASSERT_EQ(0, add_apart(s, &a));
	for (int i = 0; i < 20; i++)
		EXPECT_TRUE(is_described(s, &regs, &a));
	ASSERT_EQ(0, shstk_space_add_code(s, a.code, a.end));
	for (int i = 0; i < 20; i++)
		EXPECT_FALSE(is_described(s, &regs, &a));
	ASSERT_EQ(0, add_apart(s, &a));
	EXPECT_TRUE(is_described(s, &regs, &a));
	shstk_space_destroy(s);
}

TEST_HARNESS_MAIN
