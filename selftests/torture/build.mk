# SPDX-License-Identifier: GPL-2.0-or-later
#
# Captures where an unwinder can hang. The test starts the program some times; `make torture` 100,000
# times, and does the same to libunwind and to the C library's backtrace().
#
#   make torture          start a program that captures everywhere, STARTS (100000) times; hours

TORTURE		:= $(B)/selftests/torture
TORTURE_FLAGS	:= $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -pthread
STARTS		?= 100000

$(TORTURE)/torture: selftests/torture/torture.c $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TORTURE_FLAGS) -Ilibshstk -Iuapi -o $@ $^ -ldl
$(TORTURE)/torture-libunwind: selftests/torture/torture.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TORTURE_FLAGS) -DUNWIND -o $@ $< -ldl -lunwind
$(TORTURE)/torture-libc: selftests/torture/torture.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TORTURE_FLAGS) -DGCC -o $@ $< -ldl
$(TORTURE)/plugin.so: selftests/torture/plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TORTURE_FLAGS) -fPIC -shared -o $@ $<

selftests/torture/torture_test.py: | $(TORTURE)/torture $(TORTURE)/plugin.so

CHECK	+= selftests/torture/torture_test.py

.PHONY: torture run-torture
torture:
	$(Q).ci/packages-install build check bench
	$(Q)$(MAKE) --no-print-directory run-torture
run-torture: $(TORTURE)/torture $(TORTURE)/torture-libc $(TORTURE)/plugin.so
	-$(Q)$(MAKE) --no-print-directory $(TORTURE)/torture-libunwind
	$(Q)selftests/torture/torture_test.py --starts $(STARTS)
