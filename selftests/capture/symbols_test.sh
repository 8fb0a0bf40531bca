#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the built library: which symbols it exports, what it depends on, that nothing is bound at
# its first call, and that a capture calls no allocator.

lib=${1:-build/lib/native/libshstk.so}
map=libshstk/libshstk.map
headers="libshstk/shstk.h libshstk/shstk_go.h"
n=0
failed=0

point() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n $1"
	else
		echo "# $2" | tr '\n' ' '
		echo
		echo "not ok $n $1"
		failed=1
	fi
}

echo "TAP version 13"
echo "1..7"

exported=$(nm -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
listed=$(awk '/^\t[a-z_0-9]+;/ { sub(/;/, ""); print $1 }' $map | sort -u)
point "exported symbols are those of the map" \
	"$(printf '%s\n%s\n' "$exported" "$listed" | sort | uniq -u)"

declared=$(cat $headers | tr '\n' ' ' | grep -o 'SHSTK_API [^;]*(' |
	grep -o 'shstk_[a-z_0-9]* *(' | tr -d ' (' | sort -u)
point "the map lists what the headers declare" \
	"$(printf '%s\n%s\n' "$declared" "$listed" | sort | uniq -u)"

point "the soname carries the ABI version" \
	"$(readelf -d "$lib" | grep -q 'soname: \[libshstk.so.0\]' || echo none)"

point "it needs nothing but the C library" \
	"$(readelf -d "$lib" | grep NEEDED | grep -v -e 'libc\.so' -e 'ld-linux')"

# The only exception is libc's own pthread_atfork(), which has a PLT entry; a constructor calls it.
point "no function is bound at its first call" \
	"$(readelf -rW "$lib" | grep -e JUMP_SLO | grep -v __register_atfork
	   readelf -d "$lib" | grep -q -e BIND_NOW -e 'Flags:.*NOW' || echo lazy)"

# These objects are left out, because no capture in a signal handler calls their functions.
point "what captures run through has no allocator, lock or stdio" \
	"$(nm -A -u "$(dirname "$lib")/libshstk.a" |
		grep -v -E ':(address_space|file_rules|shadow_remote|device|shadow_control|go_context)\.o:' |
		grep -w -E 'malloc|calloc|realloc|free|pthread_mutex_lock|printf|fopen|dlopen')"

# A program that does not use markers is linked with neither the trampolines nor their code.
point "nothing of it asks for markers" \
	"$(nm "$lib" | grep -i -E 'marker|trampoline'
	   nm -A -u "$(dirname "$lib")"/*.o "$(dirname "$lib")"/arch/*/*.o |
		grep -E ' (shstk_marker|markers_|trampoline_)')"
exit $failed
