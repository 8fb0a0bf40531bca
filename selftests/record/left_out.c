// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * left_out.c - stands for libprotobuf-c and libiberty in the arm64 command: all
 * functions fail, so there is no pprof format, and C++ names stay as they are.
 */
#include <stddef.h>
#include <stdint.h>

#define FAILS(type, name)       \
	type name(void);        \
	type name(void)         \
	{                       \
		return (type)0; \
	}

const char protobuf_c_empty_string[] = "";

FAILS(int, cplus_demangle_v3_callback)
FAILS(int, rust_demangle_callback)
FAILS(size_t, protobuf_c_message_get_packed_size)
FAILS(size_t, protobuf_c_message_pack)
FAILS(size_t, protobuf_c_message_pack_to_buffer)
FAILS(void *, protobuf_c_message_unpack)
FAILS(void *, protobuf_c_message_free_unpacked)
