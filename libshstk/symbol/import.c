// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * import.c - reading a profile: getting the bytes of the file, choosing its reader, and functions
 * that the readers share.
 *
 * A file can be made that unpacks to gigabytes or names a few functions in billions of stacks. So
 * the memory for all of it is taken from the file's account first, which is bounded.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "import.h"
#include "lives.h"
#include "store.h"

#define CHUNK 65536
#define PROC_COST 4096 /* about the bytes that a process takes */
#define LOOK 4096 /* bytes in which text is told from other data */

struct import_buffer {
	uint8_t *p;
	size_t nr;
	size_t max;
};

int shstk_import_fail(struct shstk_import *in, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(in->why, in->why_size, fmt, ap);
	va_end(ap);
	return code;
}

int shstk_import_take(struct shstk_import *in, uint64_t bytes)
{
	if (shstk_account_take(in->account, bytes))
		return 0;
	return shstk_import_fail(in, -E2BIG, "takes too much memory, see --read-limit");
}

int shstk_import_no_memory(struct shstk_import *in)
{
	return shstk_import_fail(in, -ENOMEM, "%s", strerror(ENOMEM));
}

/* Makes room for one more chunk. Returns 0 or a negative errno. */
static int make_room(struct shstk_import *in, struct import_buffer *b)
{
	size_t max = b->max ? 2 * b->max : 4 * CHUNK;
	uint8_t *more;
	int err;

	if (b->max - b->nr >= CHUNK)
		return 0;
	err = shstk_import_take(in, max);
	if (err)
		return err;
	more = realloc(b->p, max);
	if (!more)
		return shstk_import_no_memory(in);
	shstk_account_give(in->account, b->max);
	b->p = more;
	b->max = max;
	return 0;
}

static void drop(struct shstk_import *in, struct import_buffer *b)
{
	shstk_account_give(in->account, b->max);
	free(b->p);
	*b = (struct import_buffer){ 0 };
}

static int read_all(struct shstk_import *in, int fd, struct import_buffer *b)
{
	ssize_t n;
	int err;

	do {
		err = make_room(in, b);
		if (err)
			return err;
		n = read(fd, b->p + b->nr, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return shstk_import_fail(in, -errno, "%s", strerror(errno));
		b->nr += n;
	} while (n);
	return 0;
}

/* Unpacks one more chunk. Returns 1 at the end, 0 if there is more, or a negative errno. */
static int inflate_some(struct shstk_import *in, z_stream *z, struct import_buffer *b)
{
	int err = make_room(in, b);

	if (err)
		return err;
	z->next_out = b->p + b->nr;
	z->avail_out = CHUNK;
	err = inflate(z, Z_NO_FLUSH);
	b->nr += CHUNK - z->avail_out;
	if (err == Z_STREAM_END)
		/* A gzip file can consist of several that are put together. */
		return !z->avail_in || inflateReset(z) != Z_OK;
	if (err == Z_MEM_ERROR)
		return shstk_import_no_memory(in);
	if (err != Z_OK)
		return shstk_import_fail(in, -EINVAL,
					 z->avail_in ? "its gzip data is damaged" : "is cut off");
	return 0;
}

static int unpack(struct shstk_import *in, const uint8_t *data, size_t size,
		  struct import_buffer *b)
{
	z_stream z = { .next_in = (uint8_t *)data, .avail_in = size };
	int err;

	if (size > UINT_MAX)
		return shstk_import_fail(in, -E2BIG, "is larger than 4 GiB");
	/* 15 + 16 means the largest window, in a gzip wrapper. */
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return shstk_import_no_memory(in);
	do
		err = inflate_some(in, &z, b);
	while (!err);
	inflateEnd(&z);
	return err < 0 ? err : 0;
}

/*
 * Returns whether the data begins with text. Text has no control characters; the first bytes of a
 * Profile message are full of them.
 */
static bool is_text(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size && i < LOOK; i++)
		if ((data[i] < ' ' && !strchr("\t\n\r", data[i])) || !data[i])
			return false;
	return true;
}

