#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the modules' sources with the kernel's own checkers: built with W=1 for every guest's
# kernel (or those in KERNELS) without a warning, sparse, checkpatch --strict, kernel-doc. It also
# compiles for other kernels: without uprobes, and with another type of a member. Prints KTAP.

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
cache=${SHSTK_CACHE:-$HOME/.cache/shstk}
out=$PWD/build/selftests/kmod/source
files=$(ls kmod/*.[ch] uapi/linux/*.h)
nr=0 failed=0

result()	# STATUS NAME [LOG]
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

# Makes the tree of the sources, of links. $1 is the directory.
tree()
{
	rm -rf "$1"
	for f in Kbuild kmod/Kbuild $files; do
		mkdir -p "$1/$(dirname "$f")" && ln -s "$PWD/$f" "$1/$f"
	done
}

# Runs sparse. $1 is the directory of a finished build, $2 the headers, $3 sparse's --arch.
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

# Builds the modules. $1 is the guest.
build()
{
	local headers arch= tree=$out/$1

	headers=$(cat "$cache/kernels/$1/headers")
	case $1 in arm64-*) arch="ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-";; esac
	tree "$tree"
	# kernel-doc runs below. W=1 would need it inside the folder.
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

# Builds without the options that the modules do not need: they are undefined after the
# configuration was read. $1 is the guest.
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

# Tests that the build names each option that is missing and that the modules need. $1 is the guest.
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

# Compiles the use of the number that each change of a mapping changes. Its type was changed in
# 6.12's stable releases. $1 is the type.
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

# Prints the options that a file names. $1 is the file, $2 the pattern.
options()
{
	grep "$2" "$1" | grep -o 'CONFIG_[A-Z0-9_]*' | grep -v -e USER_SHADOW_STACK -e ARM64_GCS | sort -u
}

# Compares the list in dkms.conf with that of the code: dkms must skip kernels for which the build
# would fail.
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

# The ignored checks: ENOSYS is what a system call that was not bound returns; only compat.h
# compares versions; trace events have their own layout; uapi headers have no BIT().
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
