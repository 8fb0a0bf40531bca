// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * versions.c - the tables of offsets. See versions.h.
 *
 * From 3.13 on, _PyRuntime begins with a table of the interpreter's own, _Py_DebugOffsets. It lacks
 * some offsets that are needed, so a table is kept here for each version; but where the
 * interpreter's own table has an offset, it must be the same, or the interpreter is refused.
 */
#include <stddef.h>

#include "tools/language/python/versions.h"

/* clang-format off */
static const struct python_version versions[] = {
	{
		.minor = 11, .cframes = true, .key = 592 + 4, .key_arm64 = 16, .finalizing = 24,
		.state_frames = 56, .state_thread = 152, .cframe_frame = 8, .cframe_previous = 16,
		.frame_bytes = 72, .previous = 48, .code = 32, .instruction = 56, .owner = 69,
		.entry = 68, .first_line = 72, .first_traceable = 168, .instructions = 184,
		.ascii = 48, .wide = 72, .state_top = 304, .arm64 = true,
		.locals = 72, .generator_frame = 80, .task_coroutine = 136,
	}, {
		.minor = 12, .cframes = true, .key = 1544 + 4, .finalizing = 24,
		.state_frames = 56, .state_thread = 136, .cframe_frame = 0, .cframe_previous = 8,
		.frame_bytes = 72, .previous = 8, .code = 0, .instruction = 56, .owner = 70,
		.first_line = 68, .size_words = 76, .first_traceable = 176, .instructions = 192,
		.ascii = 40, .wide = 56, .state_top = 240,
		.locals = 72, .generator_frame = 72, .task_coroutine = 136, .waits = { 123, 168 },
	}, {
		.minor = 13, .arm64 = true, .key = 2160 + 4, .finalizing = 608,
		.state_frames = 72, .state_thread = 152, .state_top = 240,
		.frame_bytes = 72, .previous = 8, .code = 0, .instruction = 56, .owner = 70,
		.first_line = 68, .size_words = 76, .first_traceable = 184, .instructions = 200,
		.ascii = 40, .wide = 56,
		.locals = 72, .generator_frame = 72, .task_coroutine = 120, .waits = { 104, 208 },
		.checks = {
			{ 4, 608, "runtime_state.finalizing" },
			{ 23, 72, "thread_state.current_frame" },
			{ 24, 152, "thread_state.thread_id" },
			{ 28, 80, "interpreter_frame.size" },
			{ 29, 8, "interpreter_frame.previous" },
			{ 30, 0, "interpreter_frame.executable" },
			{ 31, 56, "interpreter_frame.instr_ptr" },
			{ 33, 70, "interpreter_frame.owner" },
			{ 34, 208, "code_object.size" },
			{ 35, PYTHON_FILENAME, "code_object.filename" },
			{ 37, PYTHON_QUALNAME, "code_object.qualname" },
			{ 38, PYTHON_LINETABLE, "code_object.linetable" },
			{ 39, 68, "code_object.firstlineno" },
			{ 43, 200, "code_object.co_code_adaptive" },
			{ 45, PYTHON_TYPE, "pyobject.ob_type" },
			{ 65, PYTHON_LENGTH, "bytes_object.ob_size" },
			{ 66, PYTHON_BYTES, "bytes_object.ob_sval" },
			{ 68, PYTHON_STATE, "unicode_object.state" },
			{ 69, PYTHON_LENGTH, "unicode_object.length" },
			{ 70, 40, "unicode_object.asciiobject_size" },
		},
	}, {
		.minor = 14, .arm64 = true, .key = 2336 + 4, .finalizing = 784,
		.state_frames = 72, .state_thread = 152, .state_top = 240,
		.frame_bytes = 80, .previous = 8, .code = 0, .code_tags = 3, .instruction = 56,
		.owner = 74,
		.first_line = 68, .size_words = 76, .first_traceable = 192, .instructions = 208,
		.ascii = 40, .wide = 56,
		.locals = 80, .generator_frame = 72, .task_coroutine = 128, .waits = { 106, 197 },
		.checks = {
			{ 4, 784, "runtime_state.finalizing" },
			{ 26, 72, "thread_state.current_frame" },
			{ 27, 152, "thread_state.thread_id" },
			{ 31, 88, "interpreter_frame.size" },
			{ 32, 8, "interpreter_frame.previous" },
			{ 33, 0, "interpreter_frame.executable" },
			{ 34, 56, "interpreter_frame.instr_ptr" },
			{ 36, 74, "interpreter_frame.owner" },
			{ 39, 216, "code_object.size" },
			{ 40, PYTHON_FILENAME, "code_object.filename" },
			{ 42, PYTHON_QUALNAME, "code_object.qualname" },
			{ 43, PYTHON_LINETABLE, "code_object.linetable" },
			{ 44, 68, "code_object.firstlineno" },
			{ 48, 208, "code_object.co_code_adaptive" },
			{ 51, PYTHON_TYPE, "pyobject.ob_type" },
			{ 75, PYTHON_LENGTH, "bytes_object.ob_size" },
			{ 76, PYTHON_BYTES, "bytes_object.ob_sval" },
			{ 78, PYTHON_STATE, "unicode_object.state" },
			{ 79, PYTHON_LENGTH, "unicode_object.length" },
			{ 80, 40, "unicode_object.asciiobject_size" },
		},
	}, {
		.minor = 15, .arm64 = true, .base_frame = true, .finalizing = 912,
		.state_frames = 72, .state_thread = 176, .state_top = 264,
		.frame_bytes = 80, .previous = 8, .code = 0, .code_tags = 3, .instruction = 56,
		.owner = 74,
		.first_line = 68, .size_words = 76, .first_traceable = 192, .instructions = 208,
		.ascii = 40, .wide = 56,
		.locals = 80, .generator_frame = 72, .task_coroutine = 128, .waits = { 105, 203 },
		.checks = {
			{ 4, 912, "runtime_state.finalizing" },
			{ 26, 72, "thread_state.current_frame" },
			{ 30, 176, "thread_state.thread_id" },
			{ 39, 88, "interpreter_frame.size" },
			{ 40, 8, "interpreter_frame.previous" },
			{ 41, 0, "interpreter_frame.executable" },
			{ 42, 56, "interpreter_frame.instr_ptr" },
			{ 44, 74, "interpreter_frame.owner" },
			{ 47, 216, "code_object.size" },
			{ 48, PYTHON_FILENAME, "code_object.filename" },
			{ 50, PYTHON_QUALNAME, "code_object.qualname" },
			{ 51, PYTHON_LINETABLE, "code_object.linetable" },
			{ 52, 68, "code_object.firstlineno" },
			{ 56, 208, "code_object.co_code_adaptive" },
			{ 59, PYTHON_TYPE, "pyobject.ob_type" },
			{ 87, PYTHON_LENGTH, "bytes_object.ob_size" },
			{ 88, PYTHON_BYTES, "bytes_object.ob_sval" },
			{ 90, PYTHON_STATE, "unicode_object.state" },
			{ 91, PYTHON_LENGTH, "unicode_object.length" },
			{ 92, 40, "unicode_object.asciiobject_size" },
		},
	},
};
/* clang-format on */

const struct python_version *python_version(int minor)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (versions[i].minor == minor)
			return &versions[i];
	return NULL;
}

const struct python_check *python_differs(const struct python_version *v, const uint64_t *words)
{
	for (const struct python_check *c = v->checks; c->word; c++)
		if (words[c->word] != c->value)
			return c;
	return NULL;
}

uint32_t python_kind_bits(const struct python_version *v)
{
	return 255u << (v->owner & 3) * 8 | (v->entry ? 255u << (v->entry & 3) * 8 : 0);
}