static int import_plain(struct shstk_import *in, const uint8_t *data, size_t size)
{
	if (size >= 8 && !memcmp(data, "PERFILE2", 8))
		return shstk_import_fail(in, -EINVAL,
					 "was written by perf record: shstk unwind reads it");
	if (!size)
		return shstk_import_fail(in, -EINVAL, "is empty");
	if (shstk_import_is_keep(data, size))
		return shstk_import_keep(in, -1, data, size);
	if (is_text(data, size))
		return shstk_import_folded(in, (const char *)data, size);
	return shstk_import_pprof(in, data, size);
}

static int import_bytes(struct shstk_import *in, const uint8_t *data, size_t size)
{
	struct import_buffer plain = { 0 };
	int err;

	if (size < 2 || data[0] != 0x1f || data[1] != 0x8b)
		return import_plain(in, data, size);
	err = unpack(in, data, size, &plain);
	if (!err)
		err = import_plain(in, plain.p, plain.nr);
	drop(in, &plain);
	return err;
}

static int import_all(struct shstk_import *in, int fd)
{
	struct import_buffer b = { 0 };
	int err = read_all(in, fd, &b);

	if (!err)
		err = import_bytes(in, b.p, b.nr);
	drop(in, &b);
	return err;
}

/* Reads a file piece by piece if it can be, or else all of it. */
static int import_open(struct shstk_import *in, int fd)
{
	uint8_t head[SHSTK_IMPORT_KEEP_HEAD];
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !lseek(fd, 0, SEEK_CUR) &&
	    pread(fd, head, sizeof(head), 0) == sizeof(head) &&
	    shstk_import_is_keep(head, sizeof(head)))
		return shstk_import_keep(in, fd, NULL, st.st_size);
	return import_all(in, fd);
}

static int import_file(struct shstk_import *in)
{
	int fd = STDIN_FILENO, err;

	if (strcmp(in->path, "-"))
		fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return shstk_import_fail(in, -errno, "%s", strerror(errno));
	err = import_open(in, fd);
	if (fd != STDIN_FILENO)
		close(fd);
	return err;
}

static int import(struct shstk_profile *profile, const char *path, const void *data, size_t size,
		  const struct shstk_read_opts *opts, char *err, size_t err_size)
{
	static const struct shstk_read_opts none;
	char why[256] = "";
	struct shstk_import in = {
		.profile = profile,
		.opts = opts ? opts : &none,
		.path = path,
		.source = ++profile->nr_sources,
		.why = why,
		.why_size = sizeof(why),
	};
	int ret;

	in.account = shstk_symbols_account(profile->symbols, path);
	if (!in.account)
		ret = shstk_import_no_memory(&in);
	else
		ret = data ? import_bytes(&in, data, size) : import_file(&in);
	free(in.last);
	if (ret)
		snprintf(err, err_size, "cannot read '%s': %s", path, why);
	return ret;
}

int shstk_profile_read(struct shstk_profile *profile, const char *path,
		       const struct shstk_read_opts *opts, char *err, size_t err_size)
{
	return import(profile, path, NULL, 0, opts, err, err_size);
}

int shstk_profile_read_bytes(struct shstk_profile *profile, const char *path, const void *data,
			     size_t size, const struct shstk_read_opts *opts, char *err,
			     size_t err_size)
{
	return import(profile, path, data, size, opts, err, err_size);
}

/* ---- Functions for the readers ---- */

int shstk_import_type(struct shstk_import *in, unsigned int i, const char *type, const char *unit)
{
	const struct shstk_profile *profile = in->profile;
	int err;

	if (in->source > 1) {
		if (i < profile->nr_types && !strcmp(profile->types[i].type, type) &&
		    !strcmp(profile->types[i].unit, unit))
			return 0;
		return shstk_import_fail(in, -EINVAL,
					 "holds other values than the file before: '%s'", type);
	}
	err = shstk_profile_add_type(in->profile, type, unit);
	if (err == -E2BIG)
		return shstk_import_fail(in, -EINVAL, "has more than %d kinds of values",
					 SHSTK_PROFILE_MAX_TYPES);
	return err < 0 ? shstk_import_no_memory(in) : 0;
}

int shstk_import_types_end(struct shstk_import *in, unsigned int nr)
{
	if (!nr)
		return shstk_import_fail(in, -EINVAL, "has no values");
	if (nr < in->profile->nr_types)
		return shstk_import_fail(in, -EINVAL, "lacks values of the file before: '%s'",
					 in->profile->types[nr].type);
	return 0;
}

