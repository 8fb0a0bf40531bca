// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * decode_test.c - the library's small x86-64 decoder against Zydis, over the
 * code of large libraries of this machine: lengths, and what happens to rsp,
 * rbp and control.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <Zydis/Zydis.h>

#include "epilogue.h"
#include "selftests/map_file.h"

static unsigned long checked, wrong;

static bool writes(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops,
		   ZydisRegister reg)
{
	for (int i = 0; i < z->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     ops[i].reg.value) == reg)
			return true;
	return false;
}

static bool changes(const struct effect *e, int reg)
{
	for (int i = 0; i < e->n; i++)
		if (e->ops[i].op != EFFECT_STORE && e->ops[i].reg == reg)
			return true;
	return false;
}

static int flow_of(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return FLOW_CALL;
	case ZYDIS_CATEGORY_COND_BR:
		return FLOW_BRANCH;
	case ZYDIS_CATEGORY_RET:
		return FLOW_RETURN;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return FLOW_JUMP;
	default:
		return FLOW_NEXT;
	}
}

static const char *difference(const struct effect *e, const ZydisDecodedInstruction *z,
			      const ZydisDecodedOperand *ops)
{
	int flow = flow_of(z), got = e->flow;

	if (e->len != z->length)
		return "length";
	/* Nothing else of an instruction that ends the path is compared. */
	if (got == FLOW_STOP)
		return NULL;
	if (got == FLOW_TAIL || got == FLOW_UNSURE)
		got = FLOW_JUMP;
	/* A call of the next instruction is a mere push. */
	if (flow == FLOW_CALL && got == FLOW_NEXT && z->raw.imm[0].value.s == 0)
		return NULL;
	/* Zydis takes the instructions of transactions for jumps. */
	if (z->meta.isa_set == ZYDIS_ISA_SET_RTM)
		return NULL;
	if (flow != got)
		return "flow";
	if (flow == FLOW_CALL)
		return NULL;
	if (writes(z, ops, ZYDIS_REGISTER_RSP) != changes(e, TRACK_SP))
		return "rsp";
	if (writes(z, ops, ZYDIS_REGISTER_RBP) != changes(e, TRACK_FP))
		return "rbp";
	return NULL;
}

static bool is_prefix(uint8_t b)
{
	return b >> 4 == 4 || strchr("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", b);
}

static void check(const ZydisDecoder *d, const uint8_t *code, size_t len, uint64_t pc, size_t *step)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct effect e = { .len = 0 };
	const char *what;
	bool known;

	*step = 1;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, code, len, &z, ops)))
		return;
	*step = z.length;
	known = x86_decode(code, len, pc, &e);
	/*
	 * The decoder refuses 32-bit addresses on purpose. A prefix behind REX occurs where data
	 * lies between functions.
	 */
	if (!known && (z.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE ||
		       (code[0] >> 4 == 4 && is_prefix(code[1]))))
		return;
	checked++;
	what = known ? difference(&e, &z, ops) : "refused";
	if (!what)
		return;
	if (wrong++ < 20) {
		printf("# %#lx %s %s:", pc, ZydisMnemonicGetString(z.mnemonic), what);
		for (int i = 0; i < z.length; i++)
			printf(" %02x", code[i]);
		printf("\n");
	}
}

static int check_file(const char *path)
{
	size_t size;
	const uint8_t *base = map_file(path, &size);
	const Elf64_Shdr *sh;
	const Elf64_Ehdr *eh;
	ZydisDecoder d;

	if (!base)
		return -1;
	eh = (const Elf64_Ehdr *)base;
	sh = (const Elf64_Shdr *)(base + eh->e_shoff);
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int i = 0; i < eh->e_shnum; i++) {
		size_t step;

		if (!(sh[i].sh_flags & SHF_EXECINSTR))
			continue;
		for (uint64_t at = 0; at < sh[i].sh_size; at += step)
			check(&d, base + sh[i].sh_offset + at, sh[i].sh_size - at,
			      sh[i].sh_addr + at, &step);
	}
	munmap((void *)base, size);
	return 0;
}

int main(int argc, char **argv)
{
	/* One instruction in 20,000 may be none: OpenSSL keeps tables among its code. */
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/bin/python3",
		"/usr/bin/perl",
	};
	int n = argc > 1 ? argc - 1 : (int)(sizeof(files) / sizeof(*files));
	int failed = 0;

	printf("TAP version 13\n1..%d\n", n);
	for (int i = 0; i < n; i++) {
		const char *path = argc > 1 ? argv[i + 1] : files[i];

		checked = 0;
		wrong = 0;
		if (check_file(path)) {
			printf("ok %d %s # SKIP cannot be read\n", i + 1, path);
			continue;
		}
		printf("# %s: %lu instructions, %lu differ\n", path, checked, wrong);
		if (strstr(path, "libcrypto") && wrong < checked / 20000)
			wrong = 0;
		printf("%s %d %s\n", wrong ? "not ok" : "ok", i + 1, path);
		failed |= wrong != 0;
	}
	return failed;
}
