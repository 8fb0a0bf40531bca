#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the test runner that need no guest: each way in which a program can fail has to be
# reported as what it is, and a guest whose parts are missing is skipped with the reason.

cd "$(dirname "$0")/../.." || exit 1
. selftests/guest/check.sh
work=$(mktemp -d "$PWD/build/count-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# program NAME: makes a test program of the shell script on standard input
program()
{
	{ echo '#!/bin/sh'; cat; } >"$work/$1"
	chmod +x "$work/$1"
}

# count LIMIT PROGRAM...: runs the programs; output and exit code go to files
count()
{
	limit=$1
	shift
	(cd "$work" && "$here/selftests/run" --logs "$work/logs" --timeout "$limit" "$@" \
		>"$work/out" 2>&1
	echo "exit $?" >>"$work/out")
}

here=$PWD
echo TAP version 13

program good <<'END'
echo TAP version 13
echo 1..3
echo "ok 1 first"
echo "ok 2 second # SKIP no such hardware"
echo "ok 3 - third"
END
count 200 ./good
expect "points and skips are counted" says "$work/out" \
	'^2 passed, 0 failed, 1 skipped$' 'skipped second: no such hardware' '^exit 0$'

program broken <<'END'
echo 1..3
echo "# all is well"
echo "ok 1 holds"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "# said before: $i"; done
echo "not ok 2 one and one is three"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "# said after: $i"; done
echo "ok 3 holds too"
echo "# all is well"
exit 1
END
count 200 ./good ./broken
expect "a broken expectation fails the run and is named" says "$work/out" \
	'^4 passed, 1 failed, 1 skipped$' 'not ok one and one is three' '^exit 1$'
expect "with what was said around it" says "$work/out" \
	'^       | # said before: 3$' '^       | # said before: 12$' \
	'^       | # said after: 1$' '^       | # said after: 10$'
expect "but not without end" lacks "$work/out" 'said before: 2$' 'said after: 11' 'all is well'

program crash <<'END'
echo 1..2
echo "ok 1 before"
echo "its last words"
kill -SEGV $$
END
count 200 ./crash
expect "a crash is a failure and names the signal" says "$work/out" \
	'killed by signal 11 (SIGSEGV)' '^       | its last words$' '^1 passed, 1 failed, 0 skipped$' '^exit 1$'

# Every test may have passed before. python3 starts the run with the signal blocked.
program late <<'END'
echo 1..1
echo "ok 1 before"
exec python3 -c 'import os, signal
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)'
END
block='import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.execv(sys.argv[1], sys.argv[1:])'
(cd "$work" && python3 -c "$block" "$here/selftests/run" --logs "$work/logs" ./late >"$work/out" 2>&1)
expect "nor does it pass if the run has the signal blocked" says "$work/out" \
	'exit code 138 although no point failed' '^1 passed, 1 failed, 0 skipped$'

program hang <<'END'
echo 1..2
echo "ok 1 before"
sleep 1000 &
echo $! >left
wait
END
# The limit has to be long enough for the program to reach its wait, also on a busy machine.
for limit in 4 8 16 32 64; do
	count $limit ./hang
	[ ! -s "$work/left" ] || break
done
expect "a hang is a failure within its limit" says "$work/out" \
	"hung: nothing printed for $limit s" '^1 passed, 1 failed, 0 skipped$' '^exit 1$'
expect "nothing of it is left" gone "$(cat "$work/left")"

# The loop is as above: a stopped keeper has begun the program.
program stop <<'END'
echo 1..1
sleep 1000 &
echo $! >stopped
kill -STOP $PPID
wait
END
for limit in 4 8 16 32 64; do
	count $limit ./stop
	[ ! -s "$work/stopped" ] || break
done
expect "a program that stops what waits for it is ended, too" says "$work/out" \
	"hung: nothing printed for $limit s" '^exit 1$'
expect "and nothing of it is left" gone "$(cat "$work/stopped")"

program slow <<'END'
echo 1..3
for i in 1 2 3; do
	sleep "$(cat pause)"
	echo "ok $i done"
done
END
# Two lines may lie further apart on a busy machine.
for limit in 4 8 16 32 64; do
	echo $((limit / 2)) >"$work/pause"
	count $limit ./slow
	says "$work/out" '^exit 1$' || break
done
expect "a program that goes on is not hung" says "$work/out" '^3 passed, 0 failed, 0 skipped$'

program talk <<'END'
echo 1..2
while :; do
	echo "# and so on"
	sleep 0.2
