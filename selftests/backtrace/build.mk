# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests that compare libshstk-backtrace.so with the functions that it replaces.

DROP_B		:= $(B)/selftests/backtrace
DROP_FLAGS	:= $(WARN) -D_GNU_SOURCE -O1 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -pthread

$(DROP_B)/walkers: selftests/backtrace/walkers.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -std=c++17 $(DROP_FLAGS) -MMD -MP -o $@ $< -ldl
# The program lies at a fixed address, so that addresses of different runs can be compared.
$(DROP_B)/allocs $(DROP_B)/burn: $(DROP_B)/%: selftests/backtrace/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(DROP_FLAGS) -no-pie -o $@ $<

$(DROP_B)/cancel: selftests/record/cancel.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(DROP_FLAGS) -o $@ $< -ldl

$(DROP_B)/true_walks.so: selftests/backtrace/true_walks.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(DROP_FLAGS) -O2 -foptimize-sibling-calls -fPIC -shared \
		-o $@ $< -ldl

$(DROP_B)/replaced: selftests/backtrace/replaced.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(DROP_FLAGS) -o $@ $< -ldl
# Two objects that differ in where their functions begin, and in nothing that decides on their place.
$(DROP_B)/functions%.so: selftests/backtrace/functions.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -DSHIFT=$* -fPIC -shared -nostdlib -o $@ $<

selftests/backtrace/backtrace_test.py: | $(DROP_B)/replaced $(DROP_B)/functions4.so $(DROP_B)/functions12.so \
	$(DROP_B)/true_walks.so $(DROP_B)/walkers $(DROP_B)/allocs $(DROP_B)/burn \
	$(DROP_B)/cancel $(B)/selftests/record/target-musl all

CHECK	+= selftests/backtrace/backtrace_test.py
