// SPDX-License-Identifier: GPL-2.0-or-later
/* plt_test.c - names of PLT stubs (libshstk/symbol/plt.c), of files that are made to be costly. */
#include <elf.h>
#include <libelf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/symbol/object_names.h"
#include "libshstk/symbol/plt.h"
#include "libshstk/symbol/pool.h"
#include "libshstk/symbol/symbol.h"
#include "selftests/many_tables.h"
#include "kselftest_harness.h"

#define STUB 0x1000 /* its address */
#define FUNCTION "function"
#define NAMED FUNCTION "@plt"
#define UNNAMED "[file+0x1000]"
#define PLENTY (1u << 28)

/* A library with a stub, names of sections, and packed names of symbols. */
static struct {
	struct many_tables library;
	uint8_t code[16];
	char section_names[16];
	struct {
		Elf64_Chdr header;
		uint8_t stream[64];
	} packed;
} file;

static void add_section(Elf64_Shdr *to, unsigned int type, size_t offset, size_t size)
{
	*to = (Elf64_Shdr){
		.sh_type = type, .sh_offset = offset, .sh_size = size, .sh_addralign = 1
	};
}

/*
 * Makes a library in which @nr tables of relocations, at most MANY_TABLES - 2, come before that of the word
 * through which the stub jumps.
 */
static void make_library(unsigned int nr)
{
	/* jmp *offset(%rip) */
	static const uint8_t code[] = { 0xff, 0x25, (MANY_PLACE - STUB - 6) & 0xff,
					(MANY_PLACE - STUB - 6) >> 8 };
	Elf64_Shdr *more = &file.library.sections[MANY_FIRST + nr + 1];

	memset(&file, 0, sizeof(file));
	make_many_tables(&file.library, EM_X86_64, nr, MANY_DYNSYM, R_X86_64_GLOB_DAT, FUNCTION,
			 R_X86_64_JUMP_SLOT);
	memcpy(file.code, code, sizeof(code));
	memcpy(file.section_names + 1, ".plt", 5);
	add_section(&more[0], SHT_PROGBITS, offsetof(typeof(file), code), sizeof(file.code));
	more[0].sh_addr = STUB;
	more[0].sh_name = 1;
	add_section(&more[1], SHT_STRTAB, offsetof(typeof(file), section_names),
		    sizeof(file.section_names));
	file.library.header.e_shstrndx = MANY_FIRST + nr + 2;
	file.library.header.e_shnum += 2;
}

/* The state of naming: what a file may take, and what it took. */
FIXTURE(plt)
{
	struct shstk_pool pool;
	struct shstk_budget budget;
	struct shstk_symbols_opts opts;
	struct shstk_object *object;
};

FIXTURE_SETUP(plt)
{
	shstk_pool_init(&self->pool);
	self->opts = (struct shstk_symbols_opts){ .no_servers = true, .debug_dirs = "" };
	self->object = NULL;
}

FIXTURE_TEARDOWN(plt)
{
	shstk_object_destroy(self->object);
	shstk_pool_deinit(&self->pool);
}

/* Returns the name of the stub, for which the file may take so much memory, and CPU time in ns. */
static const char *name(FIXTURE_DATA(plt) * self, uint64_t memory, uint64_t time)
{
	const struct shstk_resolved *names;

	shstk_object_destroy(self->object);
	shstk_budget_init(&self->budget, memory, time);
	self->object = shstk_object_create_image(&self->pool, &file, sizeof(file), "file",
						 &self->opts, &self->budget);
	names = self->object ? shstk_object_resolve(self->object, STUB) : NULL;
	return names && names->nr ? names->frames[0].function : "";
}

TEST_F(plt, a_stub_has_the_name_of_what_it_calls)
{
	make_library(1);
	EXPECT_STREQ(NAMED, name(self, PLENTY, 0));
	EXPECT_EQ(NULL, self->budget.over);
	file.code[1] = 0;
	EXPECT_STREQ(UNNAMED, name(self, PLENTY, 0));
}

TEST_F(plt, no_more_than_a_few_tables_are_looked_at)
{
	make_library(3);
	EXPECT_STREQ(NAMED, name(self, PLENTY, 0));
	make_library(MANY_TABLES - 2);
	EXPECT_STREQ(UNNAMED, name(self, PLENTY, 0));
}

TEST_F(plt, tables_take_memory_until_the_file_is_closed)
{
	make_library(2);
	EXPECT_STREQ(NAMED, name(self, PLENTY, 0));
	EXPECT_LE(2 * MANY_BYTES, self->budget.whole - self->budget.memory);
	/* One account gets three quarters of what there is. */
	EXPECT_STREQ(UNNAMED, name(self, 2 * MANY_BYTES, 0));
	EXPECT_NE(NULL, self->budget.over);
}

