// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * headers_test.c - tests that an ELF file or image which says it has very many sections or segments is
 * not opened.
 */
#include <elf.h>
#include <libelf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libshstk/symbol/elf_file.h"

#include "kselftest_harness.h"

#define SECTIONS (1u << 16) /* that a file may have */
#define SEGMENTS (1u << 21)
#define MANY 1000000 /* sections, for which libelf takes some 200 MB */
#define MOST_KIB 65536 /* by which opening a file may raise the peak of memory */

union header {
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr small;
	Elf64_Ehdr large;
};

union section {
	Elf32_Shdr small;
	Elf64_Shdr large;
};

/* Makes a file of holes with these headers, the section's behind the file's. */
static int make_file(const union header *head, const union section *first)
{
	int fd = memfd_create("headers", MFD_CLOEXEC);

	if (ftruncate(fd, 4096 + MANY * sizeof(Elf64_Shdr)) ||
	    pwrite(fd, head, sizeof(*head), 0) != sizeof(*head) ||
	    pwrite(fd, first, sizeof(*first), sizeof(*head)) != sizeof(*first)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_bounded(const union header *head, const union section *first)
{
	int fd = make_file(head, first);
	bool ret = shstk_elf_bounded(fd);

	if (fd < 0)
		ksft_exit_fail_msg("memfd_create()\n");
	close(fd);
	return ret;
}

static void fill_large(union header *head, union section *first)
{
	*head = (union header){ .large = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
							ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
					   .e_type = ET_DYN,
					   .e_machine = EM_X86_64,
					   .e_version = EV_CURRENT,
					   .e_shoff = sizeof(*head),
					   .e_ehsize = sizeof(Elf64_Ehdr),
					   .e_phentsize = sizeof(Elf64_Phdr),
					   .e_shentsize = sizeof(Elf64_Shdr) } };
	*first = (union section){ .large = { .sh_size = 1 } };
}

static void fill_small(union header *head, union section *first)
{
	*head = (union header){ .small = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
							ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
					   .e_shoff = sizeof(*head) } };
	*first = (union section){ .small = { .sh_size = 1 } };
}

TEST(the_number_of_sections_has_a_bound)
{
	union section first;
	union header head;

	fill_large(&head, &first);
	EXPECT_TRUE(is_bounded(&head, &first));
	first.large.sh_size = SECTIONS;
	EXPECT_TRUE(is_bounded(&head, &first));
	first.large.sh_size = SECTIONS + 1;
	EXPECT_FALSE(is_bounded(&head, &first));
	first.large.sh_size = 1ull << 40;
	EXPECT_FALSE(is_bounded(&head, &first));
	/* The first section's header counts only if the file's has no number. */
	head.large.e_shnum = 1;
	EXPECT_TRUE(is_bounded(&head, &first));
}

TEST(the_number_of_segments_has_a_bound)
{
	union section first;
	union header head;

	fill_large(&head, &first);
	head.large.e_phnum = PN_XNUM;
	first.large.sh_info = SEGMENTS;
	EXPECT_TRUE(is_bounded(&head, &first));
	first.large.sh_info = SEGMENTS + 1;
	EXPECT_FALSE(is_bounded(&head, &first));
	head.large.e_phnum = PN_XNUM - 1;
	EXPECT_TRUE(is_bounded(&head, &first));
}

TEST(so_it_is_in_files_of_32_bits)
{
	union section first;
	union header head;

	fill_small(&head, &first);
	EXPECT_TRUE(is_bounded(&head, &first));
	first.small.sh_size = SECTIONS + 1;
	EXPECT_FALSE(is_bounded(&head, &first));
	first.small.sh_size = 1;
	head.small.e_phnum = PN_XNUM;
	first.small.sh_info = SEGMENTS + 1;
	EXPECT_FALSE(is_bounded(&head, &first));
}

TEST(and_in_files_of_the_other_byte_order)
{
	union section first;
	union header head;

	fill_large(&head, &first);
	head.ident[EI_DATA] = ELFDATA2MSB;
	head.large.e_shoff = __builtin_bswap64(head.large.e_shoff);
	first.large.sh_size = __builtin_bswap64(SECTIONS);
	EXPECT_TRUE(is_bounded(&head, &first));
	first.large.sh_size = __builtin_bswap64(SECTIONS + 1);
	EXPECT_FALSE(is_bounded(&head, &first));
}

TEST(headers_outside_the_file_are_libelfs_to_refuse)
{
	union section first;
	union header head;

	fill_large(&head, &first);
	head.large.e_shoff = 1ull << 40;
	EXPECT_TRUE(is_bounded(&head, &first));
	head.large.e_shoff = UINT64_MAX;
	EXPECT_TRUE(is_bounded(&head, &first));
	EXPECT_TRUE(shstk_elf_bounded(-1));
}

static long peak(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

TEST(a_file_with_a_million_sections_is_not_opened)
{
	union section first;
	union header head;
	long before;
	int fd;

	fill_large(&head, &first);
	first.large.sh_size = MANY;
	fd = make_file(&head, &first);
	ASSERT_LE(0, fd);
	before = peak();
	EXPECT_EQ(NULL, shstk_elf_begin(fd));
	EXPECT_GT(MOST_KIB, peak() - before);
	close(fd);
}

TEST(nor_is_such_an_image_in_memory)
{
	const size_t size = 4096 + MANY * sizeof(Elf64_Shdr);
	union section first;
	union header head;
	long before;
	void *image;
	int fd;

	fill_large(&head, &first);
	first.large.sh_size = MANY;
	fd = make_file(&head, &first);
	ASSERT_LE(0, fd);
	image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	ASSERT_NE(MAP_FAILED, image);
	before = peak();
	EXPECT_EQ(NULL, shstk_elf_memory(image, size));
	EXPECT_GT(MOST_KIB, peak() - before);
	munmap(image, size);
}

TEST(an_image_is_read_as_a_file_is)
{
	union section first;
	union header head;
	uint8_t image[sizeof(head) + sizeof(first)];

	fill_large(&head, &first);
	first.large.sh_size = SECTIONS + 1;
	memcpy(image, &head, sizeof(head));
	memcpy(image + sizeof(head), &first, sizeof(first));
	EXPECT_FALSE(shstk_elf_image_bounded(image, sizeof(image)));
	/* What is not in the image counts as zero, and is libelf's to refuse. */
	EXPECT_TRUE(shstk_elf_image_bounded(image, sizeof(head)));
	EXPECT_TRUE(shstk_elf_image_bounded(image, 1));
	EXPECT_TRUE(shstk_elf_image_bounded(NULL, 0));
}

TEST_HARNESS_MAIN
