#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest: tests what an ordinary user can record under kernel.perf_event_paranoid 3
# (Debian's default), 2 and 1, and with shstk broker under 3 and 2. What is not permitted is refused
# with a message; what is recorded has true stacks. The arguments are only there so that the files
# are copied into the guest.

mkdir -p /t/paranoid/made && cd /t/paranoid || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh
chmod 755 / /t /t/paranoid
chmod 777 made
record='./nobody ./shstk record -F 499 -o made/out.folded'

# whole NAME COMM FUNCTION...: checks that all time of the program is in stacks that have the
# functions one after the other, from the first frame on, except what is before and after main().
whole()
{
	name=$1 comm=$2
	shift 2
	if awk -v comm="$comm" -v want="$*" '
		BEGIN { gsub(" ", ";([^;]*;)*", want) }
		index($0, comm ";") != 1 || !/;main;/ && !/\[truncated\]/ { next }
		{ all += $NF }
		$0 ~ "^" comm ";(_start|[^;]*clone[^;]*);([^;]*;)*" want { good += $NF }
		END { printf "%.3f of %.3f s\n", good / 1e9, all / 1e9
		      exit !(all > 0 && good > 0.97 * all) }' made/out.folded >share; then
		say ok "$name: $(cat share)"
	else
		say 'not ok' "$name: $(cat share)"
		cut -c 1-300 made/out.folded | sed 's/^/# /' | head -n 20
	fi
	rm -f made/out.folded
}

refused() # LEVEL NAME WHY OPTION...
{
	level=$1 name=$2 why=$3
	shift 3
	t "$level: $name is refused" 125 "not permitted.*kernel.perf_event_paranoid is.*$level.*$why" \
		$record "$@"
	[ ! -e made/out.folded ] || say 'not ok' "$level: $name leaves a file"
}

# Starts what all tests need: a process of the user and one of root.
./nobody ./target forever >ready 2>&1 &
own=$!
./target forever >other 2>&1 &
roots=$!
await_line '^ready$' ready || cat ready
await_line '^ready$' other || cat other

started() # LEVEL HOW
{
	t "$1: a command" 0 "$2" $record -- ./target burn 0.5
	whole "$1: its stacks" target main do_burn
}

running() # LEVEL HOW
{
	t "$1: a running process" 0 "$2" enough 100 1 $record -p $own
	whole "$1: its stacks" target main do_forever
}

# Up to level 2 the agent has events of its own; above, it depends on the kernel's tick.
limited() # LEVEL WANTED
{
	most='at most [0-9]* samples a second of each thread, not 999: the kernel.s tick'
	t "$1: the rate" 0 'sampled in process' ./nobody ./shstk record -F 999 \
		--via=agent -o made/out.pb -- ./target burn 0.5
	cp out said
	[ "$(grep -c "$most" said)" = "$2" ]
	point $? "$1: what limits it is said at the start: $2 times"
	[ "$(grep -ac "$most" made/out.pb)" = "$2" ]
	point $? "$1: and in the profile"
	rm -f made/out.pb
}

levels()
{
	agent='sampling in process: '
	copies='stacks copied and unwound here .shstk_perf is not loaded.$'

	echo 3 >/proc/sys/kernel/perf_event_paranoid
	started 3 "$agent"
	limited 3 1
	refused 3 'a running process' 'be root' -p $own
	refused 3 'time off the CPU of what runs' 'be root' --off-cpu -p $own

	echo 2 >/proc/sys/kernel/perf_event_paranoid
	started 2 'user mode only .kernel.perf_event_paranoid'
	limited 2 0
	running 2 'user mode only .kernel.perf_event_paranoid'
	refused 2 'time off the CPU' 'or set it to 1' --off-cpu -p $own

	echo 1 >/proc/sys/kernel/perf_event_paranoid
	started 1 "$copies"
	running 1 "$copies"
	t '1: time off the CPU' 0 's of off-CPU time' $record --off-cpu -- ./target sleeper 1
	rm -f made/out.folded

	for level in 3 2 1; do
		echo $level >/proc/sys/kernel/perf_event_paranoid
		refused $level 'the whole system' 'set it to 0' -a --duration=1
		refused $level "a process of root's" 'be root.*the right to trace' -p $roots
		grep -q "as process $roots is another user's" out
		point $? "$level: that the level would not help is said"
		t "$level: root may" 0 "$copies" enough 100 1 ./shstk record -F 499 \
			-o made/out.folded -p $roots
		whole "$level: its stacks" target main do_forever
	done
}

