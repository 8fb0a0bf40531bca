#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with real shadow stacks and shstk_perf.ko loaded: tests `shstk record` by perf
# events, with programs without frame pointers. The first argument says whether everything is tested
# (full) or only what differs between architectures (short); the other arguments are only there so
# that the files are copied into the guest.

# If other tests bring files of the same names, ours are called 2-shstk and so on.
mkdir -p /t/record && cd /t/record || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh
by='by perf events, callchains from shadow stacks'

# early: prints how many samples of how many the recorder says were taken of processes without a shadow
# stack before it copied stacks: "5 of 120", or "0 of 1" if it says nothing. A program that is about to get
# its shadow stack has none yet, and the slower the machine is, the later copies begin.
early()
{
	sed -nE 's/.* ([0-9]+ of [0-9]+) samples are of processes without a shadow stack, from before.*/\1/p' out |
		grep . || echo 0 of 1
}

# whole NAME PART: checks that, of the time in PART (a pattern), nearly all is in stacks that reach
# the first frame. What comes before the shadow stack is on, in execve() and the loader, is left out.
# So are stacks of which there is nothing but the innermost frame, but no more than the recorder says.
whole()
{
	if awk -v part="$2" -v early="$(early)" '
		{ time = $NF; total += time }
		/^[^;]*;\[(exec, loader\]|ld-linux|0x)/ { next }
		$0 ~ part { all += time }
		$0 ~ part && /^[^;]*;\[truncated\];[^;]*$/ { one += time }
		$0 ~ part && /;(_start|clone|__clone3|thread_start|\[libc.so.6[^;]*\]);/ { good += time }
		END { split(early, samples, " of ")
		      said = total * samples[1] / samples[2]
		      one = one < said ? one : said
		      printf "%.3f of %.3f s, and %.3f s from before stacks were copied\n",
			     good / 1e9, all / 1e9, one / 1e9
		      exit !(good > 0 && good > 0.97 * (all - one)) }' out.folded >share; then
		say ok "$1: complete in $(cat share)"
	else
		say 'not ok' "$1: complete in $(cat share)"
		cut -c 1-300 out.folded | sed 's/^/# /' | head -n 20
	fi
}

# An x86 guest counts few instructions in a second.
fast=499
[ "$(uname -m)" = aarch64 ] || fast=9999

# Nested calls of a shell's function may need more than the usual 127 entries.
echo 512 >/proc/sys/kernel/perf_event_max_stack

record='./shstk record -o out.folded'

echo TAP version 13
t 'a command with shadow stacks: by the kernel' 0 "$by" $record -F 499 -- ./shstk run -q ./target share 0.3
whole 'its stacks' ';do_share'
t 'one without: by copies' 0 'stacks copied and unwound here' $record -- ./target exit 0
t 'time off the CPU' 0 's of off-CPU time' $record --off-cpu -- ./shstk run -q ./target sleeper 1
t 'the thread slept for its second' 0 'yes' awk '/;sleeping_thread/ { s += $NF }
	END { if (s > 0.98e9 && s < 20e9) print "yes"; else print "no", s }' out.folded
whole 'where it did' ';sleeping_thread'
t 'bash' 0 "$by" $record -F $fast -- ./shstk run -q bash -c "$bash_script; h() { [ \$1 -gt 0 ] && h \$((\$1 - 1)); }; h 6; h 6; :"
whole 'its stacks' '^bash;.*;execute_command'
t 'what has none, started by one that has' 0 'of processes without a shadow stack' $record -F 499 -- \
	./shstk run -q bash -c 'unset GLIBC_TUNABLES LD_PRELOAD; ./target share 4; :'
whole 'its stacks' ';do_share'
if [ "$1" = short ]; then
	echo "1..$count"
	exit
fi
t 'a crash: status and profile' 139 'wrote out.folded' $record -F 499 -- ./shstk run -q ./target crash 0.2
whole 'its stacks' ';burn'
t 'threads' 0 '[3-9] threads' $record -F 499 -- ./shstk run -q ./target threads 3 3 0.1
whole 'their stacks' ';thread_work'
t 'functions of the kernel' 0 "$by" $record --kernel -F 999 -- ./shstk run -q bash -c 'for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do read x </proc/cpuinfo; done; done'
t 'by their names' 0 ';(el0_svc|do_syscall_64)' cat out.folded
t 'sqlite3' 0 "$by" $record -F 499 -- ./shstk run -q sqlite3 :memory: "with recursive c(x) as (select 1 union all select x+1 from c where x<20000) select sum(x * x % 7) from c;"
whole 'its stacks' '^sqlite3;'

./shstk run -q ./target forever >ready 2>&1 &
await_line '^ready$' ready
pid=$(pidof target)
t 'a running process' 0 "$by" enough 100 2 $record -F 499 -p "$pid"
whole 'its stacks' ';do_forever'
t 'the whole system' 0 'stacks copied and unwound here, or from shadow stacks' enough 100 2 $record -F 499 -a
whole 'that process in it' 'target.*;do_forever'
kill "$pid"
wait

# Copies of this program's stack would not be large enough. The program begins while recording is
# on: its first samples are from before it has a shadow stack.
deep_has_worked()
{
	deep=$(pidof deep) && [ "$(awk '{ print $14 }' "/proc/$deep/stat")" -gt 400 ]
}

both()
{
	$record -F 499 -a >both.log 2>&1 &
	recorder=$!
	await_line 'sampling by' both.log
	./shstk run -q ./deep 1000000 >/dev/null 2>&1 &
	await deep_has_worked
	kill -TERM $recorder
	wait $recorder
	got=$?
	cat both.log
	return $got
}
./target forever >ready 2>&1 &
plain=$!
await_line '^ready$' ready
t 'processes with shadow stacks and without: both at once' 0 \
	'unwound here, or from shadow stacks' both
whole 'a stack that is larger than any copy' '^deep.*;work'
awk '/^deep/ && /;work/ { n = gsub(/;down/, "") + 0; if (n > most + 0) most = n }
	END { print most " calls of down() at most"; exit most <= 350 }' out.folded >deepest
status=$?
cat deepest >>out
point $status 'with all of its frames'
whole 'a stack that is copied' '^target.*;do_forever'
kill "$deep" $plain
wait
./target forever >/dev/null &
t 'a process without a shadow stack: by copies' 0 'stacks copied and unwound here' enough 100 2 $record -F 499 -p $!
whole 'its stacks' ';do_forever'
t 'but recorded if told to' 0 'frame pointers, not a shadow stack' $record --via=perf -p $! --duration=2
kill $!
t 'no such event here' 125 "no event 'cache-misses'" $record --via=perf -e cache-misses -- ./target exit 0
echo "1..$count"