TEST_F(plt, a_table_that_refers_to_no_symbols_takes_no_memory)
{
	make_library(2);
	for (unsigned int i = 0; i < 3; i++)
		file.library.sections[MANY_FIRST + i].sh_link = MANY_SYMTAB;
	EXPECT_STREQ(UNNAMED, name(self, PLENTY, 0));
	EXPECT_GT(MANY_BYTES, self->budget.whole - self->budget.memory);
}

TEST_F(plt, no_name_is_looked_for_when_the_time_is_over)
{
	make_library(1);
	EXPECT_STREQ(UNNAMED, name(self, PLENTY, 1));
	EXPECT_NE(NULL, self->budget.over);
}

/* Of the sanitizer. Some compilers come without its header. */
size_t __sanitizer_get_current_allocated_bytes(void);

/* Looks for stubs all over the file, which has none. Returns how many bytes are kept of that. */
static size_t kept(FIXTURE_DATA(plt) * self, Elf *elf, int fd)
{
	struct shstk_account account = { .budget = &self->budget };
	struct shstk_plt plt = { 0 };
	size_t before = __sanitizer_get_current_allocated_bytes();
	uint64_t start;

	shstk_budget_init(&self->budget, PLENTY, 0);
	for (size_t at = 0; at < sizeof(file); at += 8)
		if (shstk_plt_name(&plt, &self->pool, elf, fd, &account, STUB + at, &start))
			return SIZE_MAX;
	return __sanitizer_get_current_allocated_bytes() - before;
}

/* Makes the whole library a section of stubs, none of which is one. */
static void make_stubs(void)
{
	Elf64_Shdr *stubs = &file.library.sections[MANY_FIRST + 1];

	make_library(0);
	file.code[1] = 0;
	stubs->sh_offset = 0;
	stubs->sh_size = sizeof(file);
	stubs->sh_entsize = 8;
}

TEST_F(plt, what_is_no_stub_takes_no_memory)
{
	Elf *elf;

	make_stubs();
	elf = shstk_elf_memory(&file, sizeof(file));
	ASSERT_NE(NULL, elf);
	EXPECT_GT(8192, kept(self, elf, -1));
	elf_end(elf);
}

/* Files of root are mapped, others are read. */
TEST_F(plt, what_is_no_stub_takes_no_memory_in_a_file)
{
	for (unsigned int owner = 0; owner <= 65534; owner += 65534) {
		int fd = memfd_create("library", 0);
		Elf *elf;

		make_stubs();
		ASSERT_EQ((ssize_t)sizeof(file), write(fd, &file, sizeof(file)));
		/* Not everybody may give a file away: then there is one of the user's. */
		if (!fchown(fd, owner, owner) || !owner) {
			elf = shstk_elf_begin(fd);
			ASSERT_NE(NULL, elf);
			EXPECT_GT(8192, kept(self, elf, fd));
			elf_end(elf);
		}
		close(fd);
	}
}

/* Packs the names of symbols as zlib does that does not compress. The stream ends with a byte that is zero. */
static void pack_names(void)
{
	char *names = file.library.names;
	const uint8_t size = sizeof(file.library.names);
	uint8_t *to = file.packed.stream;
	uint32_t a = 1, b = 0;

	for (unsigned int i = 0; i < size; i++)
		a += (uint8_t)names[i];
	/* A symbol's name is before that, and the sum is in the last byte. */
	names[size - 2] = (char)(256 - a % 256);
	a = 1;
	for (unsigned int i = 0; i < size; i++)
		b += a += (uint8_t)names[i];
	memcpy(to, (uint8_t[]){ 0x78, 1, 1, size, 0, (uint8_t)~size, 255 }, 7);
	memcpy(to + 7, names, size);
	memcpy(to + 7 + size, (uint8_t[]){ b >> 8, b, a >> 8, a }, 4);
	file.packed.header = (Elf64_Chdr){ ELFCOMPRESS_ZLIB, 0, size, 1 };
	add_section(&file.library.sections[MANY_NAMES], SHT_STRTAB, offsetof(typeof(file), packed),
		    sizeof(Elf64_Chdr) + 7 + size + 4);
	file.library.sections[MANY_NAMES].sh_flags = SHF_COMPRESSED;
}

/* A few bytes may be gigabytes. */
TEST_F(plt, names_are_not_unpacked)
{
	make_library(1);
	pack_names();
	EXPECT_STREQ(UNNAMED, name(self, PLENTY, 0));
}

TEST_HARNESS_MAIN
