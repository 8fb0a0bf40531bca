# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of `shstk record --heap` on programs whose allocations are known.

HEAP_B		:= $(B)/selftests/heap
HEAP_TEST_FLAGS	:= $(WARN) -D_GNU_SOURCE -O1 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -fno-builtin -pthread

$(HEAP_B)/target: selftests/heap/target.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -std=c++17 $(HEAP_TEST_FLAGS) -MMD -MP -o $@ $< -ldl
$(HEAP_B)/own: selftests/heap/own_allocator.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -o $@ $<
$(HEAP_B)/own_hidden: selftests/heap/own_allocator.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -fvisibility=hidden -o $@ $<
$(HEAP_B)/own_stripped: selftests/heap/own_allocator.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -fvisibility=hidden -s -o $@ $<
$(HEAP_B)/interceptors: selftests/heap/interceptors.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -rdynamic -o $@ $< -ldl
$(HEAP_B)/neighbour: selftests/heap/neighbour.c tools/inject/heap/region.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -I. -o $@ $<
# Programs that are recorded with probes while they run.
HEAP_STEADY	:= $(addprefix $(HEAP_B)/,steady steady-static steady-stripped)
$(HEAP_STEADY): selftests/heap/steady.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) $(if $(findstring -st,$@),-static) \
		$(if $(findstring stripped,$@),-s) -o $@ $<
$(HEAP_B)/holes: selftests/heap/holes.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -pthread -o $@ $<
# This needs no C library of 32 bits.
$(HEAP_B)/narrow: selftests/heap/narrow.S
	@mkdir -p $(@D)
	$(call say,AS,$@)$(CC) -m32 -c -o $@.o $< && ld -m elf_i386 -o $@ $@.o
HEAP_NARROW	:= $(if $(filter x86,$(ARCH)),$(HEAP_B)/narrow)
$(HEAP_B)/cases.sh: selftests/loader/cases.sh
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(HEAP_B)/probed_test: selftests/heap/probed_test.sh $(HEAP_STEADY) $(HEAP_NARROW) $(HEAP_B)/holes $(HEAP_B)/cases.sh \
		$(B)/selftests/record/nobody all
	$(Q)cp $< $@

$(HEAP_B)/plugin-%.so: selftests/heap/plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -shared -fPIC -DNAME=plugin_$* -o $@ $<

# The same library with three kinds of binding: at the first call; when it is loaded; without a
# table of jumps.
HEAP_DEEP_lazy		:= -Wl,-z,lazy
HEAP_DEEP_now		:= -Wl,-z,now -Wl,-z,relro
HEAP_DEEP_direct	:= -fno-plt -Wl,-z,now -Wl,-z,relro
$(HEAP_B)/plugin-deep-%.so: selftests/heap/deep.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -shared -fPIC -o $@ $< $(HEAP_DEEP_$*)

$(HEAP_B)/host: selftests/heap/host.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(HEAP_TEST_FLAGS) -o $@ $< -ldl
$(HEAP_B)/plugin.so: selftests/heap/plugin.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -std=c++17 $(HEAP_TEST_FLAGS) -shared -fPIC -static-libstdc++ \
		-static-libgcc -o $@ $<

selftests/heap/heap_test.py: | $(HEAP_B)/target $(HEAP_B)/own $(HEAP_B)/host \
	$(HEAP_B)/plugin.so $(HEAP_B)/interceptors $(HEAP_B)/neighbour $(HEAP_B)/own_hidden $(HEAP_B)/own_stripped \
	$(HEAP_B)/plugin-deep-lazy.so $(HEAP_B)/plugin-deep-now.so $(HEAP_B)/plugin-deep-direct.so \
	$(HEAP_B)/plugin-one.so $(HEAP_B)/plugin-two.so $(B)/selftests/record/target-musl all

CHECK	+= selftests/heap/heap_test.py $(HEAP_B)/probed_test

$(HEAP_B)/stack_test: selftests/heap/stack_test.c $(B)/tools/probes/probe_programs.o \
		$(B)/shstk-heap.bpf.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP \
		-DOBJECT='"$(abspath $(B))/shstk-heap.bpf.o"' -o $@ $< $(B)/tools/probes/probe_programs.o -lelf
ifneq ($(and $(HAS_CLANG),$(filter x86,$(ARCH))),)
CHECK	+= $(HEAP_B)/stack_test
endif

$(HEAP_B)/functions_test: selftests/heap/functions_test.c $(B)/tools/elf/functions.o \
		$(B)/tools/elf/symbols.o $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)
CHECK	+= $(HEAP_B)/functions_test

# Tests with a kernel's release and with shadow stacks that the test makes up.
$(HEAP_B)/safety_test: selftests/heap/safety_test.c $(B)/tools/probes/safety.o $(B)/tools/proc/tasks.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -Wl,--wrap=uname -Wl,--wrap=shadow_stacks_any \
		-o $@ $< $(filter %.o,$^)
CHECK	+= $(HEAP_B)/safety_test