done
END
for limit in 1 2 4 8 16 32; do
	count $limit ./talk
	says "$work/out" "nothing printed" || break
done
expect "it may not go on for ever" says "$work/out" "hung: no end within $((4 * limit)) s" \
	'^0 passed, 1 failed, 0 skipped$' '^exit 1$'

cp "$work/talk" "$work/more"
for limit in 4 8 16 32 64; do
	CHECK_UNTIL=$(($(date +%s) + limit))
	export CHECK_UNTIL
	count 200 ./talk ./more ./slow
	unset CHECK_UNTIL
	[ "$(grep -c 'hung: no end when' "$work/out")" = 2 ] && break
done
expect "a whole run ends in time, and says what has not ended" says "$work/out" \
	'hung: no end when the whole run had to end' 'not ok slow # not run: ' \
	'^0 passed, 3 failed, 0 skipped$' '^exit 1$'

program short <<'END'
echo 1..3
echo "ok 1 only"
END
count 200 ./short
expect "a short plan is a failure" says "$work/out" \
	'planned 3 tests, ran 1' '^1 passed, 1 failed, 0 skipped$' '^exit 1$'

program silent <<'END'
exit 0
END
count 200 ./silent
expect "a program that prints nothing is a failure" says "$work/out" \
	'printed no test point' '^0 passed, 1 failed, 0 skipped$' '^exit 1$'

program liar <<'END'
echo 1..1
echo "ok 1 fine"
exit 3
END
count 200 ./liar
expect "an exit code without a failed point is a failure" says "$work/out" \
	'exit code 3 although no point failed' '^exit 1$'

program skip <<'END'
echo "1..0 # SKIP needs another machine"
exit 4
END
count 200 ./good ./skip
expect "a skipped program counts as one skip with its reason" says "$work/out" \
	'needs another machine' '^2 passed, 0 failed, 2 skipped$' '^exit 0$'

program nested <<'END'
echo 1..2
echo "  1..2"
echo "  ok 1 inner one"
echo "  ok 2 inner two"
echo "ok 1 outer"
echo "ok 2 flat"
END
count 200 ./nested
expect "nested points are counted once" says "$work/out" '^3 passed, 0 failed, 0 skipped$'

count 200 ./absent
expect "a missing program is a failure" says "$work/out" \
	'cannot be run: No such file' '^exit 1$'

# A script that waits for a line must not see half of it.
sees()
{
	sh -c '. selftests/loader/cases.sh && has_line "$@"' sh "$@"
}

sees_not()
{
	! sees "$@"
}

printf 'ready 12' >"$work/half"
expect "a line that is not whole is none" sees_not '^ready [0-9]+$' "$work/half"
echo 3 >>"$work/half"
expect "when it is whole it is one" sees '^ready 123$' "$work/half"

program long <<'END'
echo $$ >pid
echo 1..1
sleep 1000
END
(cd "$work" && exec "$here/selftests/run" --logs "$work/logs" ./long >"$work/out" 2>&1) &
runner=$!
for _ in $(seq 400); do
	[ -s "$work/pid" ] && break
	sleep 0.5
done
kill -TERM $runner
wait $runner
expect "an interrupted run says so" says "$work/out" '^interrupted$'
expect "and leaves no test behind" gone "$(cat "$work/pid")"

# Starts a process in a session of its own, whose parent ends at once. The process writes its id
# to the file "left".
cat >"$work/leave.py" <<'END'
import os, signal
if not os.fork():
    os.setsid()
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open('begun', 'w') as file:
            file.write(f'{os.getpid()}\n')
        os.rename('begun', 'left')
        signal.pause()
    os._exit(0)
os.wait()
END

# ends PID: the process has ended, or does so soon
ends()
{
	for _ in $(seq 400); do
		! gone "$1" || return 0
		sleep 0.5
	done
	return 1
}

program leave <<'END'
python3 leave.py >/dev/null 2>&1
until [ -s left ]; do sleep 0.1; done
echo 1..1
echo "ok 1 done"
END
rm -f "$work/left"
count 200 ./leave
expect "a program that ends leaves nothing behind, not in other sessions either" \
	gone "$(cat "$work/left")"
expect "and is counted as ever" says "$work/out" '^1 passed, 0 failed, 0 skipped$' '^exit 0$'

