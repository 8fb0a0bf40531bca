#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# glibc.sh PROGRAM... - runs the test programs with the C libraries of Debian 13 and 14. Prints
# KTAP.

run()
{
	selftests/guest/in "$@"
}

n=0
bad=0
ran=
echo 'KTAP version 1'
echo "1..$(($# * 2))"
for folder in trixie forky; do
	version=$(run $folder ldd --version 2>/dev/null | sed -n '1s/.* //p')
	for test; do
		n=$((n + 1))
		name="$(basename "$test") with glibc ${version:-of $folder}"
		if [ -z "$version" ]; then
			echo "ok $n $name # SKIP no $folder, see selftests/guest/setup"
			continue
		fi
		ran=1
		if log=$(run $folder "$test" 2>&1); then
			echo "ok $n $name"
		else
			bad=1
			printf '%s\n' "$log" | tail -n 30 | sed 's/^/# /'
			echo "not ok $n $name"
		fi
	done
done
[ -n "$ran" ] || exit 4
exit $bad