# The agent, linked into a program in which it cannot record: unchanged, and with undefined
# behaviour ending the program. The address sanitizer cannot be used, as it has a malloc() of its
# own.
HEAP_FULL	:= $(HEAP_B)/full_test $(HEAP_B)/full_test-undefined
$(HEAP_B)/full_test-undefined: HEAP_FULL_FLAGS := -fsanitize=undefined -fsanitize-undefined-trap-on-error
$(HEAP_FULL): selftests/heap/full_test.c $(HEAP_SRC) $(B)/lib/native/libshstk.a \
		$(wildcard tools/inject/heap/*.h tools/inject/common/*.h tools/inject/*.h) \
		| $(B)/libshstk-heap.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(HEAP_CFLAGS) $(HEAP_FULL_FLAGS) \
		-DAGENT='"$(B)/libshstk-heap.so"' -o $@ $(filter %.c %.a,$^) -pthread -ldl
CHECK	+= $(HEAP_FULL)

# Servers at work, while probes are set and removed: some ten minutes.
selftests/heap/rounds_test.py: | all
.PHONY: heap-rounds
heap-rounds: selftests/heap/rounds_test.py
	$<

# For the arm64 guest, with the command that selftests/record builds for it.
HEAP_ARM64	:= $(HEAP_B)/arm64
HEAP_GUEST_CXX	:= $(ARM64)g++ -std=c++17 $(HEAP_TEST_FLAGS) -mbranch-protection=standard

$(HEAP_ARM64)/libshstk-heap.so: $(HEAP_SRC) $(wildcard tools/inject/heap/*.h tools/inject/common/*.h tools/inject/*.h) $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(TOOL_CFLAGS) $(HEAP_CFLAGS) -shared \
		-o $@ $(HEAP_SRC) $(B)/lib/arm64/libshstk.a \
		$(call gcs_link,$(ARM64)) $(HEAP_LDFLAGS)
	$(call gcs_mark,$(ARM64),$@)
$(HEAP_ARM64)/libshstk-backtrace.so: $(BACKTRACE_SRC) tools/inject/backtrace/drop.h $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(TOOL_CFLAGS) $(BACKTRACE_CFLAGS) -shared \
		-o $@ $(BACKTRACE_SRC) $(B)/lib/arm64/libshstk.a \
		$(call gcs_link,$(ARM64)) $(BACKTRACE_LDFLAGS)
	$(call gcs_mark,$(ARM64),$@)
$(HEAP_ARM64)/target: selftests/heap/target.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(HEAP_GUEST_CXX) -o $@ $< -ldl
$(HEAP_ARM64)/walkers: selftests/backtrace/walkers.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(HEAP_GUEST_CXX) -o $@ $< -ldl

HEAP_GUEST	:= selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk \
	$(addprefix $(HEAP_ARM64)/,libshstk-heap.so libshstk-backtrace.so target walkers)
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64/usr/lib/aarch64-linux-gnu/libdw.so.1),)
GUEST_arm64-7.2	+= $(foreach m,software hardware,\
	heap:$(m)=selftests/heap/guest.sh,$(m)$(subst $() ,,$(HEAP_GUEST:%=$(comma)%)))
endif

# Probes are tested in a guest whose kernel has them, as this machine's may not.
$(eval $(call probes_objects,$(HEAP_ARM64),ARM64))
HEAP_STEADY_ARM64	:= $(HEAP_STEADY:$(HEAP_B)/%=$(HEAP_ARM64)/%)
$(HEAP_STEADY_ARM64): selftests/heap/steady.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(CSTD) $(HEAP_TEST_FLAGS) $(if $(findstring -st,$@),-static) \
		$(if $(findstring stripped,$@),-s) -o $@ $<
$(HEAP_ARM64)/nobody: selftests/record/nobody.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(CSTD) $(HEAP_TEST_FLAGS) -static -o $@ $<
HEAP_PROBED_arm64	:= selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk \
	$(addprefix $(HEAP_ARM64)/,shstk-heap.bpf.o nobody) $(HEAP_STEADY_ARM64)
ifneq ($(and $(HAS_CLANG),$(wildcard $(SHSTK_CACHE)/root-arm64/usr/lib/aarch64-linux-gnu/libdw.so.1)),)
GUEST_arm64-7.2	+= heap:probed=selftests/heap/probed_test.sh$(subst $() ,,$(HEAP_PROBED_arm64:%=$(comma)%))
endif

# A guest with two CPUs and a kernel that preempts programs at probes.
HEAP_PROBED_x86	:= selftests/loader/cases.sh $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1 \
	$(filter %/shstk-heap.bpf.o %/shstk-probed.bpf.o,$(TOOL_OBJECTS)) $(B)/selftests/record/nobody \
	$(HEAP_STEADY) $(HEAP_NARROW) $(HEAP_B)/holes
ifneq ($(and $(HAS_CLANG),$(filter x86,$(ARCH)),$(wildcard $(SHSTK_CACHE)/root-x86)),)
GUEST_x86-qemu-7.2	+= heap:stack=$(HEAP_B)/stack_test,$(B)/shstk-heap.bpf.o \
	heap:probed=selftests/heap/probed_test.sh$(subst $() ,,$(HEAP_PROBED_x86:%=$(comma)%))
# The kernel of this guest shows the probes' system calls to filters.
GUEST_x86-qemu-6.12	+= heap:probed=selftests/heap/probed_test.sh,refusals$(subst $() ,,$(HEAP_PROBED_x86:%=$(comma)%))
# A program with shadow stacks is tested in a guest that has them, which is slow.
HEAP_SHADOW_x86	:= $(HEAP_PROBED_x86) $(B)/libshstk-start.so
GUEST_x86-7.2	+= heap:probed=selftests/heap/probed_test.sh,shadow$(subst $() ,,$(HEAP_SHADOW_x86:%=$(comma)%))
endif
