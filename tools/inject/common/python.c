// SPDX-License-Identifier: GPL-2.0-or-later
/* python.c - reads the frames and functions of the Python that this process has. See python.h. */
#include <elf.h>
#include <pthread.h>

#include "python.h"
#include "libshstk/rtld.h"
#include "peek.h"
#include "tools/language/hidden_variable.h"
#include "tools/language/middle.h"

/* ---- Which Python the process has ---- */

uint64_t python_address_of(const char *name)
{
	uint64_t size;

	return (uintptr_t)rtld_symbol(name, &size);
}

#ifdef PYTHON_IS_READ
/* Returns whether a version is known on this machine. */
static bool is_known(const struct python_version *v)
{
#ifdef __x86_64__
	return v;
#else
	return v && v->arm64;
#endif
}

/* Returns whether the interpreter's own table of offsets, if it has one, is as expected. */
static bool has_offsets(const struct python_version *v, uint64_t runtime)
{
	uint64_t words[PYTHON_WORDS], cookie;

	if (!v->checks[0].word)
		return true;
	memcpy(&cookie, PYTHON_COOKIE, sizeof(cookie));
	/* The third word says whether it is a free-threaded build. */
	return peek(words, (const void *)runtime, sizeof(words)) && words[0] == cookie &&
	       !words[2] && !python_differs(v, words);
}

static int read_own(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	return peek(buf, (const void *)addr, size) ? 0 : -EFAULT;
}

/* Finds the variable with a thread's state, if the version has no key. Returns false if it is not known. */
static bool find_variable(const struct python_version *v, struct context_variable *ret)
{
	const struct hidden_variable_reader reader = {
		.read = read_own,
#ifdef __x86_64__
		.machine = EM_X86_64,
#else
		.machine = EM_AARCH64,
#endif
		.function = v->key ? 0 : python_address_of(PYTHON_STATE_READER),
		.member = HIDDEN_VARIABLE_RESULT,
	};

	return v->key || !hidden_variable_find(&reader, ret);
}

bool python_process_find(struct python_process *ret)
{
	const unsigned long *number = (const void *)python_address_of("Py_Version");
	unsigned long version;

	/* Where values of pthread_getspecific() lie is known of glibc only. */
	if (!number || !python_address_of("gnu_get_libc_version") ||
	    !peek(&version, number, sizeof(version)) || version >> 24 != 3)
		return false;
	*ret = (struct python_process){
		.version = python_version(version >> 16 & 255),
		.runtime = python_address_of("_PyRuntime"),
		.code_type = python_address_of("PyCode_Type"),
		.current = (uint64_t(*)(void))python_address_of(
			(version >> 16 & 255) > 12 ? "PyThreadState_GetUnchecked" :
						     "_PyThreadState_UncheckedGet"),
	};
	ret->run = (uintptr_t)rtld_symbol("_PyEval_EvalFrameDefault", &ret->run_size);
	ret->thread_below = python_thread_pointer() - (uint64_t)pthread_self();
	return is_known(ret->version) && ret->runtime && ret->code_type && ret->current &&
	       ret->run && ret->run_size && has_offsets(ret->version, ret->runtime) &&
	       find_variable(ret->version, &ret->variable);
}
#endif

/* ---- Functions ---- */

/* Copies @size bytes, as far as they can be read. Returns how many were copied. */
static uint32_t copy(uint8_t *to, uint64_t at, uint32_t size)
{
	uint32_t done = 0, part;

	while (done < size) {
		part = PEEK_PAGE - (at + done) % PEEK_PAGE;
		part = part < size - done ? part : size - done;
		if (!peek(to + done, (const void *)(at + done), part))
			break;
		done += part;
	}
	return done;
}

/* Copies a str object, or the part of it for which there is room. Returns the bytes. */
static uint32_t copy_text(const struct python_version *v, uint8_t *to, uint64_t object)
{
	uint8_t head[PYTHON_STATE + 8];
	uint64_t unit, size;

	if (copy(head, object, sizeof(head)) < sizeof(head))
		return 0;
	unit = python_word(head, PYTHON_STATE) >> 2 & 7;
	size = python_word(head, PYTHON_LENGTH);
	size = size < LANGUAGE_SHORT ? size * unit : LANGUAGE_SHORT;
	size += v->wide;
	return copy(to, object, size < LANGUAGE_SHORT ? size : LANGUAGE_SHORT - 1);
}

uint32_t python_table_bytes(uint64_t table)
{
	uint64_t size;

	if (!peek(&size, (const void *)(table + PYTHON_LENGTH), sizeof(size)))
		return 0;
	return size < LANGUAGE_LONG - PYTHON_BYTES ? size + PYTHON_BYTES : LANGUAGE_LONG - 1;
}

void python_copy_texts(const struct python_version *v, const struct python_key *key,
		       uint32_t table_bytes, struct language_code *to)
{
	to->got[0] = copy_text(v, to->shorts[0], key->name);
	to->got[1] = copy_text(v, to->shorts[1], key->file);
	to->got[2] = copy(to->table, key->table, table_bytes);
}

