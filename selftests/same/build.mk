# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs of Debian, with and without `shstk record`.

SAME_B		:= $(B)/selftests/same

$(SAME_B)/programs.py: selftests/same/programs.py
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(SAME_B)/same_test: selftests/same/same_test $(SAME_B)/programs.py all
	@mkdir -p $(@D)
	$(Q)cp $< $@

CHECK	+= $(SAME_B)/same_test

#   make check-same  all programs, for hours; as root it installs what is missing
.PHONY: check-same
check-same: $(SAME_B)/same_test
	$< --long
