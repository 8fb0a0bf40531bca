# SPDX-License-Identifier: GPL-2.0-or-later
#
# Other suites, compilers and flags.
#
#   make check-builds  build on Debian 12, 13 and 14, with their compilers and other flags, and
#                   run the quick half of the tests on each suite; BUILDS names some of
#                   selftests/builds/matrix

BUILDS	?=

check-builds:
	$(Q).ci/packages-install guest
	$(Q)selftests/builds/run $(BUILDS)

.PHONY: check-builds
