# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of captures of the calling thread's own stack, built with every compiler and sanitizer, and
# for arm64.

CAPTURE_TESTS := cancel_test capture_test signal_test thread_test module_test
CAPTURE_PLUGINS := $(addprefix plugin_,small.so large.so nohdr.so nosections.so \
	debugframe.so nocfi.so apart.so)

CAPTURE_CFLAGS := $(WARN) -Wno-unused-parameter -Wno-sign-compare \
	$(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -fomit-frame-pointer

native_TEST_WARN := -Wno-clobbered
asan_TEST_WARN := -Wno-clobbered
tsan_TEST_WARN := -Wno-clobbered
arm64_TEST_WARN := -Wno-clobbered
native_CXX := $(CXX)
clang_CXX := $(CLANG)++
asan_CXX := $(CXX)
tsan_CXX := $(CXX)
arm64_CXX := $(ARM64)g++

CAPTURE_PLUGIN_CC = $(Q)mkdir -p $(B)/capture/$(1) && $($(1)_CC) $(CSTD) $(CAPTURE_CFLAGS) -O2 -fPIC -shared

# Arguments: $(1) the variant, $(2) more flags for linking.
define capture_variant
$(B)/capture/$(1)/%.o: selftests/capture/%.c selftests/capture/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(1)_CC) $(CSTD) $(CAPTURE_CFLAGS) $$($(1)_TEST_WARN) \
		$$($(1)_FLAGS) -MMD -MP -c -o $$@ $$<

$(B)/capture/$(1)/%.o: selftests/capture/%.cc selftests/capture/build.mk
	@mkdir -p $$(@D)
	$$(call say,CXX,$$@)$$($(1)_CXX) $(CAPTURE_CFLAGS) $$($(1)_FLAGS) -MMD -MP -c -o $$@ $$<

$(B)/capture/$(1)/%_test: $(B)/capture/$(1)/%_test.o $(B)/lib/$(1)/libshstk.a
	$$(call say,LD,$$@)$$($(1)_CXX) $$($(1)_FLAGS) $(2) -o $$@ \
		$$(filter %.o %.a,$$^) -pthread -ldl

$(B)/capture/$(1)/capture_test $(B)/capture/$(1)/signal_test: $(B)/capture/$(1)/tree.o
$(B)/capture/$(1)/module_test: $(CAPTURE_PLUGINS:%=$(B)/capture/$(1)/%)

$(B)/capture/$(1)/plugin_small.so: selftests/capture/plugin.c
	$(call CAPTURE_PLUGIN_CC,$(1)) -DFRAME=64 -o $$@ $$<
$(B)/capture/$(1)/plugin_large.so: selftests/capture/plugin.c
	$(call CAPTURE_PLUGIN_CC,$(1)) -DFRAME=112 -o $$@ $$<
$(B)/capture/$(1)/plugin_nohdr.so: selftests/capture/plugin.c
	$(call CAPTURE_PLUGIN_CC,$(1)) -DFRAME=64 -Wl,--no-eh-frame-hdr -o $$@ $$<
# plugin_apart.so has a gap between its segments, in which other code can be mapped.
$(B)/capture/$(1)/plugin_apart.so: selftests/capture/plugin.c
	$(call CAPTURE_PLUGIN_CC,$(1)) -DFRAME=64 -Wl,-z,max-page-size=0x10000 -o $$@ $$<
# plugin_nosections.so has zeros for e_shoff, e_shnum and e_shstrndx in its ELF header, as if it had
# no sections.
$(B)/capture/$(1)/plugin_nosections.so: $(B)/capture/$(1)/plugin_small.so
	$(Q)cp $$< $$@.tmp
	$(Q)for at in 40 60 62; do dd if=/dev/zero of=$$@.tmp bs=1 seek=$$$$at \
		count=$$$$([ $$$$at = 40 ] && echo 8 || echo 2) conv=notrunc status=none; done
	$(Q)mv $$@.tmp $$@
$(B)/capture/$(1)/plugin_debugframe.so: selftests/capture/plugin.c
	$(call CAPTURE_PLUGIN_CC,$(1)) -DFRAME=64 -g -fno-asynchronous-unwind-tables \
		-fno-unwind-tables -Wl,--no-eh-frame-hdr -o $$@ $$<
