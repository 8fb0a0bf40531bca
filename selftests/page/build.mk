# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the HTML page of a profile, in Debian's Chromium without a window: page_test.py by the
# browser's own protocol, walk_test.py by playwright-core, which it gets from npm.
#
#   make bench-page  measure how long a page of 50,000 frames takes to appear, and each action in it

PAGE_TESTS := selftests/page/page_test.py selftests/page/walk_test.py

$(PAGE_TESTS): | $(EXPORT_B)/driver-native $(B)/shstk

CHECK += $(PAGE_TESTS)

bench-page: $(EXPORT_B)/driver-native
	$(Q)B=$(B) selftests/page/bench.py

.PHONY: bench-page
