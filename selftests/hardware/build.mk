# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of captures from real shadow stacks, in the guests.
#
#   make random-guest     run random programs: a million traces, and 10000 contexts, on
#                         arm64 and on x86, hardware against software

HARDWARE_CFLAGS := $(CSTD) $(WARN) -O2 -g $(CPPFLAGS_COMMON) -Iselftests/capture \
	$(KSELFTEST_FLAGS) -fomit-frame-pointer
HARDWARE_LIB_x86 := native
HARDWARE_LIB_arm64 := arm64
HARDWARE_LIB_riscv := riscv
HARDWARE_CFLAGS_arm64 := -mbranch-protection=standard
HARDWARE_CC_x86 := $(GUEST_CC_x86)
HARDWARE_CC_arm64 := $(GUEST_CC_arm64)
# On riscv, functions push return addresses themselves, if their compiler knows how to.
HARDWARE_CC_riscv := selftests/guest/in forky riscv64-linux-gnu-gcc
HARDWARE_CFLAGS_riscv := -march=rv64gc_zicsr_zicfiss -fcf-protection=return

# count_test also counts the instructions of a walk by frame pointers.
HARDWARE_CFLAGS_count := -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer

# $(1) architecture
define hardware_arch
$(B)/hardware/$(1)/%_test: selftests/hardware/%_test.c \
		selftests/capture/tree.c $(B)/lib/$$(HARDWARE_LIB_$(1))/libshstk.a
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(HARDWARE_CC_$(1)) $$(HARDWARE_CFLAGS) $$(HARDWARE_CFLAGS_$(1)) \
		$$(HARDWARE_CFLAGS_$$*) -Iselftests/facts/$(1) -static -pthread -o $$@ $$^
$(B)/hardware/$(1)/step_run: selftests/hardware/step_run.c \
		$(B)/lib/$$(HARDWARE_LIB_$(1))/libshstk.a
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(HARDWARE_CFLAGS) $$(HARDWARE_CFLAGS_$(1)) \
		-Iselftests/facts/$(1) -static -o $$@ $$^

GUEST_$(1) += hardware=$(B)/hardware/$(1)/hardware_test
endef
$(foreach a,x86 arm64 riscv,$(eval $(call hardware_arch,$(a))))

# riscv kernels have no single stepping.
$(foreach a,x86 arm64,$(eval GUEST_$(a) += hardware-step=$(B)/hardware/$(a)/step_test))

# On arm64 a program cannot step itself.
GUEST_x86 += hardware-trap=$(B)/hardware/x86/trap_test

# Steps through the start of a program in Debian's ld.so, but not all of it, because steps are slow.
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64),)
GUEST_arm64-7.2 += hardware-start=$(B)/hardware/arm64/step_run,-e,GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=3,3000,$(B)/selftests/record/arm64/throw,0
endif

# Random programs use the guest's C library. The command starts them; the tests of the loader copy
# the command and what it needs into the guest.
$(B)/hardware/%/random_test: selftests/hardware/random_test.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(subst gcc,g++,$(HARDWARE_CC_$*)) $(WARN) -O2 -g $(CPPFLAGS_COMMON) \
		$(HARDWARE_CFLAGS_$*) -o $@ $< $(B)/lib/$(HARDWARE_LIB_$*)/libshstk.a -pthread -ldl
$(B)/hardware/x86/random_test: $(B)/lib/native/libshstk.a
$(B)/hardware/arm64/random_test: $(B)/lib/arm64/libshstk.a

RANDOM_FILES_x86 := selftests/loader/cases.sh $(addprefix $(B)/,shstk libshstk-start.so \
	hardware/x86/random_test)
RANDOM_FILES_arm64 := selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk \
	$(B)/preload/arm64/libshstk-start.so $(B)/hardware/arm64/random_test
random_step = hardware:random=selftests/hardware/random.sh$(subst $() ,,$(2:%=$(comma)%)$(RANDOM_FILES_$(1):%=$(comma)%))
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64/usr/lib/aarch64-linux-gnu/libdw.so.1),)
GUEST_arm64-7.2 += $(call random_step,arm64,2 3000 20)
endif
ifneq ($(and $(filter x86,$(ARCH)),$(wildcard $(SHSTK_CACHE)/root-x86)),)
GUEST_x86-7.2 += $(call random_step,x86,1 2000 10)
endif

RANDOM_LONG := 10 100000 1000
random-guest: $(RANDOM_FILES_arm64) $(RANDOM_FILES_x86) $(B)/selftests/loader/libprotobuf-c.so.1
	$(Q)selftests/guest/run arm64-7.2 --out $(B)/guest/random-arm64 --timeout 36000 \
		'$(subst $(comma), ,$(call random_step,arm64,$(RANDOM_LONG)))'
	$(Q)selftests/guest/run x86-7.2 --out $(B)/guest/random-x86 --timeout 36000 \
		--sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader \
		'$(subst $(comma), ,$(call random_step,x86,$(RANDOM_LONG)))'
.PHONY: random-guest

# Bochs always counts instructions, QEMU only with --icount.
GUEST_x86 += hardware-count=$(B)/hardware/x86/count_test

GUEST_ICOUNT += hardware-count=$(B)/hardware/arm64/count_test
$(B)/guest/check-arm64-icount: FORCE $$(if $$(call guest_ready,arm64-7.2),\
		$(B)/guest/init-arm64 $$(foreach s,$$(GUEST_ICOUNT),$$(call guest_file,$$(s))))
	@mkdir -p $(@D)
	@printf '#!/bin/sh\nexec selftests/guest/run arm64-7.2 --icount --out %s%s\n' \
		$(B)/guest/arm64-icount "$(foreach s,$(GUEST_ICOUNT), '$(subst $(comma), ,$(s))')" >$@
	@chmod +x $@

CHECK_GUEST += $(if $(CHECK_GOALS),$(B)/guest/check-arm64-icount)

# reader_test gives the reader ordinary memory, so it needs no shadow stack.
$(B)/hardware/reader_test: selftests/hardware/reader_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(HARDWARE_CFLAGS) -Ilibshstk/arch/$(ARCH) -o $@ $^
$(B)/hardware/arm64/reader_test: selftests/hardware/reader_test.c $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(GUEST_CC_arm64) $(HARDWARE_CFLAGS) -Ilibshstk/arch/arm64 -static -o $@ $^

$(B)/hardware/riscv/reader_test: selftests/hardware/reader_test.c $(B)/lib/riscv/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(HARDWARE_CC_riscv) $(HARDWARE_CFLAGS) -Ilibshstk/arch/riscv -static -o $@ $^

# sigreturn_test needs no shadow stack either.
$(B)/hardware/sigreturn_test: selftests/hardware/sigreturn_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(HARDWARE_CFLAGS) -o $@ $^
GUEST_arm64 += hardware-sigreturn=$(B)/hardware/arm64/sigreturn_test

CHECK += $(B)/hardware/reader_test $(if $(filter x86 arm64,$(ARCH)),$(B)/hardware/sigreturn_test)
USER_arm64 += $(B)/hardware/arm64/reader_test
GUEST_riscv += hardware-reader=$(B)/hardware/riscv/reader_test
