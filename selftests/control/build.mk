# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the calls that control shadow stacks. On this machine they test what the calls refuse, in
# guests everything.

CONTROL := $(B)/selftests/control
CONTROL_CFLAGS := $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -I. $(KSELFTEST_FLAGS)

CONTROL_H := selftests/control/child.h tools/inject/preload/ssp.h

$(CONTROL)/%_test: selftests/control/%_test.c $(CONTROL_H) $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CONTROL_CFLAGS) -static -o $@ $(filter-out %.h,$^) -pthread
$(CONTROL)/arm64/%_test: selftests/control/%_test.c $(CONTROL_H) $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(arm64_CC) $(CONTROL_CFLAGS) -static -o $@ $(filter-out %.h,$^) -pthread
$(CONTROL)/riscv/%_test: selftests/control/%_test.c $(CONTROL_H) $(B)/lib/riscv/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(HARDWARE_CC_riscv) $(HARDWARE_CFLAGS_riscv) $(CONTROL_CFLAGS) -static -o $@ $(filter-out %.h,$^) -pthread
$(CONTROL)/throw_test: selftests/control/throw_test.cc tools/inject/preload/ssp.h $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) $(WARN) -O2 -g -I. -static -o $@ $(filter-out %.h,$^) -pthread
# This program is not static, because exceptions need an unwinder that knows GCS: the guest has one.
$(CONTROL)/arm64/throw_test: selftests/control/throw_test.cc tools/inject/preload/ssp.h \
		$(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(ARM64)g++ $(WARN) -O2 -g -I. -o $@ $(filter-out %.h,$^) -pthread

CHECK += $(CONTROL)/absent_test $(CONTROL)/throw_test
GUEST_x86 += $(CONTROL)/absent_test $(CONTROL)/control_test $(CONTROL)/throw_test
GUEST_x86-qemu += $(CONTROL)/absent_test
GUEST_arm64 += $(CONTROL)/arm64/absent_test $(CONTROL)/arm64/control_test
GUEST_arm64-7.2 += $(CONTROL)/arm64/throw_test
GUEST_riscv += $(CONTROL)/riscv/absent_test $(CONTROL)/riscv/control_test
