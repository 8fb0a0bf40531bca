#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests that every C and C++ source is formatted as clang-format does with .clang-format. Only the
# clang-format of Debian 12 is used, because other versions differ in places. Prints KTAP, one point
# for each folder.
#
#   format_test             tests only
#   format_test --write     formats the files that differ

set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
while [ ! -f .clang-format ]; do
	[ "$PWD" != / ] || { echo "Bail out! no .clang-format above ${BASH_SOURCE[0]}"; exit 1; }
	cd .. || exit 1
done

major=14
write=
case ${1-} in
	'') ;;
	--write) write=1;;
	*) echo "usage: ${0##*/} [--write]" >&2; exit 2;;
esac

# clang-format does not know assembler (.S); the kernel's build makes *.mod.c.
sources()	# FOLDER
{
	find "$1" -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp' \) ! -name '*.mod.c' -print0 |
		LC_ALL=C sort -z
}

refuse()	# WHY
{
	if [ -n "$write" ]; then
		echo "${0##*/}: $1" >&2
		exit 1
	fi
	echo "1..0 # SKIP $1"
	exit 4
}

format=
for name in clang-format-$major clang-format; do
	version=$($name --version 2>/dev/null) || continue
	case $version in *"version $major."*) format=$name; break;; esac
	found=$version
done
[ -n "$format" ] || refuse "the tree is formatted by clang-format $major, Debian's package \
clang-format-$major; here is ${found-none}"

folders=(kmod uapi bpf libshstk bindings tools selftests examples)
if [ -n "$write" ]; then
	for folder in "${folders[@]}"; do
		sources "$folder"
	done | xargs -0 "$format" -i
	exit
fi

echo "TAP version 13"
echo "1..${#folders[@]}"
nr=0 failed=0
for folder in "${folders[@]}"; do
	nr=$((nr + 1))
	if said=$(sources "$folder" | xargs -0 "$format" --dry-run -Werror 2>&1); then
		echo "ok $nr sources are formatted: $folder"
		continue
	fi
	# Prints the first difference in each file; make format mends all.
	awk -F: '!/-Wclang-format-violations/ || !seen[$1]++ && sub(/: error.*/, ": make format")' \
		<<<"$said" | grep -E '^[^[:space:]]*:|^[^[:space:]]*clang-format' | head -20 | sed 's/^/# /'
	echo "not ok $nr sources are formatted: $folder"
	failed=1
done
exit $failed
