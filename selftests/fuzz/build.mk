# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds a target of libFuzzer for each parser of foreign bytes.
#
#   make fuzz       run each fuzz target for FUZZ_SECONDS (60), and keep the inputs that were found
#                   in build/selftests/fuzz/NAME.corpus
#
# selftests/fuzz/run --minimise then puts the few inputs that matter into selftests/fuzz/corpus,
# from which all runs begin.
#
# make check runs each with a fixed seed for a few seconds.

FUZZ_B := $(B)/selftests/fuzz
FUZZ_SECONDS ?= 60
FUZZ_SYMBOL := perfmap maps text elf dwarf debugdata dwp remote profile

fuzz_CC := $(CLANG)
fuzz_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
symbol_fuzz_FLAGS = $(fuzz_FLAGS)
$(eval $(call symbol_variant,fuzz))

$(FUZZ_SYMBOL:%=$(FUZZ_B)/%_fuzz): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c $(B)/symbol/fuzz/libshstk-symbol.a \
		$(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $< $(B)/symbol/fuzz/libshstk-symbol.a \
		$(B)/lib/fuzz/libshstk.a $(SYMBOL_LIBS)

# elf_fuzz starts from a small program with all kinds of tables, and from a library with PLT stubs.
$(FUZZ_B)/elf_seed: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -O2 -g -gz=none -nostdlib -static -Wl,--build-id,--eh-frame-hdr -o $@ $<

$(FUZZ_B)/elf_seed-plt: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -O2 -nostdlib -shared -fPIC -Wl,-z,separate-code -s -o $@ $<

# remote_fuzz starts from an image of the same program in memory.
$(FUZZ_B)/remote_seed: $(FUZZ_B)/elf_seed
	$(Q)cp $< $@

# dwarf_fuzz starts from debug information of two compilers, and of Debian's packages.
$(FUZZ_B)/dwarf.stamp: selftests/fuzz/dwarf_seed.py
	@mkdir -p $(@D)
	$(call say,GEN,$@)$< $(FUZZ_B)/dwarf_seed
	$(Q)touch $@

selftests/fuzz/run: | $(FUZZ_SYMBOL:%=$(FUZZ_B)/%_fuzz) $(FUZZ_B)/elf_seed $(FUZZ_B)/elf_seed-plt \
	$(FUZZ_B)/remote_seed $(FUZZ_B)/dwarf.stamp

# The parsers of the capture library, fuzzed.
fuzz_ARCH := $(ARCH)
$(eval $(call lib_variant,fuzz))

FUZZ_CORE := $(FUZZ_B)/rules_fuzz $(FUZZ_B)/image_fuzz $(FUZZ_B)/go_fuzz
FUZZ_CORE_SEEDS := $(FUZZ_B)/rules.stamp $(FUZZ_B)/image_seed $(FUZZ_B)/debugdata_seed $(FUZZ_B)/go_seed

$(FUZZ_CORE): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $< $(B)/lib/fuzz/libshstk.a

# go_fuzz starts from tables of Go programs, one of each form.
$(FUZZ_B)/go_seed: selftests/fuzz/go_seed.c selftests/go/forms.h selftests/go/program.h
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -o $@.make $<
	$(Q)$@.make $@
	$(Q)rm $@.make; touch $@

# goroutine_fuzz gets the memory of such programs. What reads a living process reads that, too.
$(FUZZ_B)/goroutine_fuzz: selftests/fuzz/goroutine_fuzz.c tools/convert/living_golabels.c $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-Wl,--wrap=shstk_space_add_pid -Wl,--wrap=shstk_read_process \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) $(filter %.a,$^)

$(FUZZ_B)/goroutine_seed: selftests/fuzz/goroutine_seed.py
	@mkdir -p $(@D)
	$(call say,GEN,$@)$< $@

fuzz selftests/fuzz/run: | $(FUZZ_B)/goroutine_fuzz $(FUZZ_B)/goroutine_seed

# image_fuzz and rules_fuzz start from the same small program. rules_fuzz also starts from one with
# .debug_frame, and from selftests/fuzz/rules, which SFrame's assemblers wrote for
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

