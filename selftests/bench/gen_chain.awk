# SPDX-License-Identifier: GPL-2.0-or-later
#
# Writes the functions of one call chain (see chain.h).
#   awk -v name=nofp -v count=16 -v arch=x86 -f gen_chain.awk
#
# Each function has its own frame size and saves its own set of the registers that a
# function must keep for its caller: 0 to 5 registers, and 8 to 88 bytes of locals. The
# frames have 76 bytes on average. Those of Debian's python3 and libsqlite3 have 32 in the
# median and 66 to 99 on average.

BEGIN {
	split(arch == "arm64" ? "x19 x20 x21 x22 x23" : "rbx r12 r13 r14 r15",
	      reg, " ")
	print "/* Written by gen_chain.awk. */"
	print "#include \"chain.h\"\n"
	for (i = 0; i < count; i++) {
		h = (i * 2654435761) % 4294967296
		size = 8 + 8 * (int(h / 65536) % 11)
		saved = int(h / 1024) % 6
		clobber = ""
		for (r = 1; r <= saved; r++)
			clobber = clobber (r > 1 ? ", " : "") "\"" reg[r] "\""
		printf "static __attribute__((noinline)) unsigned int f%d", i
		print  "(struct chain *c, unsigned int n)\n{"
		printf "\tvolatile unsigned char pad[%d];\n", size
		print  "\tunsigned int sum = 0;\n"
		print  "\tpad[0] = n;"
		if (saved)
			printf "\t__asm__ volatile(\"\" ::: %s);\n", clobber
		print  "\tif (c->level)\n\t\tc->level(c);"
		print  "\tif (n)\n\t\tsum = chain_next(c, n)(c, n - 1);"
		print  "\telse\n\t\tc->leaf(c);"
		print  "\tif (c->level)\n\t\tc->level(c);"
		printf "\treturn sum + pad[0] + %d;\n}\n\n", i
	}
	printf "const chain_fn chain_fns_%s[%d] = {\n", name, count
	for (i = 0; i < count; i++)
		printf "\tf%d,\n", i
	print "};"
}
