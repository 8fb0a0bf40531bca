# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# KTAP for the runner's own tests, which are shell scripts.

count=0
bad=0

# expect NAME COMMAND...: a test point, passed if the command succeeds
expect()
{
	name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count $name"
	else
		echo "not ok $count $name"
		bad=1
	fi
}

# says FILE PATTERN...: the file has a line for each basic regular expression
says()
{
	file=$1
	shift
	for pattern; do
		grep -q -e "$pattern" "$file" || {
			echo "# no line like: $pattern"
			sed 's/^/#   /' "$file" | tail -30
			return 1
		}
	done
}

# lacks FILE PATTERN...: no line of the file matches any of them
lacks()
{
	file=$1
	shift
	for pattern; do
		if grep -e "$pattern" "$file" | sed 's/^/# unwanted: /' | grep .; then
			return 1
		fi
	done
}

# gone PID: the process has ended; it may still be a zombie
gone()
{
	[ -n "$1" ] || return 1
	[ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"
}

finish()
{
	echo "1..$count"
	exit $bad
}