# debugdata_fuzz starts from .debug_frame compressed in three ways, and .gnu_debugdata with another
# .debug_frame.
$(FUZZ_B)/debugdata_seed: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(CC) -O2 -g -gz=none -nostdlib -static -fno-asynchronous-unwind-tables -o $@.mini $<
	$(Q)xz -kf $@.mini
	$(Q)$(OBJCOPY) --add-section .gnu_debugdata=$@.mini.xz --compress-debug-sections $@.mini $@
	$(Q)for i in zstd zlib-gnu; do \
		printf '.cfi_sections .debug_frame\n.include "selftests/formats/special.S"\n' | \
		$(CC) -c -x assembler -Wa,--compress-debug-sections=$$i -o $@-$$i - || exit 1; done
	$(Q)rm -f $@.mini $@.mini.xz

fuzz selftests/fuzz/run: | $(FUZZ_CORE) $(FUZZ_CORE_SEEDS)

# kernel_rules_fuzz gives tables for shstk_perf.ko to the module's own check. It starts from what
# the command compiles of the small program, and of one with other kinds of frames.
$(FUZZ_B)/kernel_rules_fuzz: selftests/fuzz/kernel_rules_fuzz.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $<

$(FUZZ_B)/kinds_seed: selftests/fuzz/kinds_seed.c selftests/kmod/rules_frames.h
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -O2 -I. -nostdlib -static -Wl,--build-id -o $@ $<

# rules_frames.h has the frames of two architectures.
FUZZ_RULES	:= $(patsubst %,$(FUZZ_B)/kernel_rules_seed-%,elf $(if $(filter x86 arm64,$(ARCH)),kinds))
$(FUZZ_RULES): $(FUZZ_B)/kernel_rules_seed-%: $(FUZZ_B)/%_seed $(B)/shstk
	$(call say,GEN,$@)$(B)/shstk rules compile -q -o $@ $<

fuzz selftests/fuzz/run: | $(FUZZ_B)/kernel_rules_fuzz $(FUZZ_RULES)

# compile_fuzz makes such tables of any file. It starts from the same programs, and from one with .debug_frame.
FUZZ_COMPILE	:= $(patsubst %,tools/rules/%.c,compile compile_go compile_known compile_rule compile_table crt \
	rule_rows stub undescribed)
$(FUZZ_B)/compile_fuzz: selftests/fuzz/compile_fuzz.c $(FUZZ_COMPILE) $(B)/symbol/fuzz/libshstk-symbol.a \
		$(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/compile_seed: $(FUZZ_B)/elf_seed $(FUZZ_B)/rules.stamp $(if $(filter x86 arm64,$(ARCH)),$(FUZZ_B)/kinds_seed)
	$(Q)cp $(FUZZ_B)/debug_frame $@-debug_frame
	$(if $(filter x86 arm64,$(ARCH)),$(Q)cp $(FUZZ_B)/kinds_seed $@-kinds)
	$(Q)cp $< $@

# functions_fuzz finds functions in any file. It starts from a small program, and from a library.
$(FUZZ_B)/functions_fuzz: selftests/fuzz/functions_fuzz.c $(patsubst %,tools/elf/%.c,allocator functions symbols) \
		$(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/functions_seed: $(FUZZ_B)/elf_seed $(FUZZ_B)/elf_seed-plt
	$(Q)cp $(FUZZ_B)/elf_seed-plt $@-plt
	$(Q)cp $< $@

fuzz selftests/fuzz/run: | $(FUZZ_B)/compile_fuzz $(FUZZ_B)/compile_seed $(FUZZ_B)/functions_fuzz \
	$(FUZZ_B)/functions_seed

# filter_fuzz gives filters of system calls to the agent.
$(FUZZ_B)/filter_fuzz: selftests/fuzz/filter_fuzz.c tools/inject/agent/filter.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^)

fuzz selftests/fuzz/run: | $(FUZZ_B)/filter_fuzz

# cache_fuzz gets the same tables in a file of the cache, behind a byte that says what is repaired;
# see cache_fuzz.c.
$(FUZZ_B)/cache_fuzz: selftests/fuzz/cache_fuzz.c tools/rules/cache.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $<

FUZZ_CACHE	:= $(FUZZ_RULES:$(FUZZ_B)/kernel_rules_%=$(FUZZ_B)/cache_%)
$(FUZZ_CACHE): $(FUZZ_B)/cache_%: $(FUZZ_B)/kernel_rules_%
	$(Q){ printf '\003'; head -c 96 /dev/zero; cat $<; } >$@

fuzz selftests/fuzz/run: | $(FUZZ_B)/cache_fuzz $(FUZZ_CACHE)

# python_fuzz gets what a BPF program copied of functions of Python; likewise the others.
FUZZ_LANGUAGES	:= python php ruby
$(FUZZ_LANGUAGES:%=$(FUZZ_B)/%_fuzz): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c tools/language/%/function.c \
		tools/language/%/versions.c selftests/fuzz/function_fuzz.h
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c,$^)

