# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# in_systemd.sh - for scripts that run in a guest whose system is Debian's with systemd: starts systemd
# and runs commands beside it. systemd runs in its own process namespace, because process 1 is the
# guest's init. It needs cases.sh.

# Finds systemd's process number outside of its namespace.
find_systemd()
{
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/exe")" != /usr/lib/systemd/systemd ] || {
			systemd=${p#/proc/}
			return 0
		}
	done
	return 1
}

start_systemd()
{
	touch /etc/machine-id
	env -i PATH="$PATH" container=guest unshare --fork --pid --mount --mount-proc \
		--propagation private /usr/lib/systemd/systemd >systemd.log 2>&1 &
	await find_systemd
}

inside()
{
	timeout 100 nsenter -t "$systemd" -m -p "$@"
}

ctl()
{
	inside systemctl --no-pager "$@"
}

is_running()
{
	[ "$(ctl is-system-running 2>/dev/null)" = running ]
}
