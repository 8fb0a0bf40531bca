#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   rules_programs.sh without|with|first GUEST PROGRAM:PROGRAM... [FILE...]
#   rules_programs.sh many=SAMPLES GUEST PROGRAM:PROGRAM... [FILE...]
#
# Runs in a guest: Debian's perf samples Debian's programs, unmodified. "without" uses the kernel
# alone. "with" uses shstk_perf.ko and its unwind rules, when all tables are loaded; its samples
# also have a copy of the stack, which `shstk unwind` unwinds and compares. The other files only
# have to be there.
#
# "first" tests programs whose tables are not loaded. The daemon loads them while the programs run,
# first from a cache that was filled for all packages, and then with an empty cache.
#
# "many" makes the samples of "with" again and again, until SAMPLES have been compared. On x86
# elfutils, an independent unwinder, unwinds the copies, too (rules_elfutils). Where elfutils has
# unwind information, one chain of 10000 and five more may differ, because the kernel has no rule
# there.
#
# Copies fill perf's usual ring in a moment, and what is lost then may be the record of a mapping.
# So the ring is large, and losses are reported.
#
# Prints lines "csv: GUEST,PROGRAM,SAMPLES,WHOLE_WITHOUT,WHOLE_WITH,EQUAL". These are counts of
# samples that have a user stack, of the first SAMPLES of each run.

mode=$1 guest=$2 programs=$(echo "$3" | tr : ' ')
cd /t || exit 1
. ./cases.sh
export HOME=/tmp/home PATH=/usr/bin:/bin
K=/proc/sys/kernel

# perf samples each millisecond of CPU time, and more often on a busy machine. Only this many
# samples are looked at.
rate=1999
most=800

bash_work='
f() { if [ $1 -gt 0 ]; then f $(($1 - 1)); else r=$((r + 1)); fi; }
for ((i = 0; i < 30; i++)); do
	f $((i % 9)); s=$(echo $i); [[ $s =~ ^([0-9]+)$ ]] && t=${BASH_REMATCH[1]}; (exit 3)
done
for ((i = 0; i < 3000; i++)); do x=${x:0:20}$i; done'

python_work='
import re, json
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(16)
for i in range(12):
    sorted(range(300), key=lambda x: -x)
    re.compile("(a|b)*c%d" % i).match("ababab")
    json.loads(json.dumps([{"a": [i, "x" * i]}] * 60))'

perl_work='
sub f { my $n = shift; return $n ? 1 + f($n - 1) : 0 }
f(60) for 1 .. 200;
my @a = sort { $a <=> $b } map { $_ * 7919 % 10007 } 1 .. 30000;
my $t = "abc" x 3000; my $n = 0; $n++ while $t =~ /b(c)a/g;
eval { die { x => $_ } } for 1 .. 1500;'

sqlite_work='with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)
	select sum(length(printf('\''%d'\'', x))) from c;
	create table t(a, b); with recursive c(x) as (select 1 union all select x+1 from c where x<9000)
	insert into t select x * 7919 % 9001, x from c; create index i on t(a);
	select count(*) from t u join t v on u.a = v.b;'

node_work='
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
let s = 0;
for (let i = 0; i < 6; i++) {
	s += fib(20);
	[...Array(3000).keys()].sort((a, b) => b - a);
	s += "abcabc".repeat(2000).match(/b(c)a/g).length;
	JSON.parse(JSON.stringify(Array(500).fill({ a: [i] })));
}'

openssl_work='
openssl genrsa 2048 >/tmp/key 2>/dev/null &&
for a in sha1 sha256 sha512 sha3-256; do openssl dgst -$a big; done &&
openssl enc -aes-128-cbc -pbkdf2 -k x -in big -out /dev/null'

tar_work='tar -cf /tmp/x.tar -C /usr/lib/python3.13 . && tar -tvf /tmp/x.tar'

git_work='
rm -rf /tmp/repo && mkdir /tmp/repo && cd /tmp/repo && git init -q &&
cp /usr/lib/python3*/[a-d]*.py . && git add . && git commit -q -m one &&
for f in [ab]*.py; do echo "x = 1" >>$f; done && git diff >/dev/null &&
git commit -q -a -m two && git log -p >/dev/null'