$(FUZZ_LANGUAGES:%=$(FUZZ_B)/%_seed): $(FUZZ_B)/%_seed: selftests/fuzz/%_seed.py
	@mkdir -p $(@D)
	$(Q)$< $@

fuzz selftests/fuzz/run: | $(FUZZ_LANGUAGES:%=$(FUZZ_B)/%_fuzz) $(FUZZ_LANGUAGES:%=$(FUZZ_B)/%_seed)

# v8_fuzz gets the same of functions of V8, and of its machine code.
$(FUZZ_B)/v8_fuzz: selftests/fuzz/v8_fuzz.c $(patsubst %,tools/language/v8/%.c,baseline calls frame function positions \
		safepoints states versions) selftests/fuzz/function_fuzz.h $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c %.a,$^)

$(FUZZ_B)/v8_seed: selftests/fuzz/v8_seed.py
	@mkdir -p $(@D)
	$(Q)$< $@ $@-machine $@-baseline

fuzz selftests/fuzz/run: | $(FUZZ_B)/v8_fuzz $(FUZZ_B)/v8_seed

# awaits_fuzz gets the memory of a Python that has tasks.
$(FUZZ_B)/awaits_fuzz: selftests/fuzz/awaits_fuzz.c $(patsubst %,tools/language/python/%.c,awaits function versions) \
		$(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) $(filter %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/awaits_seed: selftests/fuzz/awaits_seed.py
	@mkdir -p $(@D)
	$(Q)$< $@

fuzz selftests/fuzz/run: | $(FUZZ_B)/awaits_fuzz $(FUZZ_B)/awaits_seed

# context_fuzz gets what programs publish for readers outside, variable_fuzz the files in which their
# variable may be.
$(FUZZ_B)/context_fuzz: selftests/fuzz/context_fuzz.c tools/convert/context_labels.c
$(FUZZ_B)/variable_fuzz: selftests/fuzz/variable_fuzz.c tools/convert/context_variable.c \
		tools/elf/symbols.c
$(FUZZ_B)/context_fuzz $(FUZZ_B)/variable_fuzz: $(B)/symbol/fuzz/libshstk-symbol.a \
		$(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) $(filter %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/context_seed: selftests/fuzz/context_seed.py
	@mkdir -p $(@D)
	$(Q)$< $@

# A word of memory follows the file.
$(FUZZ_B)/variable_seed-%: $(B)/selftests/context/%.so
	@mkdir -p $(@D)
	$(Q){ cat $<; printf '\001\0\0\0\0\0\0\001'; } >$@

fuzz selftests/fuzz/run: | $(FUZZ_B)/context_fuzz $(FUZZ_B)/variable_fuzz $(FUZZ_B)/context_seed \
	$(patsubst %,$(FUZZ_B)/variable_seed-%,desc desc_own gnu gnu_own initial)

# annotate_fuzz gets source files, and what objdump prints.
$(FUZZ_B)/annotate_fuzz: selftests/fuzz/annotate_fuzz.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $<

fuzz selftests/fuzz/run: | $(FUZZ_B)/annotate_fuzz

# answer_fuzz gets what a server says of debug files, as JSON.
$(FUZZ_B)/answer_fuzz: selftests/fuzz/answer_fuzz.c tools/push/send/answer.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^)

$(FUZZ_B)/answer_seed: selftests/fuzz/build.mk
	@mkdir -p $(@D)
	$(Q)printf '%s' '{"shouldInitiateUpload":true,"reason":"\u0026","a":[null,-1.5e3,{"b":{}}],' \
		'"uploadInstructions":{"uploadId":"1","uploadStrategy":"UPLOAD_STRATEGY_GRPC",' \
		'"signedUrl":"https:\/\/h"}}' >$@

fuzz selftests/fuzz/run: | $(FUZZ_B)/answer_fuzz $(FUZZ_B)/answer_seed

# broker_fuzz gets packets of users and of the broker. It includes what answers users.
$(FUZZ_B)/broker_fuzz: selftests/fuzz/broker_fuzz.c $(patsubst %,tools/broker/%.c,held_events leases) tools/rules/subordinate.c \
		$(patsubst %,tools/perf/%.c,borrow borrow_reply event regs rings) $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-Wl,--wrap=syscall -fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) $(filter %.a,$^)

