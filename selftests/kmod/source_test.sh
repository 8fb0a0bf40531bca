#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The modules' sources under the kernel's own checkers: built with W=1 for every
# guest's kernel (or those of KERNELS) without a warning, sparse, checkpatch --strict, kernel-doc.
# And what other kernels than these are: without uprobes, with another type of a member.
# Prints KTAP.

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
cache=${SHSTK_CACHE:-$HOME/.cache/shstk}
out=$PWD/build/selftests/kmod/source
files=$(ls kmod/*.[ch] uapi/linux/*.h)
nr=0 failed=0

result()	# status, name, [log]
{
	nr=$((nr + 1))
	if [ "$1" = 0 ]; then
		echo "ok $nr $2"
	else
		echo "not ok $nr $2"
		head -20 "$3" | sed 's/^/# /'
		failed=1
	fi
}

skip()
{
	nr=$((nr + 1))
	echo "ok $nr # SKIP $1"
}

# $1 directory: the sources, by links
tree()
{
	rm -rf "$1"
	for f in Kbuild kmod/Kbuild $files; do
		mkdir -p "$1/$(dirname "$f")" && ln -s "$PWD/$f" "$1/$f"
	done
}

# $1 directory of a finished build, $2 headers, $3 sparse's --arch
run_sparse()
{
	local cmd dir

	for cmd in "$1"/kmod/.*.o.cmd; do
		case $cmd in *.mod.o.cmd|*/.shstk*) continue;; esac
		sed -n 's/^savedcmd_[^:]*:= *//p' "$cmd" |
			sed 's/^[^ ]*gcc[^ ]* //; s/;.*//' >"$1/flags"
		# Newer kernels compile in the module's directory.
		dir=$1
		grep -q " $1/kmod/[a-z0-9_]*\.c" "$1/flags" && dir=$2
		selftests/guest/in trixie sh -c "cd $dir && \
			$1/sparse --arch=$3 -D__CHECK_ENDIAN__ $(cat "$1/flags")" 2>&1
	done
}

# $1 guest
build()
{
	local headers arch= tree=$out/$1

	headers=$(cat "$cache/kernels/$1/headers")
	case $1 in arm64-*) arch="ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-";; esac
	tree "$tree"
	# kernel-doc runs below; there W=1 would want it inside the folder.
	# shellcheck disable=SC2086
	selftests/guest/in trixie make -s -C "$headers" $arch M="$tree" W=1 \
		cmd_checkdoc= >"$tree/log" 2>&1 && [ ! -s "$tree/log" ]
	result $? "W=1 build without a warning: $1" "$tree/log"

	# sparse 0.6.4 crashes in the headers of newer kernels.
	case $1 in x86-6.12) ;; *) return;; esac
	if ! command -v sparse >/dev/null; then
		skip "sparse: not installed"
		return
	fi
	cp "$(command -v sparse)" "$tree/sparse"
	run_sparse "$tree" "$headers" x86_64 >"$tree/log"
	[ ! -s "$tree/log" ]
	result $? "sparse: $1" "$tree/log"
}

# What the modules do without. The compiler sees it when the configuration was read. $1 guest
build_without()
{
	local headers tree=$out/without

	headers=$(cat "$cache/kernels/$1/headers")
	tree "$tree"
	printf '#undef %s\n' CONFIG_UPROBES CONFIG_USERFAULTFD CONFIG_UNWIND_USER >"$tree/undef.h"
	selftests/guest/in trixie make -s -C "$headers" M="$tree" W=1 cmd_checkdoc= \
		KCFLAGS="-include $tree/undef.h" kmod/shstk_perf.o >"$tree/log" 2>&1 &&
		[ ! -s "$tree/log" ]
	result $? "W=1 build without uprobes, userfaultfd and deferred callchains: $1" "$tree/log"
}

