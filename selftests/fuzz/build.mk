# SPDX-License-Identifier: GPL-2.0-or-later
#
# A fuzz target for each parser of foreign bytes, by libFuzzer.
#
#   make fuzz       run each for FUZZ_SECONDS (default 60), keeping what was
#                   found in build/fuzz/NAME.corpus
#
# make check runs each with a fixed seed for a few seconds.

FUZZ_B := $(B)/selftests/fuzz
FUZZ_SECONDS ?= 60
FUZZ_SYMBOL := perfmap maps text elf debugdata

fuzz_CC := $(CLANG)
fuzz_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
$(eval $(call symbol_variant,fuzz))

$(FUZZ_SYMBOL:%=$(FUZZ_B)/%_fuzz): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c $(B)/symbol/fuzz/libshstk-symbol.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $< $(B)/symbol/fuzz/libshstk-symbol.a $(SYMBOL_LIBS)

# The ELF target starts from a small program with all kinds of tables.
$(FUZZ_B)/elf_seed: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -O2 -g -gz=none -nostdlib -static -Wl,--build-id,--eh-frame-hdr -o $@ $<

selftests/fuzz/run: | $(FUZZ_SYMBOL:%=$(FUZZ_B)/%_fuzz) $(FUZZ_B)/elf_seed

# The parsers of the capture library, fuzzed.
fuzz_ARCH := $(ARCH)
$(eval $(call lib_variant,fuzz))

FUZZ_CORE := $(FUZZ_B)/rules_fuzz $(FUZZ_B)/image_fuzz
FUZZ_CORE_SEEDS := $(FUZZ_B)/rules.stamp $(FUZZ_B)/image_seed $(FUZZ_B)/debugdata_seed

$(FUZZ_CORE): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $< $(B)/lib/fuzz/libshstk.a

# Both start from the same small program; the sections also from one with
# .debug_frame, and from selftests/fuzz/rules, what SFrame's assemblers wrote for
# selftests/formats/special.S.
$(FUZZ_B)/image_seed: $(FUZZ_B)/elf_seed
	$(Q)cp $< $@

$(FUZZ_B)/rules.stamp: selftests/fuzz/elf_seed.c selftests/fuzz/rules_seed.py $(FUZZ_B)/elf_seed
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(CC) -O2 -g -gz=none -nostdlib -static -fno-asynchronous-unwind-tables \
		-o $(FUZZ_B)/debug_frame $<
	$(Q)selftests/fuzz/rules_seed.py $(FUZZ_B)/debug_frame $(FUZZ_B)/rules_seed
	$(Q)selftests/fuzz/rules_seed.py $(FUZZ_B)/elf_seed $(FUZZ_B)/rules_seed
	$(Q)touch $@

# Compressed .debug_frame, and .gnu_debugdata with another.
$(FUZZ_B)/debugdata_seed: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(CC) -O2 -g -gz=none -nostdlib -static -fno-asynchronous-unwind-tables -o $@.mini $<
	$(Q)xz -kf $@.mini
	$(Q)$(OBJCOPY) --add-section .gnu_debugdata=$@.mini.xz --compress-debug-sections $@.mini $@
	$(Q)rm -f $@.mini $@.mini.xz

fuzz selftests/fuzz/run: | $(FUZZ_CORE) $(FUZZ_CORE_SEEDS)

CHECK += selftests/fuzz/run

fuzz: | $(FUZZ_SYMBOL:%=$(FUZZ_B)/%_fuzz) $(FUZZ_B)/elf_seed
	$(Q)selftests/fuzz/run --seconds $(FUZZ_SECONDS)

.PHONY: fuzz
