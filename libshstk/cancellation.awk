# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Usage: nm -A -u OBJECT... | awk -f cancellation.awk cancellation.points -
#
# Fails if an object calls a cancellation point, and prints the object and the name.

NR == FNR {
	if (!/^#/)
		point[$1] = 1
	next
}
{
	name = $NF
	sub(/@.*/, "", name)
	sub(/^__(isoc99_|isoc23_)?/, "", name)
	sub(/(64)?(_2|_chk|_nocancel)?$/, "", name)
	if (name in point) {
		print $0 ": a cancellation point, see libshstk/sys.h" >"/dev/stderr"
		found = 1
	}
}
END { exit found }
