// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * import_folded.c - reading folded stacks: lines "thread;outer;inner 12", as export_folded.c and
 * other programs' scripts write them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"

#define CAUTION "[caution] "
#define SHOWN 40 /* bytes of a wrong line that the message shows */

/* The entry of a name that this file has had already. */
struct name {
	UT_hash_handle hh;
	uint32_t location;
	size_t len;
	const char *text; /* points into the file */
};

/**
 * struct folded - a text that is being read
 * @in: the file.
 * @pool: memory of @names.
 * @names: entries by name.
 * @line: number of the current line, from 1.
 * @stack: entries of the line's stack, innermost first.
 * @max: number of entries that @stack has room for.
 * @copy: buffer for a name with a zero behind it.
 * @copy_max: bytes in @copy.
 */
struct folded {
	struct shstk_import *in;
	struct shstk_pool pool;
	struct name *names;
	unsigned long line;
	uint32_t *stack;
	size_t max;
	char *copy;
	size_t copy_max;
};

static int wrong(struct folded *f, const char *line, size_t len)
{
	return shstk_import_fail(f->in, -EINVAL,
				 SHSTK_IMPORT_UNKNOWN
				 " (line %lu has no number at its end: '%.*s')",
				 f->line, len < SHOWN ? (int)len : SHOWN, line);
}

static const char *copy_of(struct folded *f, const char *text, size_t len)
{
	if (len >= f->copy_max) {
		char *more = realloc(f->copy, len + 1);

		if (!more)
			return NULL;
		f->copy = more;
		f->copy_max = len + 1;
	}
	memcpy(f->copy, text, len);
	f->copy[len] = '\0';
	return f->copy;
}

static int get_location(struct folded *f, const char *text, size_t len, uint32_t *ret)
{
	struct shstk_symframe frame = { 0 };
	const struct shstk_named named = { .nr = 1, .frames = &frame };
	struct name *name;
	int err;

	HASH_FIND(hh, f->names, text, len, name);
	if (!name) {
		name = shstk_pool_alloc(&f->pool, sizeof(*name));
		frame.function = copy_of(f, text, len);
		if (!name || !frame.function)
			return -ENOMEM;
		err = shstk_import_name(f->in, &named, &name->location);
		if (err)
			return err;
		name->text = text;
		name->len = len;
		HASH_ADD_KEYPTR(hh, f->names, name->text, name->len, name);
		if (!name->hh.tbl)
			return -ENOMEM;
	}
	*ret = name->location;
	return 0;
}

static bool make_room(struct folded *f, size_t nr)
{
	uint32_t *more;

	if (nr <= f->max)
		return true;
	more = reallocarray(f->stack, nr, sizeof(*more));
	if (!more)
		return false;
	f->stack = more;
	f->max = nr;
	return true;
}

static size_t count_names(const char *text, const char *end)
{
	size_t nr = text < end;

	while (text < end && (text = memchr(text, ';', end - text))) {
		nr++;
		text++;
	}
	return nr;
}

/*
 * Sets @ret to the first name of @text, and moves @text behind its semicolon. Returns the length of
 * the name.
 */
static size_t take_name(const char **text, const char *end, const char **ret)
{
	const char *stop = memchr(*text, ';', end - *text);

	*ret = *text;
	if (!stop)
		stop = end;
	*text = stop < end ? stop + 1 : end;
	return stop - *ret;
}

/* Reads the names from @text on, outermost first. Returns 0 or a negative errno. */
static int read_stack(struct folded *f, const char *text, const char *end,
		      struct shstk_sample *sample)
{
	const char *name;
	size_t nr;
	int err = 0;

	/* heaptrack_print writes a semicolon behind the last name, too. */
	if (text < end && end[-1] == ';')
		end--;
	nr = count_names(text, end);

	if (nr > UINT32_MAX / 2 || !make_room(f, nr))
		return -ENOMEM;
	sample->nr = nr;
	while (nr-- && !err) {
		size_t len = take_name(&text, end, &name);

		err = get_location(f, name, len, f->stack + nr);
	}
	sample->locations = f->stack;
	return err;
}

/*
 * Reads what export_folded.c writes above the functions: the thread, and a note. Returns 0 or
 * -ENOMEM.
 */
static int read_head(struct folded *f, const char **text, const char *end,
		     struct shstk_sample *sample)
{
	const char *name, *comm, *next;
	size_t len;

	if (!f->in->opts->frames_only) {
		len = take_name(text, end, &name);
		comm = copy_of(f, name, len);
		if (!comm)
			return -ENOMEM;
		sample->comm = shstk_pool_text(f->in->profile->text, comm, len);
		if (!sample->comm)
			return -ENOMEM;
	}
	next = *text;
	len = take_name(&next, end, &name);
	comm = copy_of(f, name, len);
	if (!comm)
		return -ENOMEM;
	sample->note = shstk_import_note(comm);
	if (sample->note)
		*text = next;
	return 0;
}

/*
 * Reads the number at the end of a line, and moves @end before the blank. Returns false if there is
 * none.
 */
static bool take_value(const char *line, const char **end, int64_t *ret)
{
	const char *at = *end;
	char digits[24], *stop;
	size_t len;

	while (at > line && at[-1] != ' ' && at[-1] != '\t')
		at--;
	len = *end - at;
	if (at == line || !len || len >= sizeof(digits))
		return false;
	memcpy(digits, at, len);
	digits[len] = '\0';
	errno = 0;
	*ret = strtoll(digits, &stop, 10);
	*end = at - 1;
	return !*stop && !errno && (isdigit((unsigned char)digits[0]) || digits[0] == '-');
}

static int read_line(struct folded *f, const char *line, const char *end)
{
	struct shstk_sample sample = { .tid = -1 };
	const char *text = line, *stop = end;
	int64_t value;
	int err;

	if (!take_value(line, &stop, &value))
		return wrong(f, line, end - line);
	if (!value && (size_t)(stop - line) > strlen(CAUTION) &&
	    !memcmp(line, CAUTION, strlen(CAUTION))) {
		text = copy_of(f, line + strlen(CAUTION), stop - line - strlen(CAUTION));
		return text ? shstk_profile_caution(f->in->profile, text) : -ENOMEM;
	}
	err = read_head(f, &text, stop, &sample);
	if (!err)
		err = read_stack(f, text, stop, &sample);
	return err ? err : shstk_import_sample(f->in, &sample, -1, &value);
}

static int read_lines(struct folded *f, const char *text, const char *end)
{
	int err = 0;

	for (f->line = 1; text < end && !err; f->line++) {
		const char *stop = memchr(text, '\n', end - text), *last;

		if (!stop)
			stop = end;
		last = stop > text && stop[-1] == '\r' ? stop - 1 : stop;
		if (last > text)
			err = read_line(f, text, last);
		text = stop < end ? stop + 1 : end;
	}
	return err;
}

int shstk_import_folded(struct shstk_import *in, const char *text, size_t size)
{
	struct folded f = { .in = in };
	int err = shstk_import_type(in, 0, "samples", "count");

	if (!err)
		err = shstk_import_types_end(in, 1);
	if (err)
		return err;
	shstk_pool_init(&f.pool);
	err = read_lines(&f, text, text + size);
	if (err == -ENOMEM)
		shstk_import_fail(in, err, "%s", strerror(ENOMEM));
	HASH_CLEAR(hh, f.names);
	shstk_pool_deinit(&f.pool);
	free(f.stack);
	free(f.copy);
	return err;
}
