#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   walk.sh PROGRAM... [FILE...]
#   walk.sh many=SAMPLES [sums=FOLDER] PROGRAM... [FILE...]
#   walk.sh module PROGRAM... [FILE...]
#
# Samples unmodified programs of Debian. Each sample has two stacks: the chain that the walk in BPF
# makes by unwind rules, and a copy, which `shstk unwind` unwinds. The chain must have the same
# entries as the unwound copy, as far as it goes, and it must reach the outermost frame. The script
# also runs in guests: the FILEs are arguments so that they are copied there.
#
# In the first run of a program its files get their tables. A file that no sample of that run was
# in has no table in the second run: chains that end there are reported, but do not count. Chains
# that end because memory is not present do not count either.
#
# "many" samples all programs again and again, at a high rate, until SAMPLES were compared. It prints
# each chain that differs from the unwound copy or is shorter, ten of each run. With "sums" the counts of
# each run, and these chains, are kept in the FOLDER. Whoever has the same folder later, or at the same
# time, adds to them, until all together are SAMPLES. The folder belongs to one walk: if the program is
# another one, nothing is added.
#
# "module" compares each chain with the one that shstk_perf.ko made of the same sample. The module is loaded.

. ./cases.sh
export PATH=/usr/bin:/bin

bash_work='
f() { if [ $1 -gt 0 ]; then f $(($1 - 1)); else r=$((r + 1)); fi; }
for ((i = 0; i < 40; i++)); do
	f $((i % 9)); s=$(echo $i); [[ $s =~ ^([0-9]+)$ ]] && t=${BASH_REMATCH[1]}; (exit 3)
done
for ((i = 0; i < 30000; i++)); do x=${x:0:20}$i; done'

python_work='
import re, json
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(20)
for i in range(60):
    sorted(range(300), key=lambda x: -x)
    re.compile("(a|b)*c%d" % i).match("ababab")
    json.loads(json.dumps([{"a": [i, "x" * i]}] * 60))'

perl_work='
sub f { my $n = shift; return $n ? 1 + f($n - 1) : 0 }
f(60) for 1 .. 2000;
my @a = sort { $a <=> $b } map { $_ * 7919 % 10007 } 1 .. 100000;
my $t = "abc" x 3000; my $n = 0; $n++ while $t =~ /b(c)a/g;
eval { die { x => $_ } } for 1 .. 5000;'

sqlite_work='with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000)
	select sum(length(printf('\''%d'\'', x))) from c;
	create table t(a, b); with recursive c(x) as (select 1 union all select x+1 from c where x<40000)
	insert into t select x * 7919 % 9001, x from c; create index i on t(a);
	select count(*) from t u join t v on u.a = v.b;'

node_work='
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
let s = 0;
for (let i = 0; i < 12; i++) {
	s += fib(22);
	[...Array(3000).keys()].sort((a, b) => b - a);
	s += "abcabc".repeat(2000).match(/b(c)a/g).length;
	JSON.parse(JSON.stringify(Array(500).fill({ a: [i] })));
}'

openssl_work='
openssl genrsa 2048 >key 2>/dev/null &&
for a in sha1 sha256 sha512 sha3-256; do openssl dgst -$a big; done &&
openssl enc -aes-128-cbc -pbkdf2 -k x -in big -out /dev/null'

tar_work='for i in 1 2 3; do tar -cf x.tar -C /usr/lib/python3.[0-9]* . && tar -tvf x.tar; done'

git_work='
rm -rf repo && mkdir repo && cd repo && git init -q &&
for i in 1 2 3 4 5 6; do printf "%s\n" $i {1..20000} >f$i; done && git add . &&
git commit -q -m one && for f in f*; do echo 5 >>$f; done && git diff >/dev/null &&
git commit -q -a -m two && git log -p >/dev/null'

repeat_work='for ((i = 0; i < $0; i++)); do "$@" || exit; done'

# Prints where the compiler is. Each version has a folder of its own.
compiler()
{
	for file in /usr/libexec/gcc/*/*/cc1 /usr/lib/gcc/*/*/cc1; do
		[ ! -x "$file" ] || echo "$file"
	done | head -n 1
}

# Records both stacks of each sample into both.data. The last lines of "said" count how the walks
# ended.
record() # PROGRAM
{
	case $1 in
	bash) set -- bash -c "$bash_work";;
	python3) set -- python3 -ISc "$python_work";;
	perl) set -- perl -e "$perl_work";;
	sqlite3) set -- sqlite3 :memory: "$sqlite_work";;
	git) set -- bash -c "$git_work";;
	gcc) set -- "$(compiler)" -quiet -fpreprocessed -O2 input.i -o /dev/null;;
	openssl) set -- bash -c "$openssl_work";;
	tar) set -- bash -c "$tar_work";;
	c++) set -- ./throw 1;;
	node) set -- node -e "$node_work";;
	xz) set -- xz -k -T2 -1 --block-size=400KiB -f big;;
	esac
	[ "$times" = 1 ] || set -- bash -c "$repeat_work" "$times" "$@"
	./chains -F "$rate" both.data "$@" >said 2>&1
}

