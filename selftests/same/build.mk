# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs programs of Debian with and without `shstk record`.

selftests/same/same_test.py selftests/same/ended_test.py: | all

CHECK	+= selftests/same/same_test.py selftests/same/ended_test.py

# Where the sources of bash, perl and git are kept.
SAME_SOURCES ?= $(SHSTK_CACHE)/same

#   make check-same  run all programs with and without shstk record, for hours, with the own tests of
#                   bash, perl and git; as root it installs packages that are missing
.PHONY: check-same
check-same: selftests/same/same_test.py
	$(Q)selftests/same/sources $(SAME_SOURCES)
	SAME_SOURCES=$(SAME_SOURCES) $< --long
