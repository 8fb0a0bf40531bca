#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# guest.sh software|hardware FILE... - tests `shstk record --heap` on programs whose allocations are
# known, and compares the drop-in for backtrace() with the functions that it replaces, in the arm64
# guest, with the shadow stack off or on. The files are only named to have them copied into the
# guest.

mode=$1

# Other tests copy files with these names too: then this test's are called 2-shstk and so on.
mkdir -p /t/heap && cd /t/heap || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh

# heap NAME TYPE PROGRAM FUNCTION=VALUE...: checks what these functions themselves allocate
heap()
{
	name=$1 type=$2 program=$3
	shift 3
	./shstk record --heap -q --heap-show="$type" -o got.folded -- \
		./target "$program" >out 2>err
	got=$?
	for want in "$@"; do
		awk -v f="${want%=*}" -v want="${want#*=}" '
		{
			n = split($0, frame, ";")
			value = $NF
			sub(/ [0-9]+$/, "", frame[n])
			if (frame[n] == f)
				sum += value
		}
		END { if (sum != want) print f ": " sum + 0 ", expected " want }' \
			got.folded >>err
	done
	if [ $got = 0 ] && [ ! -s err ]; then
		say ok "$mode: $name"
	else
		say 'not ok' "$mode: $name"
		sed 's/^/# | /' err | tail -n 20
		echo "# status $got"
	fi
}

all()
{
	heap 'every function is seen' inuse_space kinds by_malloc=100 \
		by_calloc=200 by_realloc_null=300 by_aligned_alloc=512 \
		by_memalign=600 by_posix_memalign=900 by_new=1 \
		by_new_array=1001 by_operator_new=1003
	heap 'the peak is exact' peak_space peak first_half=40000 \
		second_half=30000 kept=0
	heap 'threads and their destructors' inuse_objects threads \
		in_thread=8000 in_key_destructor=8 in_tls_destructor=8
	heap 'children of fork' inuse_space forks before_fork=1000 \
		in_child=2000 in_raw_child=3000 in_parent=4000
	heap 'blocks freed by other threads' inuse_objects handover pass=0
	heap 'allocations in signal handlers' inuse_objects signals on_alarm=0
	heap 'a deep stack' inuse_objects deep recursion=1
	t "$mode: all of it" 0 '^601 frames$' deepest
	t "$mode: python3 runs as it does alone" 0 '^38886$' ./shstk record \
		--heap -q -o got.folded -- python3 -S -c \
		'print(sum(len(str(i)) for i in range(9999)))'
	drop
}

# Prints how many frames the recursive function has.
deepest()
{
	echo "$(grep -o 'recursion[;+ ]' got.folded | wc -l) frames"
}

# Runs walkers of every kind with and without the drop-in.
drop()
{
	./walkers >before 2>&1
	LD_PRELOAD=./libshstk-backtrace.so ./walkers >after 2>&1
	if grep -q 'caught 10' before && cmp before after; then
		say ok "$mode: the drop-in gives the same traces"
	else
		say 'not ok' "$mode: the drop-in gives other traces"
		diff before after | head -n 10 | cut -c 1-200 | sed 's/^/# /'
	fi
}

echo TAP version 13
[ "$mode" = software ] || export GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=3
all
echo "1..$count"