$(FUZZ_B)/broker_seed: selftests/fuzz/broker_seed.c tools/perf/borrow_protocol.h $(wildcard bpf/*.h)
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -o $@.make $<
	$(Q)$@.make $@
	$(Q)rm $@.make

fuzz selftests/fuzz/run: | $(FUZZ_B)/broker_fuzz $(FUZZ_B)/broker_seed

# spool_fuzz gets files of a spool. It starts from a request whose beginning it makes, from a whole one, and from
# counts that are followed by more.
$(FUZZ_B)/spool_fuzz: selftests/fuzz/spool_fuzz.c tools/push/spool.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) -lz

$(FUZZ_B)/spool_seed: selftests/fuzz/build.mk
	@mkdir -p $(@D)
	$(Q){ printf '\003\001\010\0\004\0asent 7\n'; printf 'a=b\0body'; } >$@
	$(Q){ printf '\001\001\010\0\0\0asent 7\n'; \
		printf 'shstk-request 1 00000000 00000001 e8b7be43\na'; } >$@-whole
	$(Q)printf '\003\001\140\002\004\0a%600s\nsent 7\n' >$@-longer

fuzz selftests/fuzz/run: | $(FUZZ_B)/spool_fuzz $(FUZZ_B)/spool_seed

# subordinate_fuzz gets files as /etc/subuid and /etc/passwd.
$(FUZZ_B)/subordinate_fuzz: selftests/fuzz/subordinate_fuzz.c tools/rules/subordinate.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^)

$(FUZZ_B)/subordinate_seed: selftests/fuzz/build.mk
	@mkdir -p $(@D)
	$(Q)printf '%s\n' a:100:10 a:105:10 root:300:10 7:400:1 x:4294967294:1 '#:1' >$@
	$(Q)printf '\0root:x:0:0::/:\na:x:1000:1000::/:\n' >>$@

fuzz selftests/fuzz/run: | $(FUZZ_B)/subordinate_fuzz $(FUZZ_B)/subordinate_seed

# golang_fuzz gets programs of which it is asked whether Go made them. It starts from two with the section
# that Go makes: one that needs a library, and one that needs none.
$(FUZZ_B)/golang_fuzz: selftests/fuzz/golang_fuzz.c tools/elf/golang.c \
		$(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) $(filter %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/golang_seed: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,GEN,$@)for i in alone with-c; do \
		$(CC) -O2 -shared -fPIC -nostdlib -Wl,--no-as-needed -o $@-$$i $< \
			$$([ $$i = alone ] || echo -lc) || exit 1; \
		echo Go >$@.mark; $(OBJCOPY) --add-section .go.buildinfo=$@.mark $@-$$i || exit 1; done
	$(Q)rm $@.mark; touch $@

fuzz selftests/fuzz/run: | $(FUZZ_B)/golang_fuzz $(FUZZ_B)/golang_seed

# dump_fuzz starts from dumps of two programs: x86 with frames of every kind, and arm64.
FUZZ_DUMP := $(FUZZ_B)/dump-x86 $(FUZZ_B)/dump-arm64

$(FUZZ_B)/dump-x86: selftests/formats/special.S
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -nostdlib -static -Wl,--eh-frame-hdr,-e,0 -o $@ $<

$(FUZZ_B)/dump-arm64: selftests/fuzz/elf_seed.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc -O2 -nostdlib -static -mbranch-protection=standard \
		-Wl,--eh-frame-hdr -o $@ $<

$(FUZZ_B)/dump.stamp: selftests/fuzz/dump_seed.py $(FUZZ_DUMP)
	$(Q)$< $(FUZZ_DUMP) $(FUZZ_B)/dump_seed
	$(Q)touch $@

$(FUZZ_B)/dump_fuzz: selftests/fuzz/dump_fuzz.c $(B)/lib/fuzz/libshstk.a $(FUZZ_DUMP)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-DDUMP_X86='"$(FUZZ_B)/dump-x86"' -DDUMP_ARM64='"$(FUZZ_B)/dump-arm64"' \
		-fsanitize=fuzzer -MMD -MP -o $@ $< $(B)/lib/fuzz/libshstk.a

# What puts functions into the stacks that agents took.
FUZZ_FUNCTIONS	:= tools/record/agent_functions.c $(patsubst %,tools/language/%.c,hidden_variable languages place) \
		$(wildcard tools/language/*/*.c) tools/elf/symbols.c tools/convert/context_variable.c tools/repeats.c tools/elf/object.c

