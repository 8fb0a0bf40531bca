// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oracle.c - the oracle for arm64 programs, in QEMU's user-mode emulation.
 *
 *	oracle [-s STEPS] [-m COUNT] [-q QEMU] PROGRAM
 *
 * QEMU's gdb stub steps a static program; its memory is read from QEMU itself,
 * where it lies at the same addresses (-B 0). The truth: bl and blr add the
 * address behind them and the stack pointer; control that comes to the address
 * of an entry with that entry's stack pointer ends it and all inner ones. The
 * truth begins empty at _start; from there to main() only the entries of the
 * functions on the way are visited. Ends with 1 if any trace of libshstk
 * differs.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "selftests/map_file.h"
#include "selftests/oracle/memory.h"
#include "shstk.h"

#define DEPTH 1024
#define PACKET 65536
#define SHOWN 12

enum { X30 = 30, SP = 31, PC = 32, REGS };

/**
 * struct call - an entry of the true stack
 * @sp: stack pointer at the call.
 * @ra: return address.
 * @misses: so many traces differed before.
 */
struct call {
	u64 sp;
	u64 ra;
	unsigned long misses;
};

static struct call calls[DEPTH];
static unsigned int depth;
static int gdb = -1;
static struct memory *memory;
static const Elf64_Ehdr *elf;

static void die(const char *what)
{
	fprintf(stderr, "oracle: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- The remote protocol of GDB ---- */

static const char *command(const char *text)
{
	static char buf[PACKET];
	size_t have = 0;
	char out[256];
	uint8_t sum = 0;
	char *from, *to;
	int n;

	for (const char *c = text; *c; c++)
		sum += *c;
	n = snprintf(out, sizeof(out), "$%s#%02x", text, sum);
	if (write(gdb, out, n) != n)
		die("gdb stub");
	for (;;) {
		ssize_t got = read(gdb, buf + have, sizeof(buf) - 1 - have);

		if (got <= 0)
			return NULL;
		have += got;
		buf[have] = 0;
		from = strchr(buf, '$');
		to = from ? strchr(from, '#') : NULL;
		if (to && to + 2 < buf + have)
			break;
	}
	if (write(gdb, "+", 1) != 1)
		die("gdb stub");
	*to = 0;
	return from + 1;
}

static bool get_regs(u64 *r)
{
	const char *hex = command("g");

	if (!hex || strlen(hex) < REGS * 16)
		return false;
	for (int i = 0; i < REGS; i++) {
		u64 v;

		if (sscanf(hex + 16 * i, "%16lx", &v) != 1)
			return false;
		r[i] = __builtin_bswap64(v);
	}
	return true;
}

/* Reads a stop reply. Returns false at the end of the program. */
static bool stopped(const char *reply)
{
	return reply && *reply == 'T';
}

static bool run_to(u64 addr, u64 *r)
{
	char text[64];

	snprintf(text, sizeof(text), "Z0,%lx,4", addr);
	if (!command(text) || !stopped(command("c")))
		return false;
	text[0] = 'z';
	return command(text) && get_regs(r) && r[PC] == addr;
}

/* ---- The program ---- */

static void map_program(const char *path)
{
	size_t size;

	elf = map_file(path, &size);
	if (!elf)
		die(path);
	if (size < sizeof(*elf) || memcmp(elf, ELFMAG, SELFMAG) || elf->e_machine != EM_AARCH64 ||
	    elf->e_type != ET_EXEC) {
		errno = ENOEXEC;
		die(path);
	}
}

static const Elf64_Sym *find_symbol(const char *name, u64 addr, const char **found)
{
	const char *base = (const char *)elf;
	const Elf64_Shdr *sh = (const void *)(base + elf->e_shoff);

	for (int i = 0; i < elf->e_shnum; i++) {
		const Elf64_Sym *sym = (const void *)(base + sh[i].sh_offset);
		const char *names = base + sh[sh[i].sh_link].sh_offset;

		if (sh[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t n = sh[i].sh_size / sizeof(*sym); n--; sym++) {
			if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC)
				continue;
			if (name ? !strcmp(name, names + sym->st_name) :
				   addr - sym->st_value < sym->st_size) {
				if (found)
					*found = names + sym->st_name;
				return sym;
			}
		}
	}
	return NULL;
}

static u64 address_of(const char *name)
{
	const Elf64_Sym *sym = find_symbol(name, 0, NULL);

	return sym ? sym->st_value : 0;
}

static const char *name_of(u64 addr)
{
	const char *name = "?";

	find_symbol(NULL, addr, &name);
	return name;
}

static struct shstk_space *make_space(const char *path)
{
	const Elf64_Phdr *ph = (const void *)((const char *)elf + elf->e_phoff);
	struct shstk_space *s;

	if (shstk_space_create(SHSTK_ARCH_ARM64, &s))
		die("shstk_space_create");
	for (int i = 0; i < elf->e_phnum; i++) {
		u64 start = ph[i].p_vaddr & ~4095ul;

		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X))
			continue;
		errno = -shstk_space_add_file(s, path, start, ph[i].p_vaddr + ph[i].p_memsz,
					      ph[i].p_offset & ~4095ul);
		if (errno)
			die("shstk_space_add_file");
	}
	return s;
}

