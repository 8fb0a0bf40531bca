// SPDX-License-Identifier: LGPL-2.1-or-later
/* import_proto.c - see import_proto.h. */
#include <errno.h>
#include <stdlib.h>

#include "import_proto.h"

#define BLOCK 32 /* about the bytes that malloc() takes in addition to those requested */

static void *take(void *arg, size_t size)
{
	struct shstk_import *in = arg;

	return shstk_import_take(in, size + BLOCK) ? NULL : malloc(size);
}

static void drop(void *arg, void *p)
{
	(void)arg;
	free(p);
}

ProtobufCAllocator shstk_proto_allocator(struct shstk_import *in)
{
	return (ProtobufCAllocator){ .alloc = take, .free = drop, .allocator_data = in };
}

void *shstk_proto_array(struct shstk_import *in, size_t nr, size_t size)
{
	if (shstk_import_take(in, (nr + 1) * size))
		return NULL;
	return calloc(nr + 1, size);
}

int shstk_proto_broken(struct shstk_import *in, const char *what)
{
	return shstk_import_fail(in, -EINVAL, "contradicts itself: %s", what);
}

const char *shstk_proto_text(char *const *table, size_t nr, int64_t i)
{
	if (!i && !nr)
		return "";
	return i >= 0 && (uint64_t)i < nr ? table[i] : NULL;
}

int shstk_proto_line(int64_t n)
{
	return n < 0 || n > INT32_MAX ? 0 : n;
}

int shstk_proto_frame(struct shstk_import *in, struct shstk_symframe *frame)
{
	if (!frame->function || !frame->linkage || !frame->file)
		return shstk_proto_broken(in, "the name of a function is not there");
	if (!*frame->function)
		frame->function = frame->linkage;
	return 0;
}
