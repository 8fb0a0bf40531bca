# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds with other Debian suites, compilers and flags.
#
#   make check-builds  build on Debian 12, 13 and 14, with their compilers and other flags, and
#                   run the quick half of the tests of each build that this machine can run;
#                   BUILDS names some of selftests/builds/matrix, --short takes less tests
#   make check-packages  make Debian's packages in SUITES, check them by lintian, blhc and others,
#                   install, test, upgrade and remove them there; the RPMs in one of them

BUILDS	?=
SUITES	?=

selftests/builds/packaging_test.py: | all man

CHECK	+= selftests/builds/packaging_test.py

check-builds:
	$(Q).ci/packages-install guest
	$(Q)selftests/builds/run $(BUILDS)

check-packages:
	$(Q).ci/packages-install guest
	$(Q)selftests/builds/packages $(SUITES)

.PHONY: check-builds check-packages
