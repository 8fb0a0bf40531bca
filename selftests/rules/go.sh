#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   go.sh GO CASES [FILE...]
#
# Runs in a guest without shadow stacks, where shstk_perf.ko is loaded: tests callchains of a
# stripped Go program by the rules of its own table. GO is go.go; the other files only have to be
# there.

go=$1
. "$2"
mkdir -p /t/rules-go && cd /t/rules-go || exit 1

# exact MAIN DEPTH: tests that all samples in spin() have DEPTH calls below the function MAIN.
exact()
{
	awk -v main="$1" -v depth="$2" '
		/;main.spin / && index($0, main) {
			all += $NF
			line = $0
			if (index(line, "runtime.goexit") && gsub(/;main\.deep/, "", line) == depth)
				good += $NF
		}
		END { printf "%.3f of %.3f s\n", good / 1e9, all / 1e9
		      exit !(all > 0 && good > 0.97 * all) }' out.folded >share
	status=$?
	cut -c 1-300 out.folded >out
	point $status "$1: down to the goroutine's first function in $(cat share)"
}

# The search for files ends where the machine stands still for a second: then it is repeated. $status is
# what t() wants.
load()
{
	for _ in 1 2 3 4 5; do
		/t/shstk rules load -p $pid >loaded 2>&1
		ended=$?
		grep -q 'took too long' loaded || break
	done
	cat loaded
	return $ended
}

echo TAP version 13
/t/shstk rules drop --all
"$go" >ready 2>&1 &
pid=$!
await_line '^ready$' ready
t 'its table is loaded' 0 'go: [1-9][0-9]* functions' load
t 'a process of Go by rules' 0 'callchains by unwind rules in the kernel' \
	enough 200 2 /t/shstk record --via=rules -F 499 -o out.folded -p $pid
exact runtime.main 21
exact main.main.func1 8
t 'nothing of it was cut' 0 'callchains whole' /t/shstk rules status
kill $pid
echo "1..$count"
exit $failed