# interpreter_fuzz: processes that may have an interpreter. One input is a file as it is.
$(FUZZ_B)/interpreter_fuzz: selftests/fuzz/interpreter_fuzz.c tools/language/read.c $(FUZZ_FUNCTIONS) \
		selftests/language/no_program.h $(wildcard tools/language/*.h tools/language/*/*.h) \
		$(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/interpreter_seed: selftests/fuzz/interpreter_seed.py selftests/fuzz/interpreter_fuzz.c $(FUZZ_B)/elf_seed \
		$(patsubst %,tools/language/%/recognise.c,php python ruby v8)
	@mkdir -p $(@D)
	$(call say,GEN,$@)$< $@ $(FUZZ_B)/elf_seed

fuzz selftests/fuzz/run: | $(FUZZ_B)/interpreter_fuzz $(FUZZ_B)/interpreter_seed

# mutex_fuzz: threads, and memory with the mutexes for which they wait. Functions have the names that it says.
$(FUZZ_B)/mutex_fuzz: selftests/fuzz/mutex_fuzz.c tools/trace/mutex.c $(B)/symbol/fuzz/libshstk-symbol.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-Wl,--wrap=shstk_symproc_lookup \
		-fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c,$^) $(filter %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/mutex_seed: selftests/fuzz/mutex_seed.py
	@mkdir -p $(@D)
	$(call say,GEN,$@)$< $@

fuzz selftests/fuzz/run: | $(FUZZ_B)/mutex_fuzz $(FUZZ_B)/mutex_seed

# ring_fuzz: what agents send to shstk record.
$(FUZZ_B)/ring_fuzz: selftests/fuzz/ring_fuzz.c $(wildcard tools/record/agent/agent_recording*.[ch]) \
		tools/record/agent/shared_memory.c tools/proc/about.c tools/proc/maps.c tools/proc/tasks.c \
		tools/record/agent/ledger.c $(FUZZ_FUNCTIONS) \
		tools/record/agent/ledger.h tools/inject/agent/ring.h $(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c %.a,$^) $(SYMBOL_LIBS)

# heap_fuzz: what heap agents count for shstk record.
$(FUZZ_B)/heap_fuzz: selftests/fuzz/heap_fuzz.c selftests/fuzz/print_profile.h \
		$(patsubst %,tools/record/heap/%.c,heap growth heap_values told) \
		$(FUZZ_FUNCTIONS) \
		tools/record/agent/shared_memory.c tools/proc/about.c $(B)/symbol/fuzz/libshstk-symbol.a $(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=float-cast-overflow -fno-sanitize-recover=float-cast-overflow \
		-fsanitize=fuzzer -o $@ $(filter %.c %.a,$^) $(SYMBOL_LIBS)

$(FUZZ_B)/heap_seed: selftests/fuzz/heap_seed.py $(FUZZ_B)/heap_fuzz
	@mkdir -p $(@D)
	$(Q)$< $@ $(FUZZ_B)/heap_fuzz

$(FUZZ_B)/ring_seed: selftests/fuzz/ring_seed.py selftests/fuzz/heap_seed.py
	@mkdir -p $(@D)
	$(Q)$< $@

fuzz selftests/fuzz/run: | $(FUZZ_B)/heap_fuzz $(FUZZ_B)/heap_seed $(FUZZ_B)/ring_seed

fuzz selftests/fuzz/run: | $(FUZZ_B)/ring_fuzz $(FUZZ_B)/dump_fuzz $(FUZZ_B)/dump.stamp

$(addprefix $(FUZZ_B)/,broker_fuzz convert_fuzz goroutine_fuzz heap_fuzz ring_fuzz): selftests/fuzz/clock.h

CHECK += selftests/fuzz/run

fuzz: | $(FUZZ_SYMBOL:%=$(FUZZ_B)/%_fuzz) $(FUZZ_B)/elf_seed $(FUZZ_B)/dwarf.stamp
	$(Q)selftests/fuzz/run --seconds $(FUZZ_SECONDS)

.PHONY: fuzz