$(B)/capture/$(1)/plugin_nocfi.so: selftests/capture/plugin.c
	$(call CAPTURE_PLUGIN_CC,$(1)) -DFRAME=64 -fno-asynchronous-unwind-tables \
		-fno-unwind-tables -fno-omit-frame-pointer -o $$@ $$<

.SECONDARY: $(CAPTURE_TESTS:%=$(B)/capture/$(1)/%.o) $(B)/capture/$(1)/tree.o
endef

$(eval $(call capture_variant,native,))
$(eval $(call capture_variant,clang,))
$(eval $(call capture_variant,asan,))
$(eval $(call capture_variant,tsan,))
$(eval $(call capture_variant,arm64,-static))

$(B)/capture/musl/musl_test: selftests/capture/musl_test.c selftests/capture/tree.c \
		$(B)/lib/musl/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(musl_CC) $(CSTD) $(CAPTURE_CFLAGS) $(musl_FLAGS) -static -o $@ $^

# paths_test links functions that have no unwind information, and wraps two functions of the library
# to count their calls.
PATHS_NOINFO := selftests/unwind/noinfo_functions$(if $(filter x86,$(ARCH)),,-arm64).S
$(B)/capture/native/paths_test: selftests/capture/paths_test.c $(PATHS_NOINFO) \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(CAPTURE_CFLAGS) -O1 -g -Ilibshstk -MMD -MP -o $@ $^ -ldl \
		-Wl,--wrap=epilogue_rules -Wl,--wrap=vma_query

$(B)/capture/native/guesses_test: selftests/capture/guesses_test.c $(PATHS_NOINFO) \
		$(if $(filter x86,$(ARCH)),selftests/formats/stale.S) $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(CAPTURE_CFLAGS) -O1 -g -Ilibshstk -MMD -MP -o $@ $^ -ldl \
		-Wl,--wrap=cursor_step

$(B)/capture/native/answers_%.so: selftests/capture/answers_test.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) -DPLUGIN=$* -shared -fPIC -nostdlib -o $@ $<
$(B)/capture/native/answers_test: selftests/capture/answers_test.c $(B)/lib/native/libshstk.a \
		| $(B)/capture/native/answers_1.so $(B)/capture/native/answers_2.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(CAPTURE_CFLAGS) -O1 -g -Ilibshstk -Ilibshstk/arch/$(ARCH) -MMD -MP -o $@ \
		$(filter %.c %.a,$^) -ldl -Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags
CHECK	+= $(B)/capture/native/answers_test
$(B)/capture/native/scratch_test: selftests/capture/scratch_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(CAPTURE_CFLAGS) -O1 -g -Ilibshstk -MMD -MP -o $@ \
		$(filter %.c %.a,$^) -ldl -Wl,--wrap=scratch_call

$(B)/capture/native/stub_test: selftests/capture/stub_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(CAPTURE_CFLAGS) -O1 -g -Ilibshstk -MMD -MP -o $@ \
		$(filter %.c %.a,$^) -ldl

# The sanitizer variants leave out nomalloc_test, as a sanitizer's allocator must not be replaced,
# and exception_test.
CHECK += $(foreach v,native clang asan tsan,$(CAPTURE_TESTS:%=$(B)/capture/$(v)/%)) \
	$(B)/capture/native/exception_test $(B)/capture/clang/exception_test \
	$(B)/capture/native/nomalloc_test $(B)/capture/native/paths_test \
	$(B)/capture/native/guesses_test $(B)/capture/native/scratch_test \
	$(B)/capture/native/stub_test $(B)/capture/native/stack_test \
	$(B)/capture/native/symbols_test.sh \
	$(B)/capture/native/return_probe_test \
	$(B)/capture/musl/musl_test
# The arm64 programs are static and run in user-mode emulation; tests that need dlopen() are left
# out.
USER_arm64 += $(addprefix $(B)/capture/arm64/,cancel_test capture_test signal_test thread_test exception_test \
	stack_test)

$(B)/capture/native/symbols_test.sh: selftests/capture/symbols_test.sh \
		$(B)/lib/native/libshstk.so $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)cp $< $@