# Prints how many of 1000 chains must have no other frame than the stack's copy. In code that node
# makes at run time, the caller of an innermost function without a frame is missing.
least_right() # PROGRAM
{
	case $1 in node) echo 940;; *) echo 1000;; esac
}

# Prints how many walks ended in the way HOW.
ended() # HOW
{
	sed -n "s/^$1: //p" said | tail -n 1
}

judge()
{
	./judge both.data >verdict 2>odd || return 1
	samples=$(sed -n 's/ samples have a user stack.*//p' verdict)
	equal=$(sed -n 's/.* copies too: \([0-9]*\) equal.*/\1/p' verdict)
	shorter=$(sed -n 's/.*; \([0-9]*\) shorter.*/\1/p' verdict)
	differ=$(sed -n 's/.* shorter, \([0-9]*\) differ$/\1/p' verdict)
	[ -n "$samples" ] && [ -n "$differ" ]
}

# Returns whether the program is there. Two of them are run under another name.
is_there() # PROGRAM
{
	case $1 in
	gcc) [ -f input.i ] && [ -n "$(compiler)" ];;
	c++) [ -x ./throw ];;
	*) command -v "$1" >/dev/null;;
	esac
}

one() # PROGRAM
{
	if ! is_there "$1"; then
		skip "$1 is walked by rules" "$1 is not installed"
		return
	fi
	record "$1"
	status=$?
	if [ $status = 4 ]; then
		skip "$1 is walked by rules" "$(tail -n 1 said)"
		return
	fi
	tail -n 30 said >out
	[ $status = 0 ] && judge
	point $? "$1 is sampled with both stacks" || return
	[ $status = 0 ] || return
	cat verdict odd >out
	[ $(((samples - differ) * 1000)) -ge $((samples * $(least_right "$1"))) ]
	point $? "$1: no chain has another frame than the stack's copy"
	passed=$(($(ended 'no table') + $(ended 'no memory')))
	whole=$(($(ended whole) + $(ended zero)))
	cut=$(($(ended room) + $(ended 'no code') + $(ended 'no rule') + $(ended 'no kind') +
		$(ended 'bad CFA')))
	if [ "$whole" = 0 ] && [ "$passed" -gt 0 ] &&
	   [ "$(stat -f -c %T "$(command -v "$1")")" = overlayfs ]; then
		skip "$1: chains go to the outermost frame" \
			"this file system tells other inode numbers than the kernel"
		return
	fi
	cat said odd >out
	# Nothing describes the first few instructions of a program, so a few samples may be cut.
	[ $(((whole + 3) * 1000)) -ge $(((whole + cut) * 995)) ] && [ "$whole" -gt 0 ]
	point $? "$1: chains go to the outermost frame"
	echo "# $1: $samples samples, $whole chains whole, $cut cut, $shorter shorter than the copy's," \
		"$differ different, $passed in files without a table yet"
	echo "# bpf: $(uname -m)-$(uname -r),$1,$samples,$whole,$cut,$shorter,$differ,$passed"
}

each() # PROGRAM...
{
	for p; do
		one "$p"
	done
}

# Prints how many chains had this in comparison with the callchain.
chains_that() # WHAT
{
	sed -n "s/^as the callchain:.* \([0-9]*\) $1.*/\1/p" said
}

# The module has tables of all files that programs may map, and of the vDSO, to which handlers of signals return on
# arm64: without one, the next entry is what a frame record says there, the interrupted function's caller. Those
# of the walk are made as they are met.
load_tables()
{
	find /usr /lib /lib64 -type f 2>/dev/null | while read -r file; do
		[ "$(head -c 4 "$file" | tail -c 3)" = ELF ] && echo "$file"
	done >files
	xargs ./shstk rules load -qv ./throw <files >out 2>&1
}

