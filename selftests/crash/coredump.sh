#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   coredump.sh CRASHER CASES IN_SYSTEMD
#
# Runs in a guest whose system is Debian's with systemd and systemd-coredump: shstk crash as the kernel's
# handler of core files hands them on to systemd-coredump, and reads those that systemd-coredump has
# kept.

crasher=$1
. "$2"
. "$3"
cd /tmp || exit 1
mkdir -p /usr/local/bin
cp "$crasher" /usr/local/bin/crasher

# crash UNIT PATTERN: a service crashes, with this pattern of the kernel's.
crash()
{
	echo "$2" >/proc/sys/kernel/core_pattern
	inside systemd-run --quiet --wait --unit="$1" -p LimitCORE=infinity crasher null >said 2>&1
	echo core >/proc/sys/kernel/core_pattern
}

kept()
{
	inside coredumpctl --no-pager -1 info "COREDUMP_UNIT=$1.service" >out 2>&1 && grep -q 'Storage: /var' out
}

echo TAP version 13
echo 4 >/proc/sys/kernel/core_pipe_limit
start_systemd
point $? 'systemd starts'
await is_running
point $? 'it says that all is running'

# What systemd-coredump is called with is in Debian's /usr/lib/sysctl.d/50-coredump.conf. The number of
# the process is that of its namespace, which is systemd's.
cat >/tmp/coredump <<-END
	#!/bin/sh
	exec nsenter -t $systemd -m -p /usr/lib/systemd/systemd-coredump "\$@"
END
cat >/tmp/handler <<-END
	#!/bin/sh
	all=\$1
	shift
	exec /usr/bin/shstk crash -p "\$all" --dir=/tmp/crashes -- /tmp/coredump "\$@"
END
chmod 755 /tmp/coredump /tmp/handler

crash front '|/tmp/handler %P %p %u %g %s %t %c %h'
await kept front
point $? 'systemd-coredump keeps what shstk crash has handed on'
cat /tmp/crashes/*.txt >out 2>&1
has 'and there is a report' 'crasher\) ended by SIGSEGV: address 0x0 is not mapped$' ' null\+' ' main\+'

crash alone '|/tmp/coredump %p %u %g %s %t %c %h'
await kept alone
point $? 'systemd-coredump keeps a core file without it'
for unit in front alone; do
	inside coredumpctl --no-pager -o "/var/tmp/$unit.core" dump "COREDUMP_UNIT=$unit.service" >said 2>&1
	shstk crash "/var/tmp/$unit.core" >out 2>&1
	has "$unit: shstk crash reads what coredumpctl dumps" \
		'ended by SIGSEGV: address 0x0 is not mapped$' ' null\+' ' main\+'
done
echo "1..$count"