static pid_t start(const char *qemu, const char *program, const char *socket_path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp(qemu, qemu, "-B", "0", "-g", socket_path, program, NULL);
		_exit(127);
	}
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
	for (int i = 0; i < 5000; i++) {
		gdb = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(gdb, (struct sockaddr *)&addr, sizeof(addr)))
			break;
		close(gdb);
		gdb = -1;
		if (waitpid(pid, NULL, WNOHANG) == pid)
			break;
		usleep(20000);
	}
	unlink(socket_path);
	return pid;
}

/* ---- The truth ---- */

static bool is_call(uint32_t v)
{
	return (v & 0xfc000000) == 0x94000000 || (v & 0xfffffc1f) == 0xd63f0000;
}

static unsigned long checked, exact, guessed, misses, switching, open_end;
static char *shown[SHOWN]; /* descriptions of the first misses */
static bool landing;

static void enter(u64 sp, u64 ra)
{
	if (depth == DEPTH) {
		fprintf(stderr, "oracle: deeper than %d calls\n", DEPTH);
		exit(2);
	}
	calls[depth++] = (struct call){ sp, ra, misses };
}

static void follow(uint32_t insn, const u64 *before, const u64 *after)
{
	/*
	 * A load of the stack pointer is over at br or ret: the function that switched stacks has
	 * ended. The frame that is entered again has the stack pointer that it had when it called.
	 */
	if (landing && (insn & 0xff9ffc1f) == 0xd61f0000) {
		landing = false;
		while (depth && calls[depth - 1].sp <= after[SP])
			depth--;
		return;
	}
	if (is_call(insn)) {
		enter(before[SP], before[PC] + 4);
		return;
	}
	/*
	 * What a jump over frames leaves behind. What was missed since the
	 * function that does it was entered is counted apart: longjmp()
	 * describes neither the old nor the new stack while it loads registers.
	 */
	if (depth && calls[depth - 1].sp < after[SP] && calls[depth - 1].ra != after[PC]) {
		switching += misses - calls[depth - 1].misses;
		misses = calls[depth - 1].misses;
		landing = true;
	}
	while (depth && calls[depth - 1].sp < after[SP] && calls[depth - 1].ra != after[PC])
		depth--;
	for (unsigned int i = depth; i-- > 0;)
		if (calls[i].sp == after[SP] && calls[i].ra == after[PC]) {
			depth = i;
			break;
		}
}

