# SPDX-License-Identifier: GPL-2.0-or-later
#
# `shstk record --heap` on programs whose allocations are known.

HEAP_B		:= $(B)/selftests/heap
HEAP_TEST_FLAGS	:= $(WARN) -D_GNU_SOURCE -O1 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -fno-builtin -pthread

$(HEAP_B)/target: selftests/heap/target.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -std=c++17 $(HEAP_TEST_FLAGS) -MMD -MP -o $@ $< -ldl
$(HEAP_B)/own: selftests/heap/own.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -o $@ $<
$(HEAP_B)/own_hidden: selftests/heap/own.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -fvisibility=hidden -o $@ $<
$(HEAP_B)/own_stripped: selftests/heap/own.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -fvisibility=hidden -s -o $@ $<
$(HEAP_B)/plugin-%.so: selftests/heap/plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -shared -fPIC -DNAME=plugin_$* -o $@ $<

$(HEAP_B)/heap_test: selftests/heap/heap_test $(HEAP_B)/target $(HEAP_B)/own \
		$(HEAP_B)/own_hidden $(HEAP_B)/own_stripped \
		$(HEAP_B)/plugin-one.so $(HEAP_B)/plugin-two.so all
	$(Q)cp $< $@

CHECK	+= $(HEAP_B)/heap_test