# Samples a program's work, which is only Debian's programs. $1 is the program, $2 the file; the
# other arguments are put in front of perf.
record()
{
	program=$1 file=$2
	shift 2
	set -- "$@" perf record -q -B -N -e cpu-clock -F $rate -o "$file" $how -- \
		/usr/bin/env -u LD_PRELOAD
	case $program in
	bash) set -- "$@" bash -c "$bash_work";;
	python3) set -- "$@" python3 -ISc "$python_work";;
	sqlite3) set -- "$@" sqlite3 :memory: "$sqlite_work";;
	perl) set -- "$@" perl -e "$perl_work";;
	gcc) set -- "$@" /usr/libexec/gcc/*/14/cc1 -quiet -fpreprocessed -O2 input.i -o /dev/null;;
	openssl) set -- "$@" bash -c "$openssl_work";;
	git) set -- "$@" bash -c "$git_work";;
	tar) set -- "$@" bash -c "$tar_work";;
	xz) set -- "$@" xz -k -T2 -1 --block-size=400KiB --suffix=.$mode -f big;;
	c++) set -- "$@" ./throw 1;;
	node) set -- "$@" node -e "$node_work";;
	esac
	"$@" >out 2>&1
}

# Counts how many of the first samples have complete chains, and equal ones. $1 is the file, $2 the
# most samples; without $2 all samples count.
judge()
{
	./judge "$1" ${2:+"$2"} >verdict 2>odd ||
		{ cat verdict odd >out; return 1; }
	samples=$(sed -n 's/ samples have a user stack.*//p' verdict)
	whole=$(sed -n 's/ chains whole$//p' verdict)
	equal=$(sed -n 's/.* copies too: \([0-9]*\) equal.*/\1/p' verdict)
	sed 's/^/# /' odd
	grep 'lost by perf' verdict | sed 's/^/# /'
	return 0
}

# How many of 1000 chains have to be complete, and equal. In code that node makes at run time, the
# caller of an innermost function without a frame is missing.
least_whole=995
least_equal() { case $1 in node) echo 940;; *) echo 999;; esac; }

# share PART ALL PERMILLE: tests whether PART is at least PERMILLE of ALL. If there are few, one may
# be missing.
share()
{
	[ "$2" -ge 30 ] && [ "$1" -le "$2" ] && [ $((($1 + 1) * 1000)) -ge $(($2 * $3)) ]
}

took()
{
	now=$(cut -d. -f1 /proc/uptime)
	echo "# $1: $((now - before)) s"
	before=$now
}
before=$(cut -d. -f1 /proc/uptime)

without()
{
	for p in $programs; do
		how=-g
		record $p $p.data env && judge $p.data $most
		point $? "$p: sampled by the kernel as it is: $whole of $samples chains whole"
		echo "$samples $whole" >$p.samples
		took "$p"
	done
}

state=/sys/module/shstk_perf/rules
has_listeners() # N
{
	[ "$(cat $state/listeners)" = "$1" ]
}

# Starts the daemon with no tables except those of programs that run already, as when a system has
# just started, and with the same priority as shstkd.service.
start_daemon() # CACHE
{
	./shstk rules drop --all
	rm -f "$1/missed"
	./shstk rules serve --cache="$1" >serve 2>&1 &
	daemon=$!
	renice -n -5 -p $daemon >/dev/null && await has_listeners 1 && await_settled $state/tables
}

stop_daemon()
{
	kill $daemon
	wait $daemon
	sed 's/^/# /' serve
}

# Where there are frame records, the kernel's own walk may find a complete chain, though not always
# the right one.
without_rules=0 by_record=0
print_without_rules()
{
	chains=$without_rules frames=$by_record
	without_rules=$(cat $state/first_unknown) by_record=$(cat $state/step_record)
	echo "# without rules: $((without_rules - chains)) chains by the kernel's own walk," \
		"$((by_record - frames)) frames by frame records"
}

# Tests a first run with a filled cache. All samples of the run count, because chains are cut in its
# first moments.
first_run() # PROGRAM
{
	samples=0 whole=0
	start_daemon $filled && record "$1" first.data env && judge first.data &&
		share "$whole" "$samples" 950
	point $? "$1, first run with a filled cache: $whole of $samples chains whole"
	print_without_rules
	stop_daemon
}

# Tests a program that nobody has seen before. Until it has a table its chains are the kernel's own.
# The number of complete chains is printed for the first second of its CPU time.
unseen_run() # PROGRAM
{
	samples=0 whole=0
	rm -rf $empty
	start_daemon $empty && record "$1" first.data env && judge first.data $rate &&
		[ "$samples" -ge 30 ]
	point $? "$1, not seen before: $whole of the first $samples chains whole"
	print_without_rules
	stop_daemon
}

filled=/tmp/filled
empty=/tmp/empty
fill_cache()
{
	./shstk rules compile --all-packages --cache=$filled ./throw >out 2>&1
	point $? "the cache is filled: $(tail -n 1 out)"
}

first()
{
	fill_cache
	print_without_rules >/dev/null
	how=-g rate=999
	for p in $programs; do
		first_run $p
		unseen_run $p
		./shstk rules list | sed 's/^/# /'
		took $p
	done
}

