# SPDX-License-Identifier: GPL-2.0-or-later
#
# What rst2man writes, as mandoc -Tlint wants it: listings by .EX and .EE instead of a font by a
# name that only troff has, no space where there is some, and a date and a version in the first line.

/^\.nf$/{
	N
	s/^\.nf\n\.ft C$/.EX/
}
/^\.ft P$/{
	N
	s/^\.ft P\n\.fi$/.EE/
}
# A section begins with a paragraph anyway.
/^\.S[HS] /{
	n
	/^\.sp$/d
}
s/^\(\.TH "[^"]*" "\{0,1\}[0-9]"\{0,1\}\) "" ""/\1 "@DATE@" "shstk @VERSION@"/
# A line may end within this name, which some column is too narrow for.
s/kernel\.perf_event_paranoid/kernel.\\:perf_event_paranoid/g
# Lines of tables are too short to be filled evenly.
/^\.TH /a\
.ad l