# Compares chains of one program with the module's.
beside_module() # PROGRAM
{
	if ! is_there "$1"; then
		skip "$1 is walked as by the module" "$1 is not installed"
		return
	fi
	record "$1"
	status=$?
	cp said out
	point $status "$1 is sampled beside the module"
	[ $status = 0 ] || return
	same=$(chains_that same) differ=$(chains_that differ) all=0
	for what in same shorter longer differ; do
		all=$((all + $(chains_that $what)))
	done
	[ "$all" -gt 0 ] && [ $((differ * 1000)) -le "$all" ] && [ $((same * 1000)) -ge $((all * 990)) ]
	point $? "$1: the chains are the module's"
	sed -n 's/^entry/# &/p' said
	echo "# $1: $(grep '^as the callchain' said)"
}

# Samples one program and adds what was found to the sums in the file PROGRAM.sum. The work is done
# more often the next time if there were few samples.
add_run() # PROGRAM
{
	samples=0 equal=0 shorter=0 differ=0 times=1
	[ ! -f "$1.times" ] || times=$(cat "$1.times")
	if ! record "$1" || ! judge; then
		cat said odd >out
		return 1
	fi
	[ "$samples" -ge "$enough" ] || echo $((times * 4)) >"$1.times"
	grep -v '^not whole' odd | sed "s/^/# $1: /" | tee -a "$sums/$1.odd"
	echo "$samples $equal $shorter $differ $(($(ended whole) + $(ended zero)))" \
		"$(ended 'no table') $(ended 'no rule') $(ended 'no memory')" >>"$sums/$1.sum"
	echo "# $1, $times times: $samples samples, $differ different, $shorter shorter; $(compared) of $wanted"
}

# Returns whether the sums are of this walk; if there are none yet, they will be.
sums_are_ours()
{
	walk=$(cksum <shstk-walk.bpf.o) || return 1
	[ -f "$sums/walk" ] || echo "$walk" >"$sums/walk"
	[ "$(cat "$sums/walk")" = "$walk" ]
}

# Prints how many samples of all programs were compared, by whoever adds to the sums.
compared()
{
	cat "$sums"/*.sum 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

# Prints the sum of each column of the file, in one line.
columns() # FILE
{
	awk '{ for (i = 1; i <= NF; i++) sum[i] += $i }
	     END { for (i = 1; i <= NF; i++) printf "%d ", sum[i] }' "$1"
}

# Tests the sums of a program.
judge_sums() # PROGRAM SAMPLES EQUAL SHORTER DIFFERENT WHOLE NO_TABLE NO_RULE NO_MEMORY
{
	[ "$2" -gt 0 ] && [ $((($2 - $5) * 1000)) -ge $(($2 * $(least_right "$1"))) ]
	point $? "$1: $5 of $2 chains have another frame than the stack's copy"
	echo "# $1: $2 samples, $3 equal, $4 shorter than the copy's, $5 different; $6 walks whole," \
		"$7 ended in files without a table, $8 in code without a rule, $9 at memory that is not there"
}

# Samples the programs by turns until enough samples were compared.
add_runs() # PROGRAM...
{
	while [ "$(compared)" -lt "$wanted" ]; do
		before=$(compared)
		for p; do
			is_there "$p" || continue
			add_run "$p" || { point 1 "$p is sampled with both stacks"; return; }
			[ "$(compared)" -lt "$wanted" ] || break
		done
		[ "$(compared)" -gt "$before" ] || break
	done
}

many() # SAMPLES PROGRAM...
{
	wanted=$1 rate=9999 enough=5000
	shift
	if ! sums_are_ours >out 2>&1; then
		echo "$sums has the counts of another walk" >>out
		point 1 "counts are added to those of the same walk"
		return
	fi
	add_runs "$@"
	[ "$(compared)" -ge "$wanted" ]
	point $? "$(compared) samples are compared"
	for p; do
		if [ -f "$sums/$p.sum" ]; then
			# shellcheck disable=SC2046 # the columns are arguments
			judge_sums "$p" $(columns "$sums/$p.sum")
		else
			skip "$p is compared" "$p is not installed"
		fi
	done
}

# Prints those of the arguments that are names of programs, not files.
names()
{
	for p; do
		case $p in
		*/* | many=* | sums=* | module) ;;
		*) echo "$p";;
		esac
	done
}

prepare()
{
	export HOME="$PWD"
	git config --global user.email x@y 2>/dev/null && git config --global user.name x &&
		git config --global init.defaultBranch x
	head -c 2000000 ./shstk >big
}

echo TAP version 13
prepare
programs=$(names "$@")
# shellcheck disable=SC2086 # words
case $1 in
many=*)
	case $2 in sums=*) sums=${2#sums=};; *) sums=$PWD;; esac
	many "${1#many=}" $programs
	;;
module)
	rate=999 times=1
	load_tables
	for p in $programs; do
		beside_module "$p"
	done
	;;
*)
	rate=999 times=1
	each $programs
	;;
esac
echo "1..$count"
exit $failed