# Samples a program with a copy of the stack.
record_both() # PROGRAM
{
	how="-m 32M --call-graph dwarf,16384 $regs"
	samples=0 whole=0 equal=0
	record "$1" both.data env LD_PRELOAD=./both.so
}

# Compares the same number of samples of each run, which is the smaller number of the two.
warm_run() # PROGRAM
{
	read -r n without <"$1.samples"
	record_both "$1" && judge both.data "$n" &&
		sed 's/^/# /' verdict && share "$whole" "$samples" $least_whole
	point $? "$1: $whole of $samples chains whole"
	share "$equal" "$samples" "$(least_equal "$1")"
	point $? "$1: $equal of $samples equal to what the stack's copy gives"
	if [ "$samples" -lt "$n" ]; then
		n=$samples with="$whole,$equal"
		judge "$1.data" "$n"
		without=$whole
	else
		with="$whole,$equal"
	fi
	echo "csv: $guest,$1,$n,$without,$with"
	took warm
}

with()
{
	for p in $programs; do
		warm_run $p
	done
	./shstk rules status | sed 's/^/# /'
}

# Compares with elfutils, as far as it has unwind information.
by_elfutils() # FILE
{
	[ -x ./rules_elfutils ] || return 0
	./rules_elfutils "$1" >verdict || { cp verdict out; return 1; }
	sed 's/^/# elfutils: /' verdict
	# shellcheck disable=SC2046
	set -- $(tail -n 1 verdict | sed 's/[^0-9]\+/ /g')
	elf_all=$((elf_all + $1)) elf_equal=$((elf_equal + $2)) elf_reached=$((elf_reached + $4))
	elf_left=$((elf_left + $5)) elf_copy=$((elf_copy + $6)) elf_else=$((elf_else + $7))
}

# Most chains have to be followed to their ends, otherwise too little was judged.
elfutils_agrees()
{
	[ "$elf_all" = 0 ] && return
	[ $((elf_all - elf_equal)) -le $((elf_all / 10000 + 5)) ]
	point $? "elfutils: $elf_equal of $elf_all samples equal"
	share "$elf_reached" "$elf_all" 900
	point $? "elfutils: $elf_reached of $elf_all followed as far as the kernel's"
	echo "# elfutils: $elf_left left where nothing describes the code, $elf_copy where the stack" \
		"was not copied, $elf_else elsewhere"
}

# Compares until there are enough samples, and all samples of each run.
many() # SAMPLES
{
	all=0 all_whole=0 all_equal=0
	elf_all=0 elf_equal=0 elf_reached=0 elf_left=0 elf_copy=0 elf_else=0
	while [ "$all" -lt "$1" ] && [ "$failed" = 0 ]; do
		before_round=$all
		for p in $programs; do
			record_both "$p" && judge both.data && by_elfutils both.data ||
				failed=1
			all=$((all + samples)) all_whole=$((all_whole + whole))
			all_equal=$((all_equal + equal))
			echo "# $p: $equal of $samples equal; of all $all_equal of $all, $all_whole whole"
		done
		[ "$all" -gt "$before_round" ] || break
	done
	[ "$all" -ge "$1" ] && share "$all_whole" "$all" $least_whole
	point $? "$all_whole of $all chains whole"
	share "$all_equal" "$all" 999
	point $? "$all_equal of $all samples equal to what the stack's copy gives"
	elfutils_agrees
}

# Prints all files that Debian's programs may map, and both.so, which env still has when it is
# sampled.
elf_files()
{
	find /usr /lib /lib64 -type f 2>/dev/null | while read -r f; do
		[ "$(head -c 4 "$f" | tail -c 3)" = ELF ] && echo "$f"
	done
	echo ./throw
	echo ./both.so
}

# Software events cannot sample the SVE register that perf asks for.
[ "$(uname -m)" = x86_64 ] || regs=--user-regs=x$(seq -s ,x 0 29),lr,sp,pc

prepare()
{
	mkdir -p /tmp/home
	git config --global user.email x@y && git config --global user.name x
	git config --global init.defaultBranch x
	echo 512 >$K/perf_event_max_stack
	echo 0 >$K/perf_cpu_time_max_percent
	cat /usr/lib/python3*/*.py | head -c 1500000 >big
}

load_tables()
{
	# shellcheck disable=SC2046
	./shstk rules load -qv $(elf_files) >out 2>&1
	# Data in the form of a library has no unwind information.
	! grep -v 'libicudata.*has no unwind information' out
	point $? 'tables of all programs and libraries'
}

echo TAP version 13
case $mode in
without)
	prepare
	without;;
first)
	prepare
	first;;
with)
	load_tables
	with;;
many=*)
	prepare
	load_tables
	many "${mode#many=}";;
esac
echo "1..$count"
