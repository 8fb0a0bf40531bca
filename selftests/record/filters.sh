#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest: the agent reads the filters of system calls that programs install, here of an
# architecture for which user-mode emulation has none. The arguments are only there so that the files
# are copied into the guest.

mkdir -p /t/filters && cd /t/filters || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh
record='./shstk record --via=agent -F 499 -o out.folded --'

echo TAP version 13
t 'random filters: the agent knows what the kernel permits' 0 '^# PASSED: 3 / 3' ./filter_test
grep -q SKIP out
[ $? = 1 ]
point $? 'and the kernel has filters'
# The program has no signal of the agent's blocked that it does not want blocked.
for where in handler roomy; do
	for how in exec fork system; do
		t "$how behind a filter that permits it, $where" 0 '^0$' \
			$record ./target sandbox-hands-on lenient mask $where $how ./target-static
	done
done
for how in exec fork; do
	t "$how behind one that does not, roomy" 0 '^0$' \
		$record ./target sandbox-hands-on filter mask roomy $how ./target-static
done
for what in program code; do
	t "a filter whose $what cannot be read" 0 'sampled in process' \
		$record ./target bad-filter $what
done
echo "1..$count"
exit $failed
