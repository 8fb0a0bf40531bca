#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with real shadow stacks: samples programs of Debian and one with exceptions and
# signals, by hardware and by software at the same moment (compare.c). The arguments are only there
# so that the files are copied into the guest.
#
# Both stacks have to be the same, except for these known differences, which the test lists:
#
#   cut       The software says itself that its stack is cut. glibc describes the
#             buffer of longjmp() as if the pointers in it were not mangled; the
#             stubs of the first call of a function (PLT) are not described.
#   landing   An exception is about to go on in an outer frame: libgcc has put
#             the registers of this frame where its own caller's were saved, so the
#             software has left the inner frame already, and the hardware has not.
#   start     On x86 the start-up object switches the shadow stack on below _start,
#             to which nothing returns: the software has one frame more. On arm64 only
#             `shstk run` itself has such a moment, when it tries whether shadow stacks
#             can be switched on (try_here()); that calls nothing, and on a slow machine
#             it may be sampled any number of times. The command counts these itself.
#   first     At the first instruction of a program, the unwind information does not
#             say yet that there is no caller; it does from the second one on.

# If other tests bring files of the same names, ours are called 2-shstk and so on.
mkdir -p /t/record && cd /t/record || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh
# An x86 guest counts so few instructions per tick that CPU time gives too few samples.
run='./shstk run -q'
rate='1999 --wall'
late=1000000
long=0.2
if [ "$(uname -m)" = aarch64 ]; then
	rate=999
	long=2
	late=2	# The dynamic linker switches shadow stacks on before it calls a function.
fi

bash_more='
	h() { [ $1 -gt 0 ] && h $(($1 - 1)); }
	for i in 1 2 3 4 5 6; do h 40; done; for i in 1 2 3; do echo $i | cat; done'
sqlite_more='
	with recursive c(x) as (select 1 union all select x+1 from c where x<30000)
	select sum(x * x % 7) from c;'
python_more='
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(17), sorted(range(999), key=lambda x: -x)[0])'

# same NAME COMMAND...: samples the command
same()
{
	name=$1
	shift
	./compare ./compare_agent.so $rate -- "$@" >out 2>err
	got=$?
	awk -v status=$got -v late=$late -v libgcc='_Unwind_(Resume|RaiseException)' '
	function name(frame) {
		sub(/\+0x[0-9a-f]+$/, "", frame)
		gsub(/ \[clone [^]]*\]/, "", frame)
		return frame
	}
	# Both stacks are the same from the innermost frame up to libgcc, which then goes on in an
	# outer frame of the hardware, at another place of its function. In a handler, the hardware
	# lacks what was interrupted: only the software can tell it.
	function lands(h, s,	nh, ns, inner, i, lacks, H, S) {
		if (h ~ (";" libgcc "[^;]*; complete$"))
			return 1
		sub(/^_start[^;]*;/, "", h)
		sub(/^_start[^;]*;/, "", s)
		nh = split(h, H, ";")
		ns = split(s, S, ";")
		for (inner = ""; nh && ns && H[nh] == S[ns] && inner !~ ("^" libgcc); nh--) {
			inner = H[nh]
			ns--
		}
		if (inner !~ ("^" libgcc) || !ns)
			return 0
		lacks = 0
		for (i = 1; i < ns; i++)
			if (H[i - lacks] != S[i] && lacks++)
				return 0
		ns -= lacks
		return ns == nh + 1 || (ns <= nh && name(H[ns]) == name(S[ns + lacks]))
	}
	function list(always) {
		# The innermost frames say what the difference is.
		pair = substr(hardware, 11) "\t" substr($0, 11)
		if (!seen[pair]++ && (always || shown++ < 6)) {
			if (always)
				lines = lines "\n# unexplained:"
			show(substr(hardware, 11), "hardware")
			show(substr($0, 11), "software")
		}
	}
	function show(stack, source) {
		if (length(stack) > 400)
			stack = "..." substr(stack, length(stack) - 396)
		lines = lines "\n# " source ": " stack
	}
	/^hardware: / { hardware = $0 }
	/^software: / {
		if (lands(substr(hardware, 11), substr($0, 11)))
			landing++
		else if (!/ complete$/)
			cut++
		# Our longjmp() has no caller any more, and says so; the shadow stack still has one.
		else if (/^software: start_longjmp\+[^;]*;start_pivot/)
			landing++
		else if (hardware ~ /^hardware: _start\+0x0; /)
			first++
		else if (++unexplained < 9) {
			list(1)
			next
		}
		list(0)
	}
	/stacks are the same/ { same = $4; differ = $9; without = $12; start = $18; begun = $26 }
	END {
		printf "%d the same; start %d (%d at once), cut %d, landing %d, first %d, unexplained %d; %d not from hardware%s\n", \
			same, start, begun, cut, landing, first, unexplained, without, lines
		same += start - begun
		exit status || same < 20 || start - begun > late || unexplained || cut > 5 + same / 5 || \
			differ != cut + landing + first
	}' err >result
	good=$?
	[ $good = 0 ] && good=ok || good='not ok'
	say "$good" "$name: $(head -n 1 result)"
	tail -n +2 result
	[ "$good" = ok ] || { echo "# status $got"; sed 's/^/# | /' err | tail -n 5; }
}

echo TAP version 13
same 'bash' $run bash -c "$bash_script; $bash_more"
same 'sqlite3' $run sqlite3 :memory: "$sqlite_script $sqlite_more"
same 'python3' $run python3 -S -c "$python_more"
same 'exceptions and signals in C++' $run ./throw $long
echo "1..$count"
