# SPDX-License-Identifier: GPL-2.0-or-later
#
# The broker in guests: another architecture, and the kernels of Debian 12 and 13.
# selftests/guest/build.mk reads it, because prerequisites are expanded twice here.

BROKER_ARM64 := $(BROKER_B)/arm64
$(BROKER_ARM64)/broker_test: selftests/broker/broker_test.c selftests/broker/facts.h \
		selftests/broker/client.h tools/perf/borrow_protocol.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g $(CPPFLAGS_COMMON) \
		-o $@ $(filter %.c,$^)
$(BROKER_ARM64)/race_test: selftests/broker/race_test.c selftests/broker/facts.h \
		$$(RECORD_TOOLS) $$(RECORD_SYMBOL) $$(RECORD_ARM64)/left_out.o $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(Q)$(ARM64)objcopy --weaken-symbol=main $(RECORD_ARM64)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(RECORD_CC_ARM64) -Wl,--wrap=syscall -o $@ $< $@-shstk.o \
		$(filter-out %/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) \
		-Wl,--allow-shlib-undefined \
		$(addprefix $(RECORD_ROOT)/,libdw.so.1 libelf.so.1 liblzma.so.5 libz.so.1 libzstd.so.1) -lm

# $(1) folder of the tests, $(2) the command, $(3) what it needs besides
broker_steps = broker:attacks=$(1)/broker_test$(subst $() ,,$(addprefix $(comma),$(2) $(3))) \
	broker:races=$(1)/race_test$(addprefix $(comma),$(3))
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64/usr/lib/aarch64-linux-gnu/libdw.so.1),)
GUEST_arm64-7.2 += $(call broker_steps,$(BROKER_ARM64),$(B)/selftests/record/arm64/shstk,)
endif
ifneq ($(and $(filter x86,$(ARCH)),$(wildcard $(SHSTK_CACHE)/root-x86)),)
BROKER_X86 := $(call broker_steps,$(BROKER_B),$(B)/shstk,$(B)/selftests/loader/libprotobuf-c.so.1)
GUEST_x86-qemu-7.2 += $(BROKER_X86)
GUEST_x86-qemu-6.12-deb12 += $(BROKER_X86)
endif
