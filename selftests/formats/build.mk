# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the formats of unwind information. Each is compared with another reader of the same file.

FORMATS_B := $(B)/selftests/formats

$(FORMATS_B)/rules: selftests/formats/rules.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -MMD -MP -o $@ $< $(B)/lib/native/libshstk.a

selftests/formats/sframe_test.py: | $(FORMATS_B)/rules $(B)/lib/native/libshstk.a $(B)/lib/arm64/libshstk.a

CHECK += selftests/formats/sframe_test.py

$(FORMATS_B)/cfi_test: selftests/formats/cfi_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -O2 -g $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $< $(B)/lib/native/libshstk.a

CHECK += $(FORMATS_B)/cfi_test

# The functions of this program itself have no .eh_frame.
$(FORMATS_B)/debugdata: selftests/formats/debugdata.c $(B)/libshstk.a $(B)/libshstk-symbol.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -O2 -g -gz=none -fomit-frame-pointer \
		-fno-asynchronous-unwind-tables -fno-unwind-tables -Wl,--build-id -MMD -MP -o $@ $< \
		$(B)/libshstk-symbol.a $(B)/libshstk.a $(SYMBOL_LIBS)

selftests/formats/debug_test.sh: | $(FORMATS_B)/debugdata

CHECK += selftests/formats/debug_test.sh

$(FORMATS_B)/stale_test: selftests/formats/stale_test.c selftests/formats/stale.S $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -O2 -g $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $(filter %.c %.S,$^) $(B)/libshstk.a

ifeq ($(ARCH),x86)
CHECK += $(FORMATS_B)/stale_test
endif

JIT_SRC := selftests/formats/jit_test.c
JIT_FLAGS := $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -O2 -g $(KSELFTEST_FLAGS) -Wno-unused-parameter -MMD -MP

$(FORMATS_B)/jit_test: $(JIT_SRC) $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(JIT_FLAGS) -o $@ $< $(B)/libshstk.a

$(FORMATS_B)/arm64/jit_test: $(JIT_SRC) $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(JIT_FLAGS) -static -o $@ $< $(B)/lib/arm64/libshstk.a

CHECK += $(FORMATS_B)/jit_test
USER_arm64 += $(FORMATS_B)/arm64/jit_test

$(FORMATS_B)/jit_burn: selftests/formats/jit_burn.c selftests/formats/jit.h
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -o $@ $< \
		-Wl,--no-as-needed -lgcc_s

selftests/formats/jit_record_test.sh: | $(FORMATS_B)/jit_burn $(B)/shstk $(TOOL_OBJECTS)

CHECK += selftests/formats/jit_record_test.sh
