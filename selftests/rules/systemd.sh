#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   systemd.sh TARGET CASES IN_SYSTEMD
#
# Runs in a guest whose system is Debian's with systemd. shstk, its services and the modules are
# where a package would put them. shstkd.service is started, restarted, killed and stopped by
# systemctl, and shstk records under systemd-run, and systemd-run itself; then shstkd-profile.service
# records all processes, for a server that is not there and for one that is, and hangs; and
# shstk-broker.socket serves an ordinary user.

target=$1
. "$2"
. "$3"
cd /tmp || exit 1
cp "$target" /usr/local/bin/target

# done_by STATUS NAME: prints the result of a test, and what the service said if it failed.
done_by()
{
	[ "$1" = 0 ] || inside journalctl --no-pager -q -n 30 >>out 2>&1
	point "$1" "$2"
}

# prop UNIT NAME: prints a property.
prop()
{
	ctl show "$1" -P "$2"
}

# prop_is UNIT NAME PATTERN: tests whether the whole value matches.
prop_is()
{
	echo "$2=$(prop "$1" "$2")" >out
	grep -qxE -e "$2=$3" out
}

# Tests the status of a service's process. The number is one inside of the namespace, and /proc is
# that of the namespace there.
status_has() # UNIT PATTERN
{
	inside grep -E 'NoNewPrivs|CapBnd' "/proc/$(prop "$1" MainPID)/status" >out
	grep -qxE -e "$2" out
}

has_table()
{
	shstk rules list | grep -q "^$1 "
}

last_tables()
{
	prop_is shstkd StatusText '[1-9][0-9]* tables loaded, [1-9][0-9]* of them from the cache'
}

work()
{
	inside systemd-run --quiet --unit=work target forever
}

# record OPTION...: records a program that nobody has seen before, in a transient service.
record()
{
	inside systemd-run --quiet --wait --pipe shstk record -o /var/tmp/it.folded "$@" >out 2>&1
}

stacks_from_start() # FILE: share of the samples whose stack begins at the program's start
{
	awk '/^target;/ { all += $NF; if ($0 ~ /^target;_start;/) whole += $NF }
	     END { print whole + 0 " of " all + 0; exit !(all && whole >= 0.95 * all) }' "$1" >out
}

echo TAP version 13
depmod
start_systemd
point $? 'systemd starts'
await is_running
point $? 'it says that all is running'

inside systemd-analyze verify --man=no shstkd.service >out 2>&1 && [ ! -s out ]
point $? 'nothing is wrong in shstkd.service'
ctl start shstkd >out 2>&1
done_by $? 'shstkd starts, and has said that it is ready'
[ -d /sys/module/shstk_perf ]
point $? 'the module came with it'
prop_is shstkd StatusText '[1-9][0-9]* tables loaded, .*'
done_by $? 'its state says how many tables are loaded'
status_has shstkd 'NoNewPrivs:[[:space:]]1'
point $? 'it can get no new privileges'
# These are PERFMON, SYS_ADMIN, SYS_PTRACE, SETUID, SETGID, KILL and DAC_READ_SEARCH.
status_has shstkd 'CapBnd:[[:space:]]00000040002800e4'
point $? 'and has no more than the unit gives it'

work
inside systemd-run --quiet --unit=whole -p Type=exec shstk record -a -o /var/tmp/whole.folded >out 2>&1
done_by $? 'a service that records all'
await has_table target
point $? 'a program that nobody has seen gets a table'
ctl stop whole >out 2>&1
prop_is whole Result success
done_by $? 'the recording ends well when it is stopped'
stacks=$(grep -c '^target' /var/tmp/whole.folded)
[ "$stacks" -gt 0 ]
point $? 'and its profile is whole'
record --via=rules --duration=3 -p "$(prop work MainPID)"
done_by $? 'shstk record --via=rules works as a transient service'
stacks_from_start /var/tmp/it.folded
point $? 'and nearly all stacks begin at the first frame'
ctl stop work

ctl restart shstkd >out 2>&1 && last_tables
done_by $? 'started again, it takes tables from its cache'
was=$(prop shstkd NRestarts)
ctl kill -s KILL shstkd >out 2>&1
restarted()
{
	prop_is shstkd NRestarts $((was + 1)) && prop_is shstkd ActiveState active
}
await restarted
done_by $? 'killed, it is started again'
ctl stop shstkd >out 2>&1 && prop_is shstkd Result success
done_by $? 'it stops'
prop_is shstkd ActiveState inactive
point $? 'and is off'
inside systemd-analyze --no-pager security shstkd 2>/dev/null | sed -n 's/^→ /# /p'