uptime_s()
{
	cut -d ' ' -f 1 /proc/uptime
}

# Tests what the broker gives and what it refuses, at a level that forbids perf events to the user.
by_broker() # LEVEL
{
	opened='perf events that the broker opened, stacks copied'

	echo "$1" >/proc/sys/kernel/perf_event_paranoid
	t "broker, $1: where it waits" 0 "$opened" $record --off-cpu -- ./target sleeper 1
	grep -q 'sleeping_thread.* [0-9]\{9,\}$' made/out.folded
	point $? "broker, $1: for as long as it slept"
	before=$(uptime_s)
	t "broker, $1: a command, also where it waits" 0 "$opened" $record --wall -- \
		./target sleeper 1
	awk -v most="$(uptime_s) $before" '
		/;main;do_sleeper;burn/ { on += $NF } /;sleeping_thread;/ { off += $NF }
		END { split(most, at)
		      print "# " on / 1e9 " s on, " off / 1e9 " s off, of " at[1] - at[2] " s"
		      exit !(on > 0 && off > 0.95e9 && off / 1e9 < at[1] - at[2] + 0.02) }' \
		made/out.folded
	point $? "broker, $1: for true times"
	grep -q '0xffff' made/out.folded
	[ $? = 1 ]
	point $? "broker, $1: without addresses of the kernel's"
	rm -f made/out.folded
	refused "$1" "by the broker, a process of root's" 'be root.*the right to trace' -p $roots
}

broker()
{
	./shstk broker >said.broker 2>&1 &
	broker=$!
	await test -S /run/shstk/broker || cat said.broker
	by_broker 3
	t 'broker, 3: a command' 0 "$opened.*user mode only" $record -- ./target burn 0.5
	whole 'broker, 3: its stacks' target main do_burn
	t 'broker, 3: a running process' 0 "$opened" enough 100 1 $record -p $own
	whole 'broker, 3: its stacks' target main do_forever
	by_broker 2
	t 'broker, 2: what the kernel permits, it opens' 0 'by perf events, stacks' $record -- \
		./target burn 0.5
	rm -f made/out.folded
	echo 3 >/proc/sys/kernel/perf_event_paranoid
	yama
	echo 1 >/proc/sys/fs/suid_dumpable
	t 'broker: nothing where set-user-ID programs may be dumped' 0 "$agent" $record -- \
		./target burn 0.1
	echo 0 >/proc/sys/fs/suid_dumpable
	kill $broker
	wait $broker
	point $? 'broker: ended by SIGTERM'
	started 3 "$agent"
}

# Tests machines where a process may trace only what it has started (Yama's level 1), or nothing.
yama()
{
	scope=/proc/sys/kernel/yama/ptrace_scope

	if [ ! -e $scope ]; then
		skip 'broker: Yama' 'this kernel has none'
		return
	fi
	echo 1 >$scope
	refused 3 'by the broker, what the recorder did not start' 'may not trace' -p $own
	t 'broker: Yama 1: a command' 0 "$opened" $record -- ./target burn 0.3
	rm -f made/out.folded
	echo 2 >$scope
	t 'broker: Yama 2: the agent' 0 "$agent" $record -- ./target burn 0.1
	rm -f made/out.folded
}

echo TAP version 13
levels
broker
kill $own $roots
echo "1..$count"
