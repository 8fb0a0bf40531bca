# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# cases.sh - code that test scripts share: test points, and the scripts that Debian's programs run.

export LC_ALL=C
[ "$PWD" != /t ] || export HOME=/t
count=0
failed=0

say() # OK NAME
{
	count=$((count + 1))
	[ "$1" = ok ] || failed=1
	echo "$1 $count $2"
}

point() # STATUS NAME: 0 is good, else the file "out" says more
{
	if [ "$1" = 0 ]; then
		say ok "$2"
	else
		say 'not ok' "$2"
		sed 's/^/# | /' out | tail -n 30
	fi
}

# t NAME STATUS PATTERN COMMAND...: the command must end with STATUS and print a line that matches
# PATTERN, and no line that starts with "not ok".
t()
{
	name=$1 status=$2 pattern=$3
	shift 3
	start=$(date +%s)
	"$@" >out 2>&1
	got=$?
	seconds=$(($(date +%s) - start))
	[ $seconds -lt 2 ] || echo "# $seconds s by the guest's clock:"
	if [ $got = "$status" ] && grep -qE -e "$pattern" out &&
	   ! grep -q '^not ok' out; then
		say ok "$name"
	else
		say 'not ok' "$name"
		echo "# status $got, wanted $status and /$pattern/"
		sed 's/^/# | /' out | tail -n 30
	fi
}

has() # NAME PATTERN...: the file "out" must have a line for each pattern
{
	name=$1
	shift
	for regex; do
		if ! grep -qE -e "$regex" out; then
			say 'not ok' "$name"
			echo "# nothing matches /$regex/"
			sed 's/^/# | /' out
			return
		fi
	done
	say ok "$name"
}

skip() # NAME WHY
{
	count=$((count + 1))
	echo "ok $count $1 # SKIP $2"
}

# await COMMAND...: wait until the command succeeds. A guest may be slow, so it gives up only when
# success cannot come any more.
await()
{
	tries=1200
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.2
	done
}

# await_settled FILE: wait until the file has not changed for three seconds.
await_settled()
{
	same=0 said=
	while [ $same -lt 3 ]; do
		sleep 1
		says=$(cat "$1")
		if [ "$says" = "$said" ]; then same=$((same + 1)); else same=0; fi
		said=$says
	done
}

# has_line PATTERN FILE: whether a complete line matches. The last line may be half written.
has_line()
{
	head -n "$(wc -l <"$2")" "$2" | grep -qE -e "$1"
}

# await_line PATTERN FILE: wait until a complete line matches.
await_line()
{
	await has_line "$@"
}

# enough SAMPLES SECONDS COMMAND...: records for so long, and for longer until there are so many samples: a
# machine that stands still meanwhile takes none.
enough()
{
	least=$1 seconds_least=$2
	shift 2
	for times in 1 2 4 8 16; do
		"$@" --duration=$((times * seconds_least)) >taken 2>&1
		ended=$?
		samples=$(sed -n 's/^shstk record: \([0-9]*\) samples, .*/\1/p' taken)
		[ $ended = 0 ] && [ "${samples:-0}" -lt "$least" ] || break
	done
	cat taken
	return $ended
}

# is_refused FILE: whether the kernel's verifier refused a BPF program, as the file says: no permission
# is missing then. A kernel may be locked down so that no program reads its memory, and one that is built
# without such programs says "Invalid argument".
is_refused()
{
	grep 'BPF program load failed' "$1" | grep -qv 'load failed: Invalid argument' &&
		! grep -qs '\[confidentiality\]' /sys/kernel/security/lockdown
}

# begin_walked COMMAND...: begins the output of a script that needs the BPF walk, or ends the script: as
# skipped where COMMAND says that it is not permitted, as failed where the verifier refuses the program.
begin_walked()
{
	echo TAP version 13
	"$@" >out 2>&1 && return
	if is_refused out; then
		point 1 "the program is loaded"
		echo "1..$count"
		exit 1
	fi
	echo "1..0 # SKIP $(tail -n 1 out)"
	exit 4
}

bash_script='
	f() { return 3; }
	f; a=$?
	(exit 4); b=$?
	trap "t=trapped" USR1; kill -USR1 $$
	g() { if [ $1 -gt 0 ]; then g $(($1 - 1)); else return 7; fi; }
	g 20; r=$?; echo f$a $b $(echo sub | cat) $t $r'

sqlite_script='create table t(a); with recursive c(x) as (select 1 union all select x+1 from c where x<100) insert into t select x from c; select sum(a) from t;'

perl_script='
	sub f { my $n = shift; return $n ? 1 + f($n - 1) : 0 }
	eval { die "oops\n" }; my $e = $@;
	$SIG{ALRM} = sub { die "alarm\n" };
	eval { alarm 1; select(undef, undef, undef, 10); }; my $a = $@;
	my $s = `echo sub`; my $l = join(",", sort { $a <=> $b } 3, 1, 2);
	my $r = eval { require NoSuch; 1 } ? 0 : 1;
	chomp($e, $a, $s); print f(100), " $e $a 1,2,3 $s $r\n"'

python_script='
import sys, subprocess, threading
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
try: raise ValueError("caught")
except ValueError as e: c = str(e)
try: import nosuch
except ImportError: pass
got = []
t = [threading.Thread(target=lambda: got.append(1)) for _ in range(3)]
[x.start() for x in t]; [x.join() for x in t]
out = subprocess.run(["echo", "out"], capture_output=True, text=True).stdout.strip()
print(sum(range(101)), fib(20), c, len(got), out)'