program stay <<'END'
python3 leave.py >/dev/null 2>&1
sleep 1000
END
for signal in TERM KILL; do
	rm -f "$work/left"
	(cd "$work" && exec "$here/selftests/run" --logs "$work/logs" ./stay >"$work/out" 2>&1) &
	runner=$!
	until [ -s "$work/left" ]; do sleep 0.1; done
	kill -$signal $runner
	wait $runner
	expect "nor does a run that SIG$signal ends" ends "$(cat "$work/left")"
done

# ---- Processes of another user ----

# Makes $work/become, which makes another user of an ordinary one, and $work/keep, which waits for ever
# for what does not die when it is killed. They have to be where an ordinary user may run them.
make_keeper()
{
	[ "$(id -u)" = 0 ] || return 1
	chmod 755 "$work"
	cp "$(command -v setpriv)" "$work/become"
	chmod 4755 "$work/become"
	sed 's/^MOST = 20 .*/MOST = 10 ** 6/' selftests/keep >"$work/keep"
	mkfifo "$work/lifeline"
	: >"$work/other"
	chmod 666 "$work/other"
	as_nobody "$work/become" --reuid=0 true 2>/dev/null
}

as_nobody()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# Keeps a program that leaves a process of root's behind and ends with 3. Ends with its status.
keep_other()
{
	as_nobody timeout -s KILL 400 python3 "$work/keep" 9 sh -c '
		"$0/become" --reuid=0 sleep 1000 &
		echo $! >"$0/other"
		until grep -q "^Uid:.0.0" /proc/$!/status; do sleep 0.1; done
		exit 3' "$work" 9<>"$work/lifeline"
	[ $? = 3 ]
}

if make_keeper; then
	expect "a program's process that may not be killed is not waited for" keep_other
	kill -KILL "$(cat "$work/other")"
else
	count=$((count + 1))
	echo "ok $count a program's process that may not be killed # SKIP no user can become another here"
fi

# ---- Guests ----

SHSTK_CACHE=$work/cache SHSTK_MIRROR=http://127.0.0.1:1 \
	selftests/guest/run arm64-7.2 --out "$work/o" ./none >"$work/out" 2>&1
echo "exit $?" >>"$work/out"
expect "an empty cache without network skips and says which part" says "$work/out" \
	'^1\.\.0 # SKIP arm64-7.2: cannot set up trixie: ' '^exit 4$'

SHSTK_CACHE=$work/cache SHSTK_MIRROR=http://127.0.0.1:1 selftests/guest/setup otlp >"$work/out" 2>&1
echo "exit $?" >>"$work/out"
expect "the decoder needs no other part and no root, only the archive" says "$work/out" \
	'cannot set up otlp: no answer from http://127.0.0.1:1' '^exit 4$'

# apt knows no package: its lists, which it does not fetch, are empty.
mkdir -p "$work/mirror/debian/dists/trixie" "$work/no-lists"
: >"$work/mirror/debian/dists/trixie/Release"
cat >"$work/no-lists/apt-get" <<'END'
#!/bin/sh
case " $* " in *' update '*) exit 0;; esac
PATH=${PATH#*:} exec apt-get "$@"
END
chmod 755 "$work/no-lists/apt-get"
PATH=$work/no-lists:$PATH SHSTK_CACHE=$work/empty SHSTK_MIRROR=file://$work/mirror \
	selftests/guest/setup otlp python >"$work/out" 2>&1
echo "exit $?" >>"$work/out"
expect "a package that left the archive is named, and the other parts are tried" says "$work/out" \
	'cannot set up otlp: .*Unable to locate package python3-' \
	'cannot set up python: .*Unable to locate package ' '^exit 4$'

# Every part is marked as being there, but the emulator is missing.
mkdir -p "$work/cache/state" "$work/cache/kernels/arm64-7.2"
selftests/guest/setup --stamps | while read -r part recipe; do
	echo "$recipe" >"$work/cache/state/$part"
done
cp /bin/true "$work/cache/kernels/arm64-7.2/busybox"
SHSTK_CACHE=$work/cache selftests/guest/run arm64-7.2 --out "$work/o" sh >"$work/out" 2>&1
echo "exit $?" >>"$work/out"
expect "a missing emulator skips and is named" says "$work/out" \
	'^1\.\.0 # SKIP arm64-7.2: no emulator: .*qemu-system-aarch64 is missing' '^exit 4$'

selftests/guest/run vax-1 true >"$work/out" 2>&1
echo "exit $?" >>"$work/out"
expect "an unknown guest is refused" says "$work/out" 'vax-1' '^exit 2$'

finish
