# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs programs of Debian with and without `shstk record`.

selftests/same/same_test.py: | all

CHECK	+= selftests/same/same_test.py

#   make check-same  run all programs with and without shstk record, for hours; as root it
#                   installs packages that are missing
.PHONY: check-same
check-same: selftests/same/same_test.py
	$< --long
