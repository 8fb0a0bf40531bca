// SPDX-License-Identifier: GPL-2.0-or-later
/* build_id_test.c - what is read of an ELF file to find its debug file, where the file is made to be costly. */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/symbol/build_id.h"
#include "libshstk/symbol/debugfile.h"
#include "libshstk/symbol/elf_file.h"
#include "kselftest_harness.h"

#define PLACES 40
#define LOOKED_AT 16 /* places of notes */
#define LARGE (1u << 17) /* more than is read of one place, and of a link */
#define LARGE_NAMES (65ull << 20)

struct note {
	Elf64_Nhdr header;
	char name[4];
	uint8_t id[20];
};

/* Places of notes, of which the last one has an id, and a link to a debug file. */
static struct {
	Elf64_Ehdr header;
	Elf64_Phdr segments[PLACES];
	Elf64_Shdr sections[PLACES + 3];
	struct note note;
	struct note other;
	uint8_t zeros[LARGE / 12 * 12]; /* notes that are empty */
	struct note late;
	char names[64];
	char link[LARGE];
} file;

static const struct note with_id = { { 4, 20, NT_GNU_BUILD_ID }, "GNU", { 1, 2, 3 } };
static const struct note without_id = { { 4, 20, NT_GNU_PROPERTY_TYPE_0 }, "GNU", { 0 } };

static void set_place(unsigned int i, size_t offset, size_t size)
{
	file.segments[i] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = offset, .p_filesz = size, .p_align = 4
	};
	file.sections[1 + i] = (Elf64_Shdr){
		.sh_type = SHT_NOTE, .sh_offset = offset, .sh_size = size, .sh_addralign = 4
	};
}

/* Makes a file of a type with @nr places of notes. */
static void make_file(unsigned int type, unsigned int nr)
{
	memset(&file, 0, sizeof(file));
	file.header = (Elf64_Ehdr){
		.e_type = type,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(typeof(file), segments),
		.e_shoff = offsetof(typeof(file), sections),
		.e_ehsize = sizeof(file.header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = nr,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = PLACES + 3,
		.e_shstrndx = PLACES + 1,
	};
	memcpy(file.header.e_ident, ELFMAG "\2\1\1", EI_VERSION + 1);
	file.note = file.late = with_id;
	file.other = without_id;
	for (unsigned int i = 0; i < nr; i++)
		set_place(i, offsetof(typeof(file), other), sizeof(file.other));
	set_place(nr - 1, offsetof(typeof(file), note), sizeof(file.note));
	memcpy(file.names + 1, ".gnu_debuglink", 15);
	file.sections[PLACES + 1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
						  .sh_offset = offsetof(typeof(file), names),
						  .sh_size = sizeof(file.names) };
	memcpy(file.link, "program.debug", 14);
	file.sections[PLACES + 2] = (Elf64_Shdr){ .sh_name = 1,
						  .sh_type = SHT_PROGBITS,
						  .sh_offset = offsetof(typeof(file), link),
						  .sh_size = 20 };
}

/* Returns the first byte of the file's build id; 0: it has none. */
static unsigned int first_byte(void)
{
	Elf *elf = shstk_elf_memory(&file, sizeof(file));
	const void *id;
	unsigned int ret = elf && shstk_build_id(elf, &id) == 20 ? *(const uint8_t *)id : 0;

	elf_end(elf);
	return ret;
}

static const unsigned int types[] = { ET_DYN, ET_REL };

TEST(the_id_is_one_of_the_first_notes)
{
	for (int i = 0; i < 2; i++) {
		make_file(types[i], 1);
		EXPECT_EQ(1, first_byte());
		make_file(types[i], LOOKED_AT);
		EXPECT_EQ(1, first_byte());
		make_file(types[i], LOOKED_AT + 1);
		EXPECT_EQ(0, first_byte());
	}
}

TEST(the_segments_may_be_those_of_another_file)
{
	make_file(ET_DYN, 1);
	file.segments[0].p_offset = offsetof(typeof(file), zeros);
	EXPECT_EQ(1, first_byte());
	file.segments[0].p_offset = sizeof(file);
	EXPECT_EQ(1, first_byte());
	/* An id in a segment counts before one in a section. */
	file.late = with_id;
	file.late.id[0] = 9;
	file.segments[0].p_offset = offsetof(typeof(file), late);
	EXPECT_EQ(9, first_byte());
}

TEST(the_id_is_near_the_beginning_of_its_place)
{
	const size_t start = offsetof(typeof(file), other);

	for (int i = 0; i < 2; i++) {
		make_file(types[i], 1);
		set_place(0, start, sizeof(file) - start);
		EXPECT_EQ(0, first_byte());
		/* Another note is before it, and it is not the last one. */
		file.late = file.note;
		set_place(0, offsetof(typeof(file), note), sizeof(file) - start);
		EXPECT_EQ(1, first_byte());
	}
}

TEST(what_is_no_note_leads_nowhere)
{
	make_file(ET_DYN, 1);
	set_place(0, sizeof(file), 1u << 30);
	EXPECT_EQ(0, first_byte());
	make_file(ET_DYN, 1);
	file.note.header.n_namesz = UINT32_MAX;
	EXPECT_EQ(0, first_byte());
	make_file(ET_DYN, 1);
	file.note.header.n_descsz = UINT32_MAX;
	EXPECT_EQ(0, first_byte());
}

static bool has_link(void)
{
	Elf *elf = shstk_elf_memory(&file, sizeof(file));
	bool ret = elf && shstk_debugfile_promised(elf);

	elf_end(elf);
	return ret;
}

TEST(no_large_section_is_read_for_a_link)
{
	make_file(ET_DYN, 1);
	EXPECT_TRUE(has_link());
	file.sections[PLACES + 2].sh_size = LARGE;
	EXPECT_FALSE(has_link());
}

TEST(a_file_with_very_long_names_of_sections_is_not_read)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	Elf *elf;

	make_file(ET_DYN, 1);
	ASSERT_EQ((ssize_t)sizeof(file), write(fd, &file, sizeof(file)));
	elf = shstk_elf_begin(fd);
	EXPECT_NE(NULL, elf);
	elf_end(elf);
	/* The names end with a hole. */
	file.sections[PLACES + 1].sh_size = LARGE_NAMES;
	ASSERT_EQ((ssize_t)sizeof(file), pwrite(fd, &file, sizeof(file), 0));
	ASSERT_EQ(0, ftruncate(fd, LARGE_NAMES + sizeof(file)));
	EXPECT_EQ(NULL, shstk_elf_begin(fd));
	close(fd);
}

TEST_HARNESS_MAIN