int shstk_import_take_named(struct shstk_import *in, const struct shstk_named *named)
{
	uint64_t cost = SHSTK_IMPORT_FRAME * (2ull + named->nr);

	for (unsigned int i = 0; i < named->nr; i++)
		cost += strnlen(named->frames[i].function, SHSTK_TEXT_MAX);
	return shstk_import_take(in, cost);
}

int shstk_import_name(struct shstk_import *in, const struct shstk_named *named, uint32_t *ret)
{
	int err = shstk_import_take_named(in, named);

	if (err)
		return err;
	return shstk_profile_name(in->profile, named, ret) ? shstk_import_no_memory(in) : 0;
}

int shstk_import_note(const char *name)
{
	for (int i = SHSTK_NOTE_NONE + 1; i < SHSTK_NOTES; i++)
		if (!strcmp(name, shstk_note_name(i)))
			return i;
	return SHSTK_NOTE_NONE;
}

/*
 * Finds or makes the process of an ID. Processes of all files are the same, if they have the same
 * ID.
 */
static int get_proc(struct shstk_import *in, int pid, struct shstk_symproc **ret)
{
	struct shstk_profile *profile = in->profile;
	struct shstk_named_proc *proc;
	int err;

	HASH_FIND_INT(profile->named_procs, &pid, proc);
	if (!proc) {
		err = shstk_import_take(in, PROC_COST);
		if (err)
			return err;
		proc = shstk_pool_alloc(&profile->pool, sizeof(*proc));
		if (!proc || shstk_symproc_create_past(profile->symbols, pid, &proc->proc))
			return shstk_import_no_memory(in);
		proc->pid = pid;
		HASH_ADD_INT(profile->named_procs, pid, proc);
		if (!proc->hh.tbl)
			return shstk_import_no_memory(in);
	}
	*ret = proc->proc;
	return 0;
}

/*
 * Returns the bytes that this sample adds to a tree of all stacks that has the sample before
 * already.
 */
static uint64_t cost_of(struct shstk_import *in, const struct shstk_sample *sample)
{
	struct shstk_location **locations = in->profile->locations;
	uint64_t frames = 2;
	size_t same = 0;

	while (same < sample->nr && same < in->nr_last &&
	       in->last[same] == sample->locations[sample->nr - 1 - same])
		same++;
	for (size_t i = 0; i < sample->nr - same; i++)
		frames += locations[sample->locations[i]]->symbol->nr;
	return frames * SHSTK_IMPORT_FRAME;
}

static bool keep_last(struct shstk_import *in, const struct shstk_sample *sample)
{
	if (sample->nr > in->max_last) {
		uint32_t *more = reallocarray(in->last, sample->nr, sizeof(*more));

		if (!more)
			return false;
		in->last = more;
		in->max_last = sample->nr;
	}
	for (size_t i = 0; i < sample->nr; i++)
		in->last[i] = sample->locations[sample->nr - 1 - i];
	in->nr_last = sample->nr;
	return true;
}

int shstk_import_sample(struct shstk_import *in, struct shstk_sample *sample, int pid,
			int64_t *values)
{
	struct shstk_profile *profile = in->profile;
	const size_t records = profile->nr_records;
	int err = get_proc(in, pid, &sample->proc);
	uint64_t cost;

	if (err)
		return err;
	sample->values = values;
	if (in->opts->take && !in->opts->take(in->opts->arg, profile, sample, values))
		return 0;
	cost = cost_of(in, sample);
	err = shstk_import_take(in, cost);
	if (!err && profile->moments.most == SIZE_MAX)
		err = shstk_import_take(in, 2 * sizeof(struct shstk_moment) +
						    profile->nr_types * sizeof(*values));
	if (err)
		return err;
	if (!keep_last(in, sample) || shstk_profile_add(profile, sample))
		return shstk_import_no_memory(in);
	/* The tree has a stack once, however many samples it has. */
	if (profile->nr_records == records)
		shstk_account_give(in->account, cost);
	return 0;
}

int shstk_import_life(struct shstk_import *in, const struct shstk_life *life)
{
	const struct shstk_read_opts *opts = in->opts;

	if (!opts->keep_times && !in->profile->keep)
		return 0;
	if (opts->take_life && !opts->take_life(opts->arg, in->profile, life))
		return 0;
	return shstk_lives_add(in->profile, life) ? shstk_import_no_memory(in) : 0;
}
