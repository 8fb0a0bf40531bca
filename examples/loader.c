// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A loader that switches shadow stacks on: it loads a static program into its own process and
 * starts it with a shadow stack.
 *
 *   cc -O2 -o loader loader.c $(pkg-config --cflags --libs libshstk)
 *   cc -O2 -static -o program program.c
 *   ./loader ./program ARGUMENT...
 *
 * execve() ends a shadow stack. So a loader for a program that does not switch it on itself has to
 * be in the same process. The loader switches it on before the program's first instruction: then
 * the shadow stack has every return address, because no function returns that was called before.
 *
 * The exit status is the program's; 125 if there are no shadow stacks; 126 if the program can't be
 * loaded. A loader for daily use is `shstk run`, which also starts dynamic programs and first
 * checks whether they are ready.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <shstk.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE(x) ((x) & ~(uint64_t)4095)
#define HEADERS 16

#if defined(__x86_64__)
#define MACHINE EM_X86_64
/*
 * The kernel starts programs in this way, too: rdx is 0, so that there is no function to call at
 * exit, and rbp is 0, so that there is no outer frame.
 */
#define GO "mov %1, %%rsp\n\txor %%edx, %%edx\n\txor %%ebp, %%ebp\n\tjmp *%0"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define GO "mov sp, %1\n\tmov x0, xzr\n\tmov x29, xzr\n\tmov x30, xzr\n\tbr %0"
#else
#error "how a program is entered on this architecture is not written yet"
#endif

struct program {
	Elf64_Ehdr header;
	Elf64_Phdr segments[HEADERS];
	uint64_t bias; /* Added to the addresses in the file. */
};

/* Reads the headers of @path. Ends the process if it is not a static program for this machine. */
static int open_program(const char *path, struct program *p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size;

	if (fd < 0)
		err(126, "%s", path);
	if (pread(fd, &p->header, sizeof(p->header), 0) != sizeof(p->header) ||
	    memcmp(p->header.e_ident, ELFMAG, SELFMAG) || p->header.e_machine != MACHINE ||
	    p->header.e_ident[EI_CLASS] != ELFCLASS64)
		errx(126, "%s: not a program for this machine", path);
	size = p->header.e_phnum * sizeof(Elf64_Phdr);
	if (p->header.e_phentsize != sizeof(Elf64_Phdr) || size > sizeof(p->segments) ||
	    pread(fd, p->segments, size, p->header.e_phoff) != (ssize_t)size)
		errx(126, "%s: its program headers can't be read", path);
	for (int i = 0; i < p->header.e_phnum; i++)
		if (p->segments[i].p_type == PT_INTERP)
			errx(126, "%s: not static: try shstk run", path);
	return fd;
}

/*
 * Maps one segment; memory for which the file has no bytes is zero. Returns 0, or non-zero on
 * failure.
 */
static int map_segment(int fd, const Elf64_Phdr *s, uint64_t bias)
{
	int prot = (s->p_flags & PF_R ? PROT_READ : 0) | (s->p_flags & PF_W ? PROT_WRITE : 0) |
		   (s->p_flags & PF_X ? PROT_EXEC : 0);
	uint64_t at = bias + s->p_vaddr, start = PAGE(at), file_end = at + s->p_filesz;
	uint64_t mapped = PAGE(file_end + 4095), end = PAGE(at + s->p_memsz + 4095);

	if (s->p_filesz && mmap((void *)start, file_end - start, prot, MAP_PRIVATE | MAP_FIXED, fd,
				(off_t)PAGE(s->p_offset)) == MAP_FAILED)
		return -1;
	if (s->p_memsz == s->p_filesz)
		return 0;
	if (!s->p_filesz)
		mapped = start;
	else if (s->p_flags & PF_W)
		memset((void *)file_end, 0, mapped - file_end);
	return end > mapped && mmap((void *)mapped, end - mapped, prot,
				    MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

/*
 * Loads the program. It first reserves the memory for all segments, so that nothing else is
 * overwritten, and then maps them.
 */
static void load(const char *path, struct program *p)
{
	int fd = open_program(path, p), fixed = p->header.e_type == ET_EXEC;
	uint64_t low = UINT64_MAX, high = 0;
	void *room;

	for (int i = 0; i < p->header.e_phnum; i++) {
		const Elf64_Phdr *s = &p->segments[i];

		if (s->p_type != PT_LOAD)
			continue;
		low = PAGE(s->p_vaddr) < low ? PAGE(s->p_vaddr) : low;
		high = s->p_vaddr + s->p_memsz > high ? s->p_vaddr + s->p_memsz : high;
	}
	if (low >= high)
		errx(126, "%s: it has nothing to load", path);
	room = mmap(fixed ? (void *)low : NULL, high - low, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (room == MAP_FAILED)
		err(126, "%s: no room for it", path);
	p->bias = (uint64_t)room - low;
	for (int i = 0; i < p->header.e_phnum; i++)
		if (p->segments[i].p_type == PT_LOAD && map_segment(fd, &p->segments[i], p->bias))
			err(126, "%s: it can't be mapped", path);
	close(fd);
}

/* Returns where the program headers lie in memory, which the segment that holds them tells. */
static uint64_t headers_at(const struct program *p)
{
	for (int i = 0; i < p->header.e_phnum; i++) {
		const Elf64_Phdr *s = &p->segments[i];

		if (s->p_type == PT_LOAD && p->header.e_phoff >= s->p_offset &&
		    p->header.e_phoff < s->p_offset + s->p_filesz)
			return p->bias + s->p_vaddr + p->header.e_phoff - s->p_offset;
	}
	return 0;
}

/*
 * Turns this process's first stack into the program's: removes one argument, and sets headers and
 * entry to the program's. Everything moves by one word, over the loader's name, so that the stack
 * stays aligned. Returns the top of the stack.
 */
static uint64_t *give_stack(const struct program *p, char **argv)
{
	uint64_t *top = (uint64_t *)argv - 1, *word = (uint64_t *)argv;

	while (*word) /* arguments */
		word++;
	word++;
	while (*word) /* environment */
		word++;
	word++;
	for (; *word != AT_NULL; word += 2)
		switch (*word) {
		case AT_PHDR:
			word[1] = headers_at(p);
			break;
		case AT_PHNUM:
			word[1] = p->header.e_phnum;
			break;
		case AT_ENTRY:
			word[1] = p->bias + p->header.e_entry;
			break;
		case AT_BASE:
			word[1] = 0;
			break;
		}
	memmove(argv, argv + 1, (size_t)(word + 2 - (uint64_t *)(argv + 1)) * sizeof(*word));
	top[0]--;
	return top;
}

int main(int argc, char **argv)
{
	struct program p = { .bias = 0 };
	uint64_t *stack, entry, status;
	int ret;

	if (argc < 2)
		errx(126, "usage: loader PROGRAM [ARGUMENT...]");
	load(argv[1], &p);
	ret = shstk_status_get(&status);
	if (ret)
		errx(125, "no shadow stacks on this machine: %s", strerror(-ret));
	entry = p.bias + p.header.e_entry;
	stack = give_stack(&p, argv);
	/*
	 * The shadow stack begins empty, so this function must not return from here on, and it does
	 * not.
	 */
	ret = shstk_status_set(SHSTK_STATUS_ENABLE);
	if (ret)
		_exit(125);
	__asm__ volatile(GO : : "r"(entry), "r"(stack) : "memory");
	__builtin_unreachable();
}
