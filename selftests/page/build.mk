# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the HTML page of a profile, in Debian's Chromium without a window.
#
#   make bench-page  measure how long a page of 50,000 frames takes to appear, and each action in it

selftests/page/page_test.py: | $(EXPORT_B)/driver-native $(B)/shstk

CHECK += selftests/page/page_test.py

bench-page: $(EXPORT_B)/driver-native
	$(Q)B=$(B) selftests/page/bench.py

.PHONY: bench-page
