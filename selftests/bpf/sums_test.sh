#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the counts that walk.sh keeps when many samples are compared: they are added only to those of the
# same walk, and a chain that differs from its copy fails. No sample is taken.

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
. "$here/cases.sh"

if [ ! -f "$here/shstk-walk.bpf.o" ]; then
	echo "1..0 # SKIP the walk in BPF was not built"
	exit 4
fi

# adds SAMPLES: runs walk.sh on the counts in "sums" until so many samples were compared.
adds()
{
	"$here/walk_test.sh" "many=$1" "sums=$folder/sums" >out 2>&1
}

# line SAMPLES EQUAL DIFFERENT: the counts of one run of bash.
line()
{
	echo "$1 $2 0 $3 $1 0 0 0" >>sums/bash.sum
}

echo TAP version 13
mkdir sums
adds 0 && [ -s sums/walk ]
point $? "counts begin with what the walk is"
line 600 600 0
line 400 400 0
adds 1000 && grep -q '^ok .*1000 samples are compared' out && grep -q '^ok .*bash: 0 of 1000 chains' out
point $? "counts of two runs are added"
line 1000 998 2
! adds 2000 && grep -q '^not ok .*bash: 2 of 2000 chains' out
point $? "a chain that differs fails"
cp sums/bash.sum before
echo 'another walk' >sums/walk
! adds 4000 && grep -q '^not ok .*same walk' out && cmp -s sums/bash.sum before
point $? "nothing is added to the counts of another walk"
echo "1..$count"
exit $failed
