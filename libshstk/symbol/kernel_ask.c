// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kernel_ask.c - asks the kernel for the function at an address.
 *
 * /proc/kallsyms can only be read from its beginning, and the kernel takes 24 ms of CPU time to
 * write it all: a third of the time of a short recording. A BPF program that prints an address
 * takes 0.2 ms to load, and a microsecond for each address. It needs Linux 5.14 and the rights
 * CAP_BPF and CAP_PERFMON. It is attached to nothing: it runs when this file calls it, and reads
 * and writes nothing but the memory that it shares with this process.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store.h"

#define TEXT_SIZE 1016

/* Memory that is shared with the BPF program. */
struct exchange {
	uint64_t addr;
	char text[TEXT_SIZE]; /* "name+0xoffset/0xsize", then perhaps " [module]" */
};

/**
 * struct shstk_kernel_asker - asks the kernel
 * @program: descriptor of the BPF program.
 * @exchange: page that the BPF program shares with this process.
 */
struct shstk_kernel_asker {
	int program;
	struct exchange *exchange;
};

/*
 * The number of bytes of union bpf_attr up to the end of a member. What a union has behind the
 * member that is initialised may be anything (gcc 15 and later leave it as it is), and bpf(2)
 * refuses all but zeros there; so it is told where the part ends that is in use.
 */
#define UP_TO(member) (offsetof(union bpf_attr, member) + sizeof(((union bpf_attr *)NULL)->member))

static int bpf(int cmd, union bpf_attr *attr, size_t size)
{
	return syscall(SYS_bpf, cmd, attr, size);
}

static int create_map(size_t size, unsigned int flags)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = size,
		.max_entries = 1,
		.map_flags = flags,
	};

	return bpf(BPF_MAP_CREATE, &attr, UP_TO(map_flags));
}

/*
 * Makes a map that holds the format string, and freezes it: bpf_snprintf() takes only formats that
 * cannot change. Returns its descriptor or a negative number.
 */
static int create_format(void)
{
	const uint32_t key = 0;
	const char format[8] = "%pS";
	int map = create_map(sizeof(format), BPF_F_RDONLY_PROG);
	union bpf_attr update = {
		.map_fd = map,
		.key = (uintptr_t)&key,
		.value = (uintptr_t)format,
	};
	union bpf_attr freeze = { .map_fd = map };

	if (map >= 0 && (bpf(BPF_MAP_UPDATE_ELEM, &update, UP_TO(flags)) ||
			 bpf(BPF_MAP_FREEZE, &freeze, UP_TO(map_fd)))) {
		close(map);
		return -1;
	}
	return map;
}

#define REGISTER(op, to, from)                                                   \
	{                                                                        \
		.code = BPF_ALU64 | (op) | BPF_X, .dst_reg = to, .src_reg = from \
	}
#define NUMBER(op, to, n)                                                 \
	{                                                                 \
		.code = BPF_ALU64 | (op) | BPF_K, .dst_reg = to, .imm = n \
	}
/* Two instructions that load the address of the value in a map. */
#define VALUE(to, map)                       \
	{ .code = BPF_LD | BPF_DW | BPF_IMM, \
	  .dst_reg = to,                     \
	  .src_reg = BPF_PSEUDO_MAP_VALUE,   \
	  .imm = map },                      \
	{                                    \
		0                            \
	}

/*
 * Loads a program that calls bpf_snprintf(exchange->text, TEXT_SIZE, format, &exchange->addr, 8).
 */
static int load_program(int exchange, int format)
{
	const struct bpf_insn code[] = {
		VALUE(BPF_REG_4, exchange),
		REGISTER(BPF_MOV, BPF_REG_1, BPF_REG_4),
		NUMBER(BPF_ADD, BPF_REG_1, offsetof(struct exchange, text)),
		NUMBER(BPF_MOV, BPF_REG_2, TEXT_SIZE),
		VALUE(BPF_REG_3, format),
		NUMBER(BPF_MOV, BPF_REG_5, sizeof(uint64_t)),
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_snprintf },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SYSCALL,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t) "GPL",
		.prog_flags = BPF_F_SLEEPABLE,
		.prog_name = "shstk_ask",
	};

	return bpf(BPF_PROG_LOAD, &attr, UP_TO(prog_name));
}

/*
 * Sets up the program and the page. The maps live on without their descriptors as long as the
 * program and the page.
 */
static bool begin(struct shstk_kernel_asker *asker)
{
	int exchange = create_map(sizeof(struct exchange), BPF_F_MMAPABLE);
	int format = exchange >= 0 ? create_format() : -1;

	if (format >= 0) {
		asker->program = load_program(exchange, format);
		asker->exchange = mmap(NULL, sizeof(struct exchange), PROT_READ | PROT_WRITE,
				       MAP_SHARED, exchange, 0);
		close(format);
	}
	if (exchange >= 0)
		close(exchange);
	return asker->program >= 0 && asker->exchange != MAP_FAILED;
}

struct shstk_kernel_asker *shstk_kernel_asker_create(void)
{
	struct shstk_kernel_asker *asker = malloc(sizeof(*asker));

	if (!asker)
		return NULL;
	*asker = (struct shstk_kernel_asker){ -1, MAP_FAILED };
	if (begin(asker))
		return asker;
	shstk_kernel_asker_destroy(asker);
	return NULL;
}

void shstk_kernel_asker_destroy(struct shstk_kernel_asker *asker)
{
	if (!asker)
		return;
	if (asker->exchange != MAP_FAILED)
		munmap(asker->exchange, sizeof(*asker->exchange));
	if (asker->program >= 0)
		close(asker->program);
	free(asker);
}

/*
 * Parses the text "name+0xoffset/0xsize". Returns false for an address that is in no function: its
 * text is just the address.
 */
static bool parse(char *text, uint64_t addr, struct shstk_perfmap_entry *ret)
{
	char *plus = strstr(text, "+0x"), *slash;
	uint64_t offset;

	if (!plus)
		return false;
	offset = strtoull(plus + 1, &slash, 16);
	if (offset > addr || strncmp(slash, "/0x", 3))
		return false;
	*plus = '\0';
	ret->start = addr - offset;
	ret->end = ret->start + strtoull(slash + 1, NULL, 16);
	ret->name = text;
	return true;
}

bool shstk_kernel_ask(struct shstk_kernel_asker *asker, uint64_t addr,
		      struct shstk_perfmap_entry *ret)
{
	struct exchange *exchange = asker->exchange;
	union bpf_attr attr = { .test.prog_fd = asker->program };

	exchange->addr = addr;
	exchange->text[0] = '\0';
	if (bpf(BPF_PROG_TEST_RUN, &attr, UP_TO(test)))
		return false;
	exchange->text[TEXT_SIZE - 1] = '\0';
	return parse(exchange->text, addr, ret);
}