# record_as_user PATTERN OPTION...: records as an ordinary user, and tests what was said.
record_as_user()
{
	pattern=$1
	shift
	inside systemd-run --quiet --wait --pipe --uid=nobody -p WorkingDirectory=/tmp \
		-p PrivateTmp=yes shstk record -o user.folded "$@" >out 2>&1
	grep -qE -e "$pattern" out
}

lends()
{
	record_as_user 'perf events that the broker opened' -- target burn 0.3
}

# runs_as_it_does OPTION...: records systemd-run itself, and tests its status and what it prints.
runs_as_it_does()
{
	inside shstk record -q -o /var/tmp/run.folded "$@" -- \
		systemd-run --quiet --wait --pipe sh -c 'echo in the service; exit 3' >out 2>&1
	[ $? = 3 ] && [ "$(grep -v '^shstk record: ' out)" = 'in the service' ]
}

is_active()
{
	prop_is "$1" ActiveState active
}

for options in --via=agent '--via=agent --wall' --heap; do
	# shellcheck disable=SC2086 # these are several words
	runs_as_it_does $options
	point $? "systemd-run is the same under $options"
done

# The page of figures for Prometheus has a figure that is not 0.
figure_grows()
{
	inside cat /run/shstk-profile/shstk.prom >out 2>&1 && grep -q "^shstk_$1 [1-9]" out
}

profile_says() # PATTERN
{
	prop_is shstkd-profile StatusText "$1"
}

log_has() # TEXT
{
	inside journalctl --no-pager -q -u shstkd-profile >out 2>&1
	grep -qF -e "$1" out
}

log_matches() # PATTERN
{
	inside journalctl --no-pager -q -u shstkd-profile >out 2>&1
	grep -qE -e "$1" out
}

got=/var/tmp/got

# serve: takes requests at port 4318 of this machine, and makes a file of the body of each.
serve()
{
	mkdir -p $got /var/tmp/www/cgi-bin
	cat >/var/tmp/www/cgi-bin/take <<-END
		#!/bin/sh
		head -c "\$CONTENT_LENGTH" >$got/\$\$.part && mv $got/\$\$.part $got/\$(date +%s.%N).body
		printf 'Content-Type: text/plain\r\n\r\n'
	END
	chmod +x /var/tmp/www/cgi-bin/take
	ifconfig lo up
	busybox httpd -f -p 127.0.0.1:4318 -h /var/tmp/www &
	server=$!
}

