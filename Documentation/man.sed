# SPDX-License-Identifier: GPL-2.0-or-later
#
# Changes the output of rst2man so that mandoc -Tlint accepts it: listings use .EX and .EE instead
# of a font that only troff has, no space is added where there is some already, and the first line
# gets a date and a version.

/^\.nf$/{
	N
	s/^\.nf\n\.ft C$/.EX/
}
/^\.ft P$/{
	N
	s/^\.ft P\n\.fi$/.EE/
}
# A section begins with a paragraph, so it needs no other one.
/^\.S[HS] /{
	n
	/^\.sp$/d
}
s/^\(\.TH "[^"]*" "\{0,1\}[0-9]"\{0,1\}\) "" ""/\1 "@DATE@" "shstk @VERSION@"/
# Allows a line to end within this name, because some columns are too narrow for it.
s/kernel\.perf_event_paranoid/kernel.\\:perf_event_paranoid/g
# The lines of tables are too short to be justified.
/^\.TH /a\
.ad l
