// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * file_rules_test.c - tests that rules for unwinding are shared by all programs that have mapped the same
 * file, wherever it is mapped, and by no others.
 *
 * Whether a rule is shared is seen by a wrong one that is put into the table: with it, a stack ends at
 * once. The file is this program.
 */
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/address_space.h"
#include "libshstk/file_rules.h"
#include "libshstk/shstk.h"

#include "kselftest_harness.h"

#define MOST 4096 /* entries of a table */
#define OTHER_PLACE 0x100000000ull /* how much further up the file is mapped in another program */

#ifdef __x86_64__
#define ARCH SHSTK_ARCH_X86
#define SP 7
#elif defined(__aarch64__)
#define ARCH SHSTK_ARCH_ARM64
#define SP 31
#else
#define ARCH SHSTK_ARCH_RISCV
#define SP 2
#endif

/* ---- Tables ---- */

TEST(a_table_has_what_was_put_last)
{
	struct rule_table t = { .rules = NULL };

	EXPECT_EQ(rule_table_get(&t, 5), RULE_NONE);
	rule_table_put(&t, MOST, 5, 10);
	rule_table_put(&t, MOST, 6, 12);
	rule_table_put(&t, MOST, 5, 11);
	EXPECT_EQ(rule_table_get(&t, 5), 11);
	EXPECT_EQ(rule_table_get(&t, 6), 12);
	EXPECT_EQ(rule_table_get(&t, 7), RULE_NONE);
	rule_table_clear(&t);
	EXPECT_EQ(rule_table_get(&t, 5), RULE_NONE);
}

TEST(a_table_grows_up_to_its_bound)
{
	struct rule_table t = { .rules = NULL };
	unsigned int found = 0;

	for (uint64_t key = 1; key <= MOST / 2; key++)
		rule_table_put(&t, MOST, key << 4, key);
	for (uint64_t key = 1; key <= MOST / 2; key++) {
		const uint64_t rule = rule_table_get(&t, key << 4);

		EXPECT_TRUE(rule == RULE_NONE || rule == key);
		found += rule != RULE_NONE;
	}
	/* Sets differ in how many keys fall to them. */
	EXPECT_GT(found, MOST / 2 * 9 / 10);
	for (uint64_t key = 1; key <= 4 * MOST; key++)
		rule_table_put(&t, MOST, key << 4, key);
	EXPECT_EQ(t.size, MOST);
	EXPECT_EQ(rule_table_get(&t, 4ull * MOST << 4), 4 * MOST);
	rule_table_clear(&t);
}

/* ---- Files ---- */

FIXTURE(files)
{
	struct file_rules *files;
	int fd;
};

FIXTURE_SETUP(files)
{
	self->files = file_rules_create();
	ASSERT_NE(self->files, NULL);
	self->fd = memfd_create("file", MFD_CLOEXEC);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(files)
{
	close(self->fd);
	file_rules_destroy(self->files);
}

TEST_F(files, a_file_has_one_number)
{
	int again = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int same = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	ASSERT_GE(same, 0);
	EXPECT_EQ(file_rules_number(self->files, again), 1);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 2);
	EXPECT_EQ(file_rules_number(self->files, same), 1);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 2);
	close(again);
	close(same);
}

TEST_F(files, a_file_that_was_changed_is_another_one)
{
	const struct timespec old[2] = { { 1, 1 }, { 1, 1 } }, other[2] = { { 1, 1 }, { 1, 2 } };

	ASSERT_EQ(futimens(self->fd, old), 0);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 1);
	ASSERT_EQ(futimens(self->fd, other), 0);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 2);
	ASSERT_EQ(ftruncate(self->fd, 1), 0);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 3);
}

TEST_F(files, what_is_no_regular_file_has_none)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(file_rules_number(self->files, null), 0);
	EXPECT_EQ(file_rules_number(self->files, -1), 0);
	close(null);
}

TEST_F(files, more_files_than_numbers_have_none)
{
	for (uint32_t i = 1; i <= FILE_RULES_FILES; i++) {
		ASSERT_EQ(ftruncate(self->fd, i), 0);
		ASSERT_EQ(file_rules_number(self->files, self->fd), i);
	}
	ASSERT_EQ(ftruncate(self->fd, FILE_RULES_FILES + 1), 0);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 0);
	EXPECT_EQ(file_rules_number(self->files, self->fd), 0);
}

/* ---- Programs ---- */

/* Where this program's code is mapped, and from where in its file. */
struct mapped {
	uint64_t bias;
	uint64_t start;
	uint64_t end;
	uint64_t offset;
};

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mapped *m = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X)
			*m = (struct mapped){ info->dlpi_addr, start & -4096ull,
					      (start + ph->p_memsz + 4095) & -4096ull,
					      ph->p_offset & -4096ull };
	}
	return 1; /* the program is the first one */
}

/* Reads the stack of the program that is unwound: its return address is the function itself. */
static int read_stack(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)addr;
	if (size != sizeof(uint64_t))
		return -1;
	memcpy(buf, arg, size);
	return 0;
}

/* The function whose frame is unwound. */
__attribute__((noinline, aligned(64))) static int leaf(int n)
{
	return n + getpid();
}

