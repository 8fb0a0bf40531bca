# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of stacks from elsewhere: core files, perf.data files and dumps; and, in the guests,
# processes and core files with shadow stacks.

OFF		:= $(B)/selftests/offline
OFF_FLAGS	:= $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -pthread

$(OFF)/%: selftests/offline/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OFF_FLAGS) -o $@ $<
$(OFF)/arm64/%: selftests/offline/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(arm64_CC) $(OFF_FLAGS) -mbranch-protection=standard -o $@ $<
$(OFF)/arm64/%-static: selftests/offline/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(arm64_CC) $(OFF_FLAGS) -static -o $@ $<

# A program for the kernel's own callchains. It has frame pointers, except in the innermost function
# of whole-leaf.
OFF_WHOLE	:= -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-stack-protector \
	-nostdlib -static
$(OFF)/whole: OFF_LEAF := -O0
$(OFF)/whole-leaf: OFF_LEAF := -O1 -momit-leaf-frame-pointer
$(OFF)/whole $(OFF)/whole-leaf: selftests/offline/whole.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(OFF_WHOLE) $(OFF_LEAF) -o $@ $<
$(OFF)/both.so: selftests/kmod/both.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OFF_FLAGS) -fPIC -shared -o $@ $<

# The whole command for arm64, which selftests/record builds if there are libraries for it.
OFF_SHSTK	:= $(if $(wildcard $(SHSTK_CACHE)/root-arm64),$(B)/selftests/record/arm64/shstk)
OFF_ARM64	:= selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk $(OFF)/arm64/stand
OFF_X86		:= selftests/loader/cases.sh $(B)/shstk $(B)/libshstk-start.so $(OFF)/stand
GUEST_arm64-7.2	+= offline=selftests/offline/guest.sh$(subst $() ,,$(OFF_ARM64:%=$(comma)%))
OFF_PERF	:= selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk $(OFF)/arm64/burn
GUEST_arm64-7.2	+= perf-data=selftests/offline/guest_perf.sh$(subst $() ,,$(OFF_PERF:%=$(comma)%))
GUEST_OPTIONS_arm64-7.2 += --prog root-arm64:/usr/bin/perf
$(B)/guest/check-arm64-7.2: $(if $(OFF_SHSTK),$(OFF_ARM64) $(OFF_PERF))
ifeq ($(ARCH),x86)
GUEST_x86-7.2	+= offline=selftests/offline/guest.sh$(subst $() ,,$(OFF_X86:%=$(comma)%))
$(B)/guest/check-x86-7.2: $(OFF_X86)
endif

# On riscv, functions push return addresses to the shadow stack themselves, if they are compiled so.
# The command is not in the guest: this machine reads the core file.
$(OFF)/riscv/stand: selftests/offline/stand.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(HARDWARE_CC_riscv) $(HARDWARE_CFLAGS_riscv) $(OFF_FLAGS) -Ilibshstk -static -o $@ $<
GUEST_riscv += core=selftests/offline/riscv.sh,$(OFF)/riscv/stand
GUEST_OPTIONS_riscv += --after riscv-core=selftests/offline/riscv_core
$(B)/guest/check-riscv-7.2: all

# The tests that run on this machine.
selftests/offline/callchain_test.py: | $(OFF)/whole all
selftests/offline/core_test.py selftests/offline/perf_test.py: | $(OFF)/stand $(OFF)/burn \
		$(OFF)/arm64/stand-static $(OFF)/whole $(OFF)/whole-leaf $(OFF)/both.so $(OFF_SHSTK) \
		$(OFF)/judge $(B)/selftests/record/jit all

CHECK	+= selftests/offline/core_test.py selftests/offline/perf_test.py selftests/offline/callchain_test.py

# What judges callchains of the kernel, for the tests of kmod/ and bpf/, too. It is linked with all
# of the command but its main().
$(OFF)/judge: selftests/offline/judge.c selftests/offline/chains.c $(TOOL_OBJ) \
		$(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.c %.o %.a,$^)) $(TOOL_LIBS)

# A test of what it counts.
$(OFF)/chains_test: selftests/offline/chains_test.c selftests/offline/chains.c \
		selftests/offline/chains.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OFF_FLAGS) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -o $@ $(filter %.c,$^)
