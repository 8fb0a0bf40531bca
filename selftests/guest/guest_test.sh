#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the guest runner, most of them in an arm64 guest: a failed expectation, a crash, a hang,
# a warning and a panic of the kernel are reported as what they are, the tests behind them still
# run, and no emulator is left behind. It also tests the other ways to use a guest: from a saved
# state, and by hand. The argument is a module that warns when it is loaded.

warn=${1-}
[ -n "$warn" ] || warn=${B-build}/guest/warn/warn.ko
cd "$(dirname "$0")/../.." || exit 1
. selftests/guest/check.sh
work=$(mktemp -d build/guest-test.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
echo TAP version 13

which=arm64-7.2
guest()
{
	selftests/guest/run "$which" --out "$work/out" "$@" >"$work/log" 2>&1
	code=$?
	echo "exit $code" >>"$work/log"
	sed 's/^/# | /' "$work/log"
	if [ $code = 4 ]; then
		sed -n 's/^1\.\.0 # SKIP /1..0 # SKIP /p' "$work/log"
		exit 4
	fi
}

cat >"$work/good.sh" <<'END'
echo 1..2
echo "ok 1 runs"
echo "ok 2 second # SKIP never here"
END
cat >"$work/broken.sh" <<'END'
echo 1..1
echo "# said before"
echo "not ok 1 one and one is three"
echo "# said after"
exit 1
END
cat >"$work/crash.sh" <<'END'
echo 1..2
echo "ok 1 before"
kill -SEGV $$
END
cat >"$work/hang.sh" <<'END'
echo 1..2
echo "ok 1 before"
while :; do sleep 1; done
END
cat >"$work/slow.sh" <<'END'
echo 1..4
for which in first second third fourth; do sleep 4; echo "ok $((n += 1)) $which"; done
END
cat >"$work/panic.sh" <<'END'
echo 1..2
echo "ok 1 before"
echo c >/proc/sysrq-trigger
END
cat >"$work/forge.sh" <<'END'
echo "E 1 exit 0 0"
echo "bye"
echo 1..1
echo "not ok 1 still counted"
END

guest "sh $work/good.sh"
expect "a good test passes" says "$work/log" \
	'^ok 1 good.sh: runs$' '^ok 2 good.sh: second # SKIP never here$' '^1\.\.2$' '^exit 0$'
expect "results.tap holds the same" says "$work/out/results.tap" '^ok 1 good.sh: runs$'
expect "the wall time is printed" says "$work/log" '[0-9.]* s wall time, [0-9.]* s CPU, 1 boot$'

# The kernel goes on after it has left out files for which there is no room.
truncate -s 300M "$work/large"
cat >"$work/whole.sh" <<'END'
echo 1..1
[ "$(stat -c %s /root/large)" = 314572800 ] || printf 'not '
echo "ok 1 all is there"
END
guest --memory 256 --add "$work/large:/root/large" "sh $work/good.sh"
expect "files that do not fit are an error" says "$work/log" \
	'cannot unpack all files in the guest (No space left on device): see --memory' '^exit 1$'
guest --add "$work/large:/root/large" "sh $work/whole.sh"
expect "without a size, the guest has memory for all" says "$work/log" '^ok 1 .*all is there$' '^exit 0$'
rm "$work/large"

guest --timeout 12 "sh $work/broken.sh" "sh $work/crash.sh" "sh $work/hang.sh" \
	"sh $work/slow.sh" "sh $work/forge.sh" "$warn" "sh $work/panic.sh" "sh $work/good.sh"
expect "a broken expectation fails and is named" says "$work/log" \
	'^not ok [0-9]* broken.sh: one and one is three$' '^exit 1$'
expect "with what it said around it" says "$work/log" \
	'^# broken.sh| # said before$' '^# broken.sh| # said after$'
expect "a crash names the signal" says "$work/log" \
	'^not ok [0-9]* crash.sh # killed by signal 11 (SIGSEGV)$'
expect "a hang is ended by its limit" says "$work/log" \
	'^not ok [0-9]* hang.sh # hung: no end within 12 s$'
expect "a step is slow, not hung, while results come" says "$work/log" \
	'^ok [0-9]* slow.sh: fourth$'
expect "a test can not forge the end of its run" says "$work/log" \
	'^not ok [0-9]* forge.sh: still counted$'
expect "a kernel warning fails the step it came up in" says "$work/log" \
	'^not ok [0-9]* load warn.ko: the kernel stays well # WARNING: .*warn_init'
expect "the warning is in the console log" says "$work/out/console.log" 'a warning on purpose'
expect "a panic fails the test that was running" says "$work/log" \
	'^not ok [0-9]* panic.sh # the guest died: .*Kernel panic'
expect "the tests after it run in another boot" says "$work/log" \
	'^ok [0-9]* good.sh: runs$' ' 2 boots$'

# The runner's only child is the emulator.
selftests/guest/run arm64-7.2 --out "$work/out" "sh $work/hang.sh" >"$work/log" 2>&1 &
runner=$!
emulator=
for _ in $(seq 1500); do
	emulator=$(cat /proc/$runner/task/$runner/children 2>/dev/null | tr -d ' ')
	[ -n "$emulator" ] && grep -q qemu-system "/proc/$emulator/cmdline" 2>/dev/null && break
	emulator=
	sleep 0.2
done
expect "the emulator is a child of the runner" test -n "$emulator"
kill -TERM $runner
wait $runner
expect "an interrupted run bails out" says "$work/log" '^Bail out! interrupted$'
expect "and leaves no emulator" gone "$emulator"

guest --saved "sh $work/good.sh"
expect "a saved guest runs a test" says "$work/log" '^ok 1 good.sh: runs$' '^exit 0$'

# In this system /bin is a link.
cat >"$work/root.sh" <<'END'
echo 1..1
[ "$(/usr/bin/own)" = own ] && [ -L /bin ] || printf 'not '
echo "ok 1 a program of the system runs"
END
mkdir -p "$work/root/usr/bin" "$work/root/etc"
ln -s usr/bin "$work/root/bin"
printf '#!/bin/sh\necho own\n' >"$work/root/usr/bin/own"
chmod +x "$work/root/usr/bin/own"
guest --root "$work/root" "sh $work/root.sh"
expect "a whole system runs in a guest" says "$work/log" '^ok 1 .*system runs$' '^exit 0$'
guest --root root-nothing "sh $work/good.sh"
expect "one that is not there is named" says "$work/log" '^run: root-nothing: no such directory' '^exit 2$'

# This guest has CPUs, but no shadow stacks.
cat >"$work/cpus.sh" <<'END'
echo 1..2
[ "$(grep -c ^processor /proc/cpuinfo)" = 2 ] || printf 'not '
echo "ok 1 two CPUs"
! grep -q user_shstk /proc/cpuinfo || printf 'not '
echo "ok 2 no shadow stacks"
END
which=x86-qemu-7.2
guest --cpus 2 --stops 0.5 "sh $work/cpus.sh"
expect "an x86 guest in QEMU has two CPUs, also if it is stopped" says "$work/log" '^ok 1 .*two CPUs$' '^exit 0$'
guest --icount "sh $work/good.sh"
expect "or one that counts instructions" says "$work/log" '^ok 1 good.sh: runs$' '^exit 0$'
guest --saved "sh $work/good.sh"
expect "or is saved" says "$work/log" '^ok 1 good.sh: runs$' '^exit 0$'
which=x86-7.2
guest --cpus 2 "sh $work/good.sh"
expect "Bochs has one" says "$work/log" 'only for QEMU guests' '^exit 2$'

mkfifo "$work/typed"
timeout 600 selftests/guest/shell arm64 <"$work/typed" >"$work/log" 2>&1 &
shell=$!
exec 3>"$work/typed"
for _ in $(seq 1500); do
	grep -q '/t # ' "$work/log" && break
	sleep 0.2
done
# If this were typed before the shell waits for it, it would be lost.
echo 'echo $((6 * 7)); exit' >&3
exec 3>&-
wait $shell
expect "exit ends a shell in a guest" test $? = 0
expect "what was typed there was done" says "$work/log" '^42'

finish