/* Returns a program that has mapped the file @by bytes further up than this one. */
static struct shstk_space *program(struct file_rules *files, unsigned int user, const char *path,
				   uint64_t by)
{
	struct shstk_space *space;
	struct mapped m;

	dl_iterate_phdr(find_code, &m);
	if (shstk_space_create(ARCH, &space))
		return NULL;
	if (files)
		shstk_space_share(space, files, user);
	return shstk_space_add_file(space, path, m.start + by, m.end + by, m.offset) ? NULL : space;
}

/* Unwinds the frame of code at @at. Returns the number of entries; 0 if no frame lies outside it. */
static int unwind_at(struct shstk_space *space, uint64_t at)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[2], ra = at + 4;
	struct shstk_regs regs = { .size = sizeof(regs), .known = UINT32_MAX, .pc = at };
	int nr;

	regs.r[SP] = 0x7fff0000;
	regs.r[ARCH == SHSTK_ARCH_ARM64 ? 30 : 1] = ra;
	nr = shstk_unwind(space, &regs, read_stack, &ra, pcs, 2, NULL, &info);
	return info.end == SHSTK_END_COMPLETE ? 0 : nr;
}

/* Unwinds the frame of leaf() there. */
static int unwind(struct shstk_space *space, uint64_t by)
{
	return unwind_at(space, (uintptr_t)leaf + by);
}

/* Puts a rule for the function of the first file into the table: there is no frame outside it. */
static void end_there(struct file_rules *files, unsigned int user)
{
	const uint64_t at = (uintptr_t)leaf;
	struct mapped m;

	dl_iterate_phdr(find_code, &m);
	rule_table_put(file_rules_table(files, user), MOST,
		       (at - m.bias + (1ull << FILE_RULES_SHIFT)) ^ 1ull << 63, RULE_END);
}

static bool copy_program(const char *to)
{
	char buf[65536];
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	while ((n = read(in, buf, sizeof(buf))) > 0 && write(out, buf, n) == n)
		;
	close(in);
	close(out);
	return !n;
}

TEST_F(files, programs_share_the_rules_of_a_file)
{
	struct shstk_space *here = program(self->files, 0, "/proc/self/exe", 0);
	struct shstk_space *there = program(self->files, 0, "/proc/self/exe", OTHER_PLACE);
	struct shstk_space *thread = program(self->files, 1, "/proc/self/exe", 0);
	struct shstk_space *alone = program(NULL, 0, "/proc/self/exe", 0);
	struct shstk_space *copy;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	ASSERT_TRUE(copy_program(path));
	copy = program(self->files, 0, path, 0);
	ASSERT_TRUE(here && there && thread && alone && copy);
	EXPECT_EQ(unwind(here, 0), 2);
	EXPECT_GT(file_rules_table(self->files, 0)->filled, 0);
	EXPECT_EQ(unwind(there, OTHER_PLACE), 2);
	end_there(self->files, 0);
	EXPECT_EQ(unwind(here, 0), 0);
	EXPECT_EQ(unwind(there, OTHER_PLACE), 0);
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(unwind(thread, 0), 2);
		EXPECT_EQ(unwind(alone, 0), 2);
		EXPECT_EQ(unwind(copy, 0), 2);
	}
	/* What is mapped over the file later has no rules of it. */
	ASSERT_EQ(shstk_space_add_code(here, (uintptr_t)leaf & -4096ull,
				       ((uintptr_t)leaf & -4096ull) + 8192),
		  0);
	EXPECT_EQ(unwind(here, 0), 1);
	shstk_space_destroy(here);
	shstk_space_destroy(there);
	shstk_space_destroy(thread);
	shstk_space_destroy(alone);
	shstk_space_destroy(copy);
}

/* ---- Code without a rule ---- */

/* A function that no unwind information describes. */
extern const char undescribed[];
__asm__(".pushsection .text\n"
	"undescribed:\n\t"
	"nop\n\tnop\n\tnop\n\tnop\n\tret\n\tnop\n\tnop\n\tnop\n"
	".popsection");

static unsigned int looked_up; /* how often the rule of that function was looked up */

uint64_t __real_module_rule(struct module *m, uint64_t pc, bool exact);
uint64_t __wrap_module_rule(struct module *m, uint64_t pc, bool exact);

uint64_t __wrap_module_rule(struct module *m, uint64_t pc, bool exact)
{
	looked_up += pc == (uintptr_t)undescribed;
	return __real_module_rule(m, pc, exact);
}

/* Returns how often the rule of that function is looked up for one stack. */
static unsigned int look_ups(struct shstk_space *space)
{
	looked_up = 0;
	unwind_at(space, (uintptr_t)undescribed);
	return looked_up;
}

TEST_F(files, that_code_has_no_rule_is_kept)
{
	struct shstk_space *space = program(self->files, 0, "/proc/self/exe", 0);
	struct shstk_space *other = program(self->files, 0, "/proc/self/exe", 0);
	unsigned int first;

	ASSERT_TRUE(space && other);
	first = look_ups(space);
	/* The step without a rule asks for itself what there is. */
	EXPECT_GT(first, 1);
	EXPECT_EQ(look_ups(space), first - 1);
	EXPECT_EQ(look_ups(space), first - 1);
	EXPECT_EQ(look_ups(other), first - 1);
	shstk_space_destroy(space);
	shstk_space_destroy(other);
}

TEST_HARNESS_MAIN
