#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# probed_test [shadow|refusals|brief] [FILE...] - tests `shstk record --heap -p` on programs that count
# their own allocations. In a guest the files are named to have them copied in; on this machine they
# are in the build folder. Prints KTAP.
#
# With "shadow" it runs only one round of a program that has shadow stacks, for a guest that is
# slow; with "refusals" only what is refused; with "brief" one round of a program, and what is refused.

only=
case "$1" in shadow | refusals | brief) only=$1 && shift ;; esac
# The ring has room for all that a program allocates meanwhile, as the recorder may have to wait for a CPU.
rounds=3 churned=15
if [ $# -gt 0 ]; then
	# An emulator takes ten times as long for a probe.
	rounds=2 churned=8
	mkdir -p /t/probed && cd /t/probed || exit 1
	for file in "$@"; do
		[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
	done
else
	here=$(cd "$(dirname "$0")" && pwd)
	build=${SHSTK_BUILD:-$here/../..}
	dir=$(mktemp -d) && cd "$dir" || exit 1
	trap 'cd /; rm -rf "$dir"' EXIT
	cp "$here/steady" "$here/steady-static" "$here/steady-stripped" "$here/cases.sh" \
		"$here/../record/nobody" .
	for file in narrow holes; do
		[ ! -e "$here/$file" ] || cp "$here/$file" .
	done
	ln -s "$build/shstk" shstk
	for object in "$build/shstk-heap.bpf.o" "$build/shstk-probed.bpf.o"; do
		[ ! -e "$object" ] || ln -s "$object" .
	done
fi
. ./cases.sh
chmod 755 .
mkdir -p made
chmod 777 made

# ---- The program that is recorded ----

# begin PROGRAM: starts it. Its process ID goes to $pid, its answers to the file "answers". If
# $under is set, it is a command that starts the program as its child.
begin()
{
	rm -f orders answers
	mkfifo orders
	: >answers
	# shellcheck disable=SC2086 # a command and its options
	env ${preload:+LD_PRELOAD="$preload"} $under ./"$1" steady $churned <orders >answers 2>crashed &
	started=$!
	exec 8>orders
	asked=0
	answered
	pid=$started
	if [ "$under" ]; then
		read -r pid _ <"/proc/$started/task/$started/children"
	fi
}

answered()
{
	asked=$((asked + 1))
	await has_answers || no_answer
	answer=$(tail -n 1 answers)
}

no_answer()
{
	echo "# no answer"
	kill -0 $started 2>/dev/null && return
	wait $started
	echo "# it has ended with status $?"
	sed 's/^/# | /' crashed
}

has_answers()
{
	[ "$(wc -l <answers)" -ge $asked ]
}

# order LETTER...: gives one order after the other; the last answer goes to $answer. A program that has ended
# reads none: that is said, and does not end this test by SIGPIPE.
order()
{
	for letter; do
		if (trap '' PIPE && printf %s "$letter" >&8) 2>/dev/null; then
			answered
		else
			no_answer
		fi
	done
}

finish()
{
	exec 8>&-
	wait $started
	echo "status $?" >out
	cat crashed >>out
	grep -q '^status 0$' out
	point $? "$1"
}

# ---- Recording ----

# record OPTION...: begins, and waits until the probes are there. It sets a duration because a guest
# may be slow: the default of a minute is not enough.
record()
{
	: >err
	./shstk record --heap --duration=1h -p $pid "$@" 2>>err &
	recorder=$!
	await grep -q 'from now on\|not permitted\|: process' err || cat err
}

stop()
{
	kill -TERM $recorder 2>/dev/null
	wait $recorder
	echo "status $?" >out
	cat err >>out
}

sum() # FILE...
{
	awk '{ sum += $NF } END { printf "%d\n", sum }' "$@"
}

# exact NAME FILE: the sum in the file and the number of blocks are what the program printed
exact()
{
	echo "program: $answer; profile: $(sum "$2")" >>out
	[ "$(sum "$2")" = "${answer% *}" ] && grep -q " in ${answer#* } blocks in use" out &&
		grep -q '^status 0$' out && ! grep -q 'missing\|truncated\|\[unknown' out "$2"
	point $? "$1"
}

churn='~'
functions='malloc calloc posix_memalign aligned_alloc realloc'

rounds() # PROGRAM ROUNDS
{
	program="$1${under:+ by $under}"
	begin "$1"
	[ -z "$under" ] || has_shadow_stacks
	order + '~'
	round=0
	while [ $round -lt "$2" ]; do
		round=$((round + 1))
		record --heap-show=inuse_space -o bytes.folded
		order s + $churn - + f $churn +
		stop
		exact "$program, round $round: what is in use is known to the byte" bytes.folded
		[ $round = "$2" ] || order + -
	done
	for function in $functions; do
		grep -q ";by_$function " bytes.folded || echo "no by_$function" >>out
	done
	! grep '^no by_' out
	point $? "$program: each function is named, and who called it"
	order '~' -
	[ "$answer" = '0 0' ]
	point $? "$program: it goes on without probes"
	finish "$program: it ends as ever"
}

has_shadow_stacks()
{
	grep '^VmFlags:.* ss' "/proc/$pid/smaps" >out
	point $? "$program: it has shadow stacks"
}

# The kernel has to put the address of its own code into the shadow stack too.
shadowed() # ROUNDS
{
	under='./shstk run -q'
	if $under ./steady steady </dev/null >out 2>&1; then
		rounds steady "$1"
	else
		skip "steady by $under" 'there are no shadow stacks here'
	fi
	under=
}

# preloaded LIBRARY: with an allocator that is not libc's
preloaded()
{
	name="$1: what is in use is known to the byte"
	preload=$(/sbin/ldconfig -p 2>/dev/null | awk -v name="$1" '$1 == name { print $NF; exit }')
	if [ -z "$preload" ]; then
		skip "$name" 'there is no such library'
		return
	fi
	begin steady
	order + '~'
	record --heap-show=inuse_space -o bytes.folded
	order s + '~' - + '~'
	stop
	exact "$name" bytes.folded
	finish "$1: it ends as ever"
	preload=
}

sampled()
{
	begin steady
	record --heap-sample=64 --heap-show=alloc_space -o bytes.folded
	order s + + +
	stop
	awk -v want="${answer% *}" '
		/;by_/ { sum += $NF }
		END { print "program: " want "; profile: " sum
		      exit !(sum > 0.8 * want && sum < 1.2 * want) }' bytes.folded >>out
	point $? 'of samples the sum is about right'
	record --heap-sample=64 --heap-show=inuse_space -o bytes.folded
	order + '~' -
	stop
	grep -q ' in 0 blocks in use' out
	point $? 'samples that were freed are not in use'
	finish 'sampled: it ends as ever'
}

snapshots()
{
	begin steady
	order + - # The first threads allocate memory that is never given back.
	rm -f grown*
	record --every=1h --heap-show=growth_space -o grown.folded
	order s +
	kill -HUP $recorder
	await has_grown
	first=$(ls grown-*.folded)
	before=${answer% *}
	[ "$(sum "$first")" = "$before" ]
	point $? 'the first snapshot has all'
	sleep 1 # The names of the files differ in the second.
	order + +
	stop
	rm -f "$first"
	[ "$(sum grown-*.folded)" = $((${answer% *} - before)) ]
	point $? 'the next one has what grew'
	finish 'snapshots: it ends as ever'
}

has_grown()
{
	ls grown-*.folded >/dev/null 2>&1
}

another_program()
{
	begin steady
	order + -
	record --heap-show=inuse_space -o bytes.folded
	order s +
	before=$answer
	order x
	wait $recorder
	echo "status $?" >out
	cat err >>out
	answer=$before
	exact 'recording ends where it executes another program' bytes.folded
	finish 'the other program ends as ever'
}

# Another process, which waits for an order that never comes, is recorded, too.
two_processes()
{
	mkfifo idle
	./steady steady <>idle >begun &
	other=$!
	await test -s begun
	begin steady
	record -p $other --heap-show=inuse_space -o bytes.folded
	order s + + -
	stop
	kill $other
	wait $other 2>/dev/null
	grep -q ' in 2 processes' out && grep -q ': peak of all processes .* s$' out
	point $? 'the peak of two processes is that of both together'
	finish 'two processes: it ends as ever'
}

# Stacks that were never used in parts: the callers lie behind these. Copies are small at first, until
# the recorder has seen that several are too short; on a busy machine that takes a while.
holes()
{
	[ -e holes ] || return
	./holes >ready &
	pid=$!
	await grep -q ready ready
	for seconds in 1 2 4 8 16; do
		./shstk record --heap -p $pid --duration=$seconds --heap-show=alloc_objects \
			-o holes.folded >out 2>&1
		cat holes.folded >>out
		grep -q ';outer;inner;allocate ' holes.folded && break
	done
	kill $pid
	wait $pid 2>/dev/null
	grep -q ';outer;inner;allocate ' holes.folded
	point $? 'stacks with pages that were never used are whole'
}

# A program that answers each order by seven blocks of 54321 bytes and one for a zero behind them.
python_program()
{
	cat >python-steady <<-'END'
		#!/usr/bin/python3 -S
		import os
		kept = []
		def inner():
		    kept.append(bytearray(54321))
		def outer():
		    for _ in range(7):
		        inner()
		os.write(1, b'\n')
		while os.read(0, 1):
		    outer()
		    os.write(1, b'\n')
	END
	chmod 755 python-steady
}

python()
{
	name="Python's functions are in the stacks of what they allocate"
	if [ ! -e shstk-probed.bpf.o ] || [ ! -e /usr/bin/python3 ]; then
		skip "$name" 'there is no Python, or no program that reads it'
		return
	fi
	python_program
	begin python-steady
	record --heap-show=alloc_space -o python.folded
	order s s
	stop
	cat python.folded >>out
	answer="$(grep ';outer;inner;' python.folded | sum) of $((14 * 54322)) bytes"
	echo "$answer" >>out
	[ "${answer%% *}" = $((14 * 54322)) ] && grep -q '^status 0$' out &&
		! grep -q "the others only the interpreter's own" out
	point $? "$name"
	finish 'Python: it ends as ever'
}

has_both_ends()
{
	grep -q ';main;.*;\[recursion of 1 call\];by_recursion;.*by_malloc ' deep.folded &&
		grep -q 'stacks are deeper than 1024 frames' out
}

# The first copies are too small for these stacks. On a busy machine it takes a while until the recorder
# has seen that.
recursion()
{
	begin steady
	for number in 10 20 40 80 160; do
		record --heap-show=alloc_objects -o deep.folded
		for _ in $(seq $number); do
			order r -
			sleep 0.2
		done
		stop
		cat deep.folded >>out
		has_both_ends && break
	done
	has_both_ends
	point $? 'stacks of a deep recursion have both ends'
	finish 'deep: it ends as ever'
}

# Whether the program of 32 bits has begun, or failed to.
narrow_began()
{
	[ ! -e "/proc/$narrow" ] || grep -q narrow "/proc/$narrow/comm"
}

narrow()
{
	[ -e narrow ] || return
	./narrow 2>/dev/null &
	narrow=$!
	await narrow_began
	if [ -e "/proc/$narrow" ]; then
		t '32-bit code' 125 'runs code of another kind of CPU' \
			./shstk record --heap -p $narrow -o no.folded
		kill $narrow
	else
		skip '32-bit code' 'this kernel runs no such programs'
	fi
}

# The filter would kill the process if it were shown the calls of the probes.
filtered()
{
	begin steady
	order c + - # The first threads allocate memory that is never given back.
	case "$(uname -m) $(uname -r)" in
	'x86_64 6.11'* | 'x86_64 6.12'* | 'x86_64 6.13'*)
		t 'a process with a filter of system calls' 125 \
			'has a filter of system calls \(seccomp\), and on Linux' \
			./shstk record --heap -p $pid -o no.folded
		;;
	*)
		record --heap-show=inuse_space -o bytes.folded
		order s + '~'
		stop
		exact 'a process with a filter of system calls: its bytes are known' bytes.folded
		;;
	esac
	order + -
	finish 'with a filter: it ends as ever'
}

