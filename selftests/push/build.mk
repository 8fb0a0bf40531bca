# SPDX-License-Identifier: GPL-2.0-or-later
#
# `shstk push` and `shstk record --push`: what servers receive, and servers that misbehave, on this
# machine.

$(B)/selftests/push/allocate: selftests/push/allocate.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -fno-builtin -o $@ $<

$(B)/selftests/push/resource_test: selftests/push/resource_test.c $(B)/symbol/native/otlp_resource.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o,$^)

$(B)/selftests/push/counts_test: selftests/push/counts_test.c $(B)/tools/push/spool.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o,$^) -lz

selftests/push/push_test.py selftests/push/symbols_test.py selftests/push/parca_test.py: | $(B)/shstk $(TOOL_PROGRAMS)
selftests/push/container_test.py: | $(B)/shstk
selftests/push/spool_test.py selftests/push/service_test.py: | $(B)/shstk $(TOOL_OBJECTS) $(TOOL_PROGRAMS) $(B)/selftests/push/allocate

CHECK += selftests/push/push_test.py selftests/push/symbols_test.py selftests/push/spool_test.py selftests/push/service_test.py \
	selftests/push/container_test.py selftests/push/parca_test.py $(B)/selftests/push/resource_test $(B)/selftests/push/counts_test