static void compare(struct shstk_space *space, const u64 *r)
{
	struct shstk_regs regs = { .size = sizeof(regs), .known = ~0u };
	struct shstk_info info = { .size = sizeof(info) };
	u64 pcs[DEPTH + 2], truth[DEPTH + 1];
	unsigned int n = 0, i = 0;
	size_t size;
	FILE *f;
	int got;

	regs.pc = r[PC];
	memcpy(regs.r, r, sizeof(regs.r));
	truth[n++] = r[PC];
	for (unsigned int k = depth; k-- > 0;)
		truth[n++] = calls[k].ra;
	got = shstk_unwind(space, &regs, memory_read, memory, pcs, DEPTH + 2, NULL, &info);
	checked++;
	guessed += info.guessed != 0;
	while ((int)i < got && i < n && pcs[i] == truth[i])
		i++;
	if ((int)n == got && i == n) {
		exact++;
		open_end += info.end != SHSTK_END_COMPLETE;
		return;
	}
	if (landing) {
		switching++;
		return;
	}
	if (misses++ >= SHOWN)
		return;
	free(shown[misses - 1]);
	f = open_memstream(&shown[misses - 1], &size);
	if (!f)
		return;
	fprintf(f, "# %#lx %s: frame %u of %u, got %d, end: %s\n", r[PC], name_of(r[PC]), i, n, got,
		shstk_end_name(info.end));
	for (i = 0; i < n || (int)i < got; i++)
		fprintf(f, "#   %2u %#10lx %-24s %#10lx %s\n", i, i < n ? truth[i] : 0,
			i < n ? name_of(truth[i]) : "", (int)i < got ? pcs[i] : 0,
			(int)i < got ? name_of(pcs[i]) : "");
	fclose(f);
}

/* Runs from _start, whose stack is empty, to main(). */
static bool reach_main(u64 *r)
{
	static const char *const way[] = { "_start", "__libc_start_main", "__libc_start_call_main",
					   "main" };

	for (int i = 0; i < 4; i++) {
		u64 addr = address_of(way[i]);

		if (!addr || (r[PC] != addr && !run_to(addr, r)))
			return false;
		if (i)
			enter(r[SP], r[X30]);
	}
	return true;
}

int main(int argc, char **argv)
{
	const char *qemu = "qemu-aarch64-static";
	unsigned long steps = -1ul, at_least = 1;
	struct shstk_space *space;
	char path[64];
	struct timespec a, b;
	u64 before[REGS], r[REGS];
	uint32_t insn;
	pid_t pid;
	int opt;

	while ((opt = getopt(argc, argv, "+s:m:q:")) != -1) {
		if (opt == 's')
			steps = strtoul(optarg, NULL, 0);
		else if (opt == 'm')
			at_least = strtoul(optarg, NULL, 0);
		else if (opt == 'q')
			qemu = optarg;
		else
			return 2;
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "usage: oracle [-s STEPS] [-m COUNT] [-q QEMU] PROGRAM\n");
		return 2;
	}
	map_program(argv[optind]);
	space = make_space(argv[optind]);
	snprintf(path, sizeof(path), "/tmp/shstk-oracle.%d", getpid());
	pid = start(qemu, argv[optind], path);
	if (gdb < 0) {
		printf("# no gdb stub: cannot run %s\n", qemu);
		return 4;
	}
	memory = memory_create(pid);
	if (!stopped(command("?")) || !get_regs(r) || !reach_main(r)) {
		fprintf(stderr, "oracle: %s: main() was not reached\n", argv[optind]);
		kill(pid, SIGKILL);
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	while (checked < steps) {
		memory_flush(memory);
		compare(space, r);
		if (memory_read(memory, r[PC], &insn, 4))
			break;
		memcpy(before, r, sizeof(r));
		if (!stopped(command("s")) || !get_regs(r))
			break;
		follow(insn, before, r);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (unsigned long i = 0; i < SHOWN && i < misses; i++)
		printf("%s", shown[i]);
	printf("# %s: %lu instructions, %lu exact, %lu differ, %lu missed in a switch, %lu with a marked guess, %lu ends not recognised, %.0f us each\n",
	       argv[optind], checked, exact, misses, switching, guessed, open_end,
	       ((b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3) /
		       (checked ? checked : 1));
	shstk_space_destroy(space);
	return misses || checked < at_least;
}