CHECK	+= $(OFF)/chains_test

# Fuzz targets for the readers of core files, perf.data files, samples and code made at run time.
# selftests/fuzz/run finds them.
OFF_FUZZ	:= $(FUZZ_B)/core_fuzz $(FUZZ_B)/perfdata_fuzz $(FUZZ_B)/sample_fuzz \
	$(FUZZ_B)/hotspot_fuzz $(FUZZ_B)/codecache_fuzz $(FUZZ_B)/crash_fuzz $(FUZZ_B)/caught_fuzz
$(OFF_FUZZ): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c tools/elf/image.h \
		$(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c,$^) $(filter %.a,$^) -ldw -lelf -lzstd -llzma
$(FUZZ_B)/core_fuzz: tools/elf/core_file.c tools/elf/core_file.h tools/reason.h \
	libshstk/symbol/build_id.c libshstk/symbol/elf_headers.c tools/crash/minidump.c tools/crash/files.c tools/crash/crash.h \
	tools/elf/image.c
$(FUZZ_B)/crash_fuzz: tools/crash/head.c tools/crash/crash.h
$(FUZZ_B)/caught_fuzz: private fuzz_FLAGS += -Wl,--wrap=maps_open
$(FUZZ_B)/caught_fuzz: tools/crash/caught_maps.c tools/crash/crash.h \
	tools/proc/maps.c tools/proc/tasks.c
$(FUZZ_B)/perfdata_fuzz: $(wildcard tools/perf/data*.[ch]) tools/reason.h \
	$(foreach f,regs unpack_records,tools/perf/$(f).c tools/perf/$(f).h)
$(FUZZ_B)/sample_fuzz: $(foreach f,records sample regs,tools/perf/$(f).c tools/perf/$(f).h)
$(FUZZ_B)/hotspot_fuzz: tools/java/hotspot.c tools/java/hotspot.h
$(FUZZ_B)/codecache_fuzz: tools/java/codecache.c tools/java/codecache.h \
		tools/java/method.c tools/java/method.h tools/java/inlined.c tools/java/inlined.h \
		tools/java/vmstructs.c tools/java/vmstructs.h tools/elf/symbols.c \
		$(patsubst %,libshstk/symbol/%.c,budget elf elf_headers pool)
# convert_fuzz has all that makes a profile of a perf.data file.
CONVERT_FUZZ_OBJ := $(patsubst %.c,$(FUZZ_B)/%.o,$(wildcard $(addprefix tools/,\
	repeats.c convert/*.c perf/*.c proc/*.c java/*.c elf/*.c)))
$(CONVERT_FUZZ_OBJ): $(FUZZ_B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) -MMD -MP -c -o $@ $<
$(FUZZ_B)/convert_fuzz: selftests/fuzz/convert_fuzz.c $(CONVERT_FUZZ_OBJ) \
		$(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/core_seed-x86: selftests/offline/seed.py
	@mkdir -p $(@D)
	$(Q)selftests/offline/seed.py $(@D)
$(FUZZ_B)/crash_seed-x86: $(FUZZ_B)/core_seed-x86
	$(Q)cp $< $@
# caught_fuzz starts from the mappings of two programs.
$(FUZZ_B)/caught_seed: selftests/offline/build.mk
	@mkdir -p $(@D)
	$(Q){ cat /proc/self/maps; printf '\0'; python3 -c 'print(open("/proc/self/maps").read())'; } >$@
fuzz selftests/fuzz/run: | $(OFF_FUZZ) $(FUZZ_B)/convert_fuzz $(FUZZ_B)/core_seed-x86 \
	$(FUZZ_B)/crash_seed-x86 $(FUZZ_B)/caught_seed

# Dumps, which the library alone unwinds.
$(OFF)/dump_test: selftests/offline/dump_test.c $(B)/lib/asan/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OFF_FLAGS) $(asan_FLAGS) -Ilibshstk -Iuapi -o $@ $^
$(OFF)/dump.sh: selftests/offline/dump.sh $(OFF)/dump_test $(OFF)/dump $(OFF)/arm64/dump-static
	$(Q)cp $< $@
CHECK	+= $(OFF)/dump.sh
