#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# names_test - tests the global names of the libraries: those of the static libraries clash with no
# name that a program may define.

b=${B:-build}
work=$b/selftests/everywhere/names
n=0
bad=0

point()
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n $1"
	else
		bad=1
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $n $1"
	fi
}

globals()
{
	nm -g --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u
}

echo 'KTAP version 1'
echo '1..5'
rm -rf "$work"
mkdir -p "$work"

sed -n 's/^\t\(shstk_[a-z_]*\);.*/\1/p' libshstk/libshstk.map | sort >"$work/map"
globals "$b/libshstk.a" >"$work/static"
point 'libshstk.a has the names of the map, and all names have shstk_ in front' \
	"$(comm -23 "$work/map" "$work/static" 2>&1
	   grep -v '^shstk_' "$work/static")"
nm -D --defined-only "$b/libshstk.so" | awk 'NF == 3 { print $3 }' |
	sed 's/@.*//' | grep -v '^SHSTK_' | sort -u >"$work/shared"
point 'libshstk.so has the same' "$(diff "$work/map" "$work/shared" 2>&1)"
point 'libshstk-symbol.a has names with shstk_ in front' \
	"$(globals "$b/libshstk-symbol.a" | grep -v '^shstk_')"

# Makes a program that defines functions with all the names that the library uses internally.
globals "$b"/lib/native/*.o "$b"/lib/native/arch/*/*.o | grep -v '^shstk_' |
	sed 's/.*/void &(void); void &(void) { __builtin_trap(); }/' >"$work/clash.c"
cat >"$work/main.c" <<-END
	#include "shstk.h"
	__attribute__((noinline)) static int capture(uint64_t *pcs)
	{
		return shstk_capture(pcs, 16, 0, 0);
	}
	int main(void)
	{
		uint64_t pcs[16];
		return capture(pcs) < 2;
	}
END
for how in '' -static; do
	# shellcheck disable=SC2086
	point "a program with $(wc -l <"$work/clash.c") names of the library's inside${how:+, }$how" \
		"$(${CC:-gcc} -w -O1 $how -Ilibshstk -Iuapi -o "$work/clash" "$work/main.c" \
			"$work/clash.c" "$b/libshstk.a" 2>"$work/log" &&
			"$work/clash" 2>&1 || { cat "$work/log"; echo "exit code $?"; })"
done
exit $bad