/* ---- Frames ---- */

/* Reads the marks. Returns how that ended; *@frame becomes the first frame's address. */
static enum language_end read_marks(struct python_view *view, const struct python_version *v,
				    struct python_lists *lists, struct language_entry *to,
				    uint64_t *frame)
{
	const size_t size = v->cframe_previous + sizeof(uint64_t);
	uint64_t at = lists->first, first;

	for (; at && lists->nr_marks < lists->max_marks; lists->nr_marks++) {
		const void *mark = view->look(view, at, size);

		if (!mark)
			return LANGUAGE_UNREADABLE;
		first = python_word(mark, v->cframe_frame);
		if (!lists->nr_marks)
			*frame = first;
		*to++ = (struct language_entry){ .addr = at, .id = first };
		at = python_word(mark, v->cframe_previous);
	}
	return at ? LANGUAGE_DEEP : LANGUAGE_WHOLE;
}

/* Reads the frame at *@at, which becomes the next one's address. Returns false if it cannot be read. */
static bool read_frame(struct python_view *view, const struct python_version *v, uint64_t *at,
		       struct language_entry *e)
{
	const void *frame = view->look(view, *at, v->frame_bytes);
	uint64_t object;

	if (!frame)
		return false;
	object = python_word(frame, v->code) & ~(uint64_t)v->code_tags;
	*e = (struct language_entry){
		.addr = *at,
		.id = object,
		.at = (int32_t)(python_word(frame, v->instruction) - object - v->instructions),
		.flags = (uint32_t)(python_word(frame, v->owner & ~7u) >> 8 * (v->owner & 4)),
	};
	*at = python_word(frame, v->previous);
	return true;
}

/*
 * Reads the rest of a deep stack, from the frame at @at on, into its outer end, which begins at @outer.
 * Returns how that ended.
 */
static enum language_end read_outer_end(struct python_view *view, const struct python_version *v,
					struct language_moment *to, struct language_entry *outer,
					uint64_t at)
{
	struct language_middle mid;

	language_begin_middle(&mid, to, outer, python_kind_bits(v));
	for (unsigned int n = 0; at; n++) {
		struct language_entry *e = &outer[n % LANGUAGE_OUTER];

		if (n == LANGUAGE_DEEPEST - LANGUAGE_FRAMES)
			return LANGUAGE_DEEP;
		language_leave_out(&mid, to, e);
		if (!read_frame(view, v, &at, e))
			return LANGUAGE_UNREADABLE;
	}
	language_turn(to, outer);
	return LANGUAGE_WHOLE;
}

/* Reads the frames, from the one at @at on. Returns how that ended. */
static enum language_end read_frames(struct python_view *view, const struct python_version *v,
				     struct python_lists *lists, struct language_moment *to,
				     uint64_t at)
{
	struct language_entry *e = (struct language_entry *)(to + 1) + lists->nr_marks;

	for (; at && lists->nr_frames < lists->max_frames; lists->nr_frames++)
		if (!read_frame(view, v, &at, &e[lists->nr_frames]))
			return LANGUAGE_UNREADABLE;
	if (!at)
		return LANGUAGE_WHOLE;
	if (lists->max_frames < LANGUAGE_FRAMES)
		return LANGUAGE_DEEP;
	return read_outer_end(view, v, to, e + LANGUAGE_INNER, at);
}

/*
 * Finds the first frame: the thread's state, or the first mark, has its address. 3.12 has marks, too, but
 * there the frames tell where the interpreter was entered. Returns how that ended.
 */
static enum language_end find_first(struct python_view *view, const struct python_version *v,
				    struct python_lists *lists, struct language_entry *to,
				    uint64_t *frame)
{
	const void *mark;

	*frame = v->cframes ? 0 : lists->first;
	if (!v->cframes || !lists->first)
		return LANGUAGE_WHOLE;
	if (v->entry)
		return read_marks(view, v, lists, to, frame);
	mark = view->look(view, lists->first, v->cframe_frame + sizeof(uint64_t));
	if (!mark)
		return LANGUAGE_UNREADABLE;
	*frame = python_word(mark, v->cframe_frame);
	return LANGUAGE_WHOLE;
}

bool python_read_lists(struct python_view *view, const struct python_version *v,
		       struct python_lists *lists, struct language_moment *to)
{
	enum language_end end;
	uint64_t frame;

	*to = (struct language_moment){ .kind = LANGUAGE_MOMENT };
	lists->nr_marks = 0;
	lists->nr_frames = 0;
	end = find_first(view, v, lists, (struct language_entry *)(to + 1), &frame);
	if (end == LANGUAGE_WHOLE)
		end = read_frames(view, v, lists, to, frame);
	to->end = end;
	to->nr_marks = lists->nr_marks;
	to->nr_frames = lists->nr_frames;
	return end == LANGUAGE_WHOLE;
}