refusals()
{
	begin steady
	t 'a process that is not there' 125 'process 4999999: No such process' \
		./shstk record --heap -p 4999999 -o no.folded
	t 'mmap()' 2 'heap-mmap does not go with --pid' \
		./shstk record --heap-mmap -p $pid -o no.folded
	if ./nobody ./shstk --version >/dev/null 2>&1; then
		t 'an ordinary user' 125 'not permitted: be root, or have CAP_BPF and CAP_PERFMON' \
			./nobody ./shstk record --heap -p $pid -o made/no.folded
	else
		skip 'an ordinary user' 'another user may not run what was built'
	fi
	order t
	thread=$(ls "/proc/$pid/task" | grep -v "^$pid\$")
	t "a thread's number" 125 'that is a thread, not a process' \
		./shstk record --heap -p "$thread" -o no.folded
	finish 'refused: it ends as ever'
	narrow
	begin steady-stripped
	t 'an allocator without names' 125 'no malloc\(\) and free\(\) are found by their names' \
		./shstk record --heap -p $pid -o no.folded
	finish 'stripped: it ends as ever'
	[ ! -e no.folded ] && [ ! -e made/no.folded ]
	point $? 'what is refused leaves no file'
}

all()
{
	rounds steady $rounds
	rounds steady-static 1
	shadowed 1
	for library in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
		preloaded $library
	done
	sampled
	snapshots
	another_program
	two_processes
	holes
	python
	recursion
	refusals
	filtered
}

why_not()
{
	[ -e shstk-heap.bpf.o ] || echo 'there was no clang to make the BPF programs'
	[ -e /sys/bus/event_source/devices/uprobe/type ] || echo 'the kernel has no uprobes'
	./shstk record --heap -p $$ --duration=1ms -q -o bytes.folded 2>&1 |
		grep 'not permitted\|is needed\|BPF'
}

echo TAP version 13
reason=$(why_not | head -n 1)
if [ "$reason" ]; then
	echo "1..0 # SKIP $reason"
	exit 4
fi
case "$only" in
shadow)
	# With that many allocations the ring buffer is full before the recorder can run.
	churn= functions="${functions% *}"
	shadowed 1
	;;
refusals)
	refusals
	filtered
	;;
brief)
	rounds steady 1
	python
	refusals
	filtered
	;;
*) all ;;
esac
echo "1..$count"
exit $failed
