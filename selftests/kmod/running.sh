#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with shstk.ko loaded: tests `shstk trace --no-stop`. The arguments are there only
# so that the files are copied in.

cd /t || exit 1
. ./cases.sh

# Prints the lines with frames of the threads that handle no signal. A stop takes a thread back to
# the system call instruction, so the first frame is left out.
frames()
{
	sed -n '/^thread/,$p' "$1" | awk '
		/^thread/ { if (!signal) printf "%s", all; all = $2 "\n"; signal = 0 }
		/in_handler/ { signal = 1 }
		/^  #[1-9]/ { all = all $0 "\n" }
		END { if (!signal) printf "%s", all }'
}

echo TAP version 13
./shstk run -q ./stand wait >ready 2>&1 &
await_line '^ready [0-9]+$' ready || sed 's/^/# /' ready
pid=$(sed -n 's/^ready //p' ready)

t 'without a stop' 0 '^process .*, 4 threads, not stopped$' ./shstk trace -a -p "$pid" --no-stop --each-thread
frames out >running
[ "$(grep -c 'by its shadow stack:$' out)" = 4 ]
point $? 'the shadow stacks of all threads'
[ "$(grep -c 'it handles a signal; where that came is not' out)" = 1 ]
point $? 'one of which handles a signal, and it is said what is missing'
t 'with a stop' 0 'stopped for' ./shstk trace -a -p "$pid" --each-thread
frames out >stopped
diff running stopped >out && [ "$(wc -l <running)" -gt 50 ]
point $? "the others are the same as with a stop: $(wc -l <running) lines"
kill "$pid"
./stand wait >plain 2>&1 &
await_line '^ready [0-9]+$' plain || sed 's/^/# /' plain
t 'a program without shadow stacks has no such trace' 1 'its shadow stack is not on$' ./shstk trace -p $! --no-stop
kill $!
t '--no-stop does not unwind' 2 'nothing can be unwound while it runs' ./shstk trace -p 1 --no-stop --source=unwind
echo "1..$count"