requests()
{
	ls $got/*.body 2>/dev/null | wc -l
}

# Makes a file that shstk reads of the last request: its length, four bytes of it, goes before it.
read_last_request()
{
	last=$(ls $got/*.body | tail -n 1)
	gzip -dc "$last" >message || return 1
	size=$(wc -c <message)
	# shellcheck disable=SC2059 # the text is what is printed
	printf "$(printf '\\%03o' $((size >> 24)) $((size >> 16 & 255)) $((size >> 8 & 255)) $((size & 255)))" \
		>last.shstk
	cat message >>last.shstk
	shstk report -q -o last.folded last.shstk
}

whole_stacks_arrive()
{
	read_last_request >out 2>&1 && stacks_from_start last.folded
}

sends_more() # THAN
{
	[ "$(requests)" -gt "$1" ]
}

shows_in_status() # PATTERN
{
	ctl status shstkd-profile >out 2>&1
	grep -qE -e "$1" out
}

watchdog_hears() # AFTER
{
	[ "$(prop shstkd-profile WatchdogTimestampMonotonic)" -gt "$1" ]
}

was_started_again()
{
	[ "$(prop shstkd-profile NRestarts)" -gt 0 ] && prop_is shstkd-profile ActiveState active
}

conf=/etc/shstk/profile.conf
inside systemd-analyze verify --man=no shstkd-profile.service >out 2>&1 && [ ! -s out ]
point $? 'nothing is wrong in shstkd-profile.service'
work
ctl start shstkd-profile >out 2>&1
done_by $? 'shstkd-profile starts, and has said that it is ready'
status_has shstkd-profile 'NoNewPrivs:[[:space:]]1'
point $? 'it can get no new privileges'
# These are PERFMON, BPF, SYS_PTRACE, DAC_READ_SEARCH, SYSLOG, SETUID, SETGID and KILL.
status_has shstkd-profile 'CapBnd:[[:space:]]000000c4000800e4'
point $? 'and has no more than the unit gives it'
await profile_says '[1-9][0-9]* samples.*; [1-9][0-9]* requests wait, [1-9][0-9]* KiB'
done_by $? 'its state counts samples, and requests that wait for the server'
await figure_grows push_requests_waiting
done_by $? 'and so does the page for Prometheus'
main=$(prop shstkd-profile MainPID)
inside sh -c "cp $conf /var/tmp/whole.conf && echo nonsense >>$conf"
ctl reload shstkd-profile >out 2>&1
await log_has "'nonsense' is no option"
done_by $? 'an error in a changed file is in the log'
prop_is shstkd-profile ActiveState active && prop_is shstkd-profile MainPID "$main"
done_by $? 'and the recording goes on'
! log_has 'sampling by perf events'
point $? 'which says nothing else'
inside sh -c "grep -v ^quiet /var/tmp/whole.conf >$conf"
ctl reload shstkd-profile >out 2>&1
await log_has 'sampling by perf events'
done_by $? 'without the error, the file is used'
is_up_again()
{
	prop_is shstkd-profile ActiveState active && profile_says '[1-9][0-9]* sample.*'
}
await is_up_again
done_by $? 'systemd is told that it is ready again'
prop_is shstkd-profile MainPID "$main" && prop_is shstkd-profile NRestarts 0
done_by $? 'it is still the same process'
inside sh -c "echo via = bpf >>$conf"
ctl reload shstkd-profile >out 2>&1
await log_has 'stacks walked by unwind rules in the kernel (BPF)'
done_by $? 'with its rights stacks can be walked in the kernel'

serve
inside sed -i -e 's,^push = .*,push = http://127.0.0.1:4318/cgi-bin/take,' -e 's/^every = .*/every = 5s/' $conf
ctl reload shstkd-profile >out 2>&1
await sends_more 0
done_by $? 'a server that takes requests gets them'
await whole_stacks_arrive
done_by $? 'nearly all stacks of a program that arrive begin at its first frame'
# The first ones were copied: files have no tables then. Each profile's end says how many were walked.
await log_matches ' [1-9][0-9]* of [0-9]+ stacks were walked in the kernel'
done_by $? 'and they are walked in the kernel'
await shows_in_status 'Status: "[1-9][0-9]* samples.*; 0 requests wait, 0 KiB"'
done_by $? 'systemctl status shows samples, and that nothing waits'
await watchdog_hears "$(prop shstkd-profile WatchdogTimestampMonotonic)"
done_by $? 'the watchdog hears of it all the time'
ctl kill -s STOP --kill-whom=main shstkd-profile >out 2>&1
# The watchdog waits for five minutes, and systemd for one more.
await was_started_again || await was_started_again
done_by $? 'where it hangs, systemd ends it and starts it again'
log_has 'Watchdog timeout'
done_by $? 'because of the watchdog'
await sends_more "$(requests)"
done_by $? 'and the server gets requests again'
kill $server
ctl stop shstkd-profile >out 2>&1 && prop_is shstkd-profile Result success
done_by $? 'it stops'
inside sh -c 'ls /var/lib/shstk/spool/*/*.request' >out 2>&1
point $? 'what was not sent is kept'
ctl stop work
inside systemd-analyze --no-pager security shstkd-profile 2>/dev/null | sed -n 's/^→ /# /p'

echo 3 >/proc/sys/kernel/perf_event_paranoid
inside systemd-analyze verify --man=no shstk-broker.service shstk-broker.socket >out 2>&1 && [ ! -s out ]
point $? "nothing is wrong in the broker's units"
record_as_user 'sampling in process' -- target burn 0.1
point $? 'without its socket nothing is lent'
ctl start shstk-broker.socket >out 2>&1 && prop_is shstk-broker ActiveState inactive
point $? 'the socket waits, and no broker runs'
lends
point $? 'an ordinary user gets events'
# The module is preferred where it is loaded. Files have no tables at first.
walks()
{
	record_as_user ' [1-9][0-9]* of [0-9]* stacks were walked in the kernel' --via=bpf -- target burn 1
}
await walks
done_by $? 'and walks of his stacks in the kernel'
is_active shstk-broker
point $? 'by the broker that the request has started'
status_has shstk-broker 'NoNewPrivs:[[:space:]]1'
point $? 'it can get no new privileges'
# These are BPF, PERFMON, SYS_ADMIN, SYS_PTRACE, SETUID, SETGID, KILL and DAC_READ_SEARCH.
status_has shstk-broker 'CapBnd:[[:space:]]000000c0002800e4'
point $? 'and has no more than the unit gives it'
work
record_as_user 'not permitted' --duration=1 -p "$(prop work MainPID)"
point $? "a process of root's is not lent"
ctl stop work
ctl kill -s KILL shstk-broker >out 2>&1
lends
point $? 'after it was killed, events are lent again'
ctl stop shstk-broker.socket shstk-broker >out 2>&1 && prop_is shstk-broker Result success
point $? 'it stops'
record_as_user 'sampling in process' -- target burn 0.1
point $? 'and then nothing is lent'
inside systemd-analyze --no-pager security shstk-broker 2>/dev/null | sed -n 's/^→ /# /p'
ctl exit >out 2>&1
echo "1..$count"
exit $failed
