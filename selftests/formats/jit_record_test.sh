#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# jit_record_test - tests `shstk record` with a program whose hot path leads through code that is
# made at run time. The code is unwound by what the program gives to __register_frame(), or by frame
# pointers, and named by the program's perf-map. Nine of ten samples must be whole. In the last test
# the name of the code changes while it runs, and the perf-map is removed at the end: each sample
# must have the name of its time.

b=${B:-build}
work=$b/selftests/formats
n=0
bad=0
echo 'KTAP version 1'
echo '1..3'
for kind in plain fp; do
	n=$((n + 1))
	via=auto
	# The agent is needed for registered unwind information, which is seen only from inside the
	# process.
	[ $kind = fp ] || via=agent
	map=$("$b/shstk" record --via=$via -q -o "$work/jit-$kind.folded" "$work/jit_burn" $kind 2>"$work/jit.log")
	case $map in
	/tmp/perf-*.map) rm -f "$map";;
	esac
	if awk '{ all += $NF }
		/;main;made_at_run_time;burn/ { whole += $NF }
		END { exit !(all && whole >= 0.9 * all) }' "$work/jit-$kind.folded"; then
		echo "ok $n record through run-time code: $kind"
	else
		bad=1
		sed 's/^/# /' "$work/jit.log" "$work/jit-$kind.folded"
		echo "not ok $n record through run-time code: $kind"
	fi
done
n=$((n + 1))
"$b/shstk" record -q -o "$work/jit-swap.folded" "$work/jit_burn" swap 2>"$work/jit.log"
if awk '{ all += $NF }
	/;swap;first_at_the_place;burn/ { first += $NF }
	/;swap;second_at_the_place;burn/ { second += $NF }
	END { exit !(all && first >= 0.35 * all && second >= 0.35 * all &&
		first + second >= 0.9 * all) }' "$work/jit-swap.folded"; then
	echo "ok $n record through run-time code: names by time, in a file that is removed"
else
	bad=1
	sed 's/^/# /' "$work/jit.log" "$work/jit-swap.folded"
	echo "not ok $n record through run-time code: names by time, in a file that is removed"
fi
exit $bad