# What they do not do without: each option that is missing is named. $1 guest
stop_without()
{
	local headers tree=$out/stop option

	headers=$(cat "$cache/kernels/$1/headers")
	tree "$tree"
	options kmod/needs.h static_assert | sed 's/^/#undef /' >"$tree/undef.h"
	selftests/guest/in trixie make -s -C "$headers" M="$tree" \
		KCFLAGS="-include $tree/undef.h" kmod/kfunc.o >"$tree/log" 2>&1
	for option in $(options kmod/needs.h static_assert); do
		grep -q "static assertion failed: .*$option)" "$tree/log" || return 1
	done
}

# The number that changes of mappings change, whose type 6.12 changed on its way. $1 that
compile_sequence()
{
	local c=$out/sequence.c

	{
		printf '%s\n' '#include <stdlib.h>' '#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))' \
			'typedef struct { unsigned int sequence; } seqcount_t;' \
			"struct mm_struct { $1 mm_lock_seq; };"
		sed -n '/^static inline unsigned int ushstk_mm_seq/,/^}/p' kmod/compat.h
		printf '%s\n' 'int main(void) { struct mm_struct mm; *(int *)&mm = 5;' \
			'return ushstk_mm_seq(&mm) != 5; }'
	} >"$c"
	${CC:-cc} -std=gnu11 -Wall -Werror -o "$out/sequence" "$c" >"$out/log" 2>&1 && "$out/sequence"
	result $? "the number that mappings change is read where it is $1" "$out/log"
}

# $1 file, $2 pattern: the options that it names
options()
{
	grep "$2" "$1" | grep -o 'CONFIG_[A-Z0-9_]*' | grep -v -e USER_SHADOW_STACK -e ARM64_GCS | sort -u
}

# dkms passes over what would not build.
compare_needs()
{
	diff <(options kmod/needs.h static_assert) <(options kmod/dkms.conf BUILD_EXCLUSIVE_CONFIG) \
		>"$out/log"
	result $? "dkms.conf and the code want the same configuration" "$out/log"
}

guests=
for guest in ${KERNELS:-x86-6.12 x86-7.2 arm64-7.2}; do
	[ -f "$cache/kernels/$guest/headers" ] && guests="$guests $guest"
done
scripts=$cache/source/scripts
if [ -z "$guests" ] || [ ! -f "$scripts/checkpatch.pl" ]; then
	echo "1..0 # SKIP no kernel headers or checkpatch: run selftests/guest/setup"
	exit 4
fi

if ! why=$(selftests/guest/in trixie true 2>&1); then
	echo "1..0 # SKIP no builds in $cache/trixie: ${why%%$'\n'*}"
	exit 4
fi

echo "TAP version 13"
mkdir -p "$out"
for guest in $guests; do
	build "$guest"
	case $guest in x86-7.2)
		build_without "$guest"
		stop_without "$guest"
		result $? "without cgroups, fsnotify, perf events or others it says so: $guest" \
			"$out/stop/log"
		;;
	esac
done
compile_sequence int
compile_sequence seqcount_t
compare_needs

# ENOSYS is what a system call that was not bound answers; versions are
# compared in compat.h only; trace events have a layout of their own; uapi headers have no BIT().
# shellcheck disable=SC2086
perl "$scripts/checkpatch.pl" --no-tree --strict --terse --no-summary \
	--ignore ENOSYS -f $(ls kmod/*.[ch] | grep -v -e compat.h -e trace.h) >"$out/log" 2>&1 &&
perl "$scripts/checkpatch.pl" --no-tree --strict --terse --no-summary \
	--ignore OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT -f kmod/trace.h >>"$out/log" 2>&1 &&
perl "$scripts/checkpatch.pl" --no-tree --strict --terse --no-summary \
	--ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON -f kmod/compat.h >>"$out/log" 2>&1 &&
perl "$scripts/checkpatch.pl" --no-tree --strict --terse --no-summary \
	--ignore BIT_MACRO -f uapi/linux/*.h >>"$out/log" 2>&1
result $? "checkpatch --strict" "$out/log"

# shellcheck disable=SC2086
python3 "$cache/source/tools/docs/kernel-doc" -none -Wall $files >"$out/log" 2>&1 &&
	[ ! -s "$out/log" ]
result $? "kernel-doc" "$out/log"

echo "1..$nr"
exit $failed
