# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the oracle, a single-stepper that knows the true stack, and the programs that it steps
# through (selftests/unwind).
#
#   make oracle     step through all programs, with libunwind beside libshstk
#   make oracle-framehop  the same with framehop too, which is built in a Debian
#                   folder of the cache: needs root and Debian's archive, once

ORACLE_SRC := $(filter-out %_test.c,$(wildcard selftests/oracle/*.c))
ORACLE_OBJ := $(ORACLE_SRC:selftests/oracle/%.c=$(B)/oracle/%.o)
ORACLE_LIBS := -lunwind-ptrace -lunwind-x86_64 -lunwind -ldw -lelf -lZydis
ORACLE_TESTS := $(addprefix $(B)/oracle/,own_test debian_test breakpoints_test arm64_test)

UNWIND := start sort except signal anywhere jump context vdso thread frame \
	frame-fp frame-clang string noinfo noinfo-static
UNWIND_PROGRAMS := $(UNWIND:%=$(B)/unwind/%)
LIBCRYPTO := $(wildcard /usr/lib/x86_64-linux-gnu/libcrypto.so.3)
ifneq ($(LIBCRYPTO),)
UNWIND_PROGRAMS += $(B)/unwind/crypto
endif
UNWIND_CFLAGS := $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -fno-builtin

$(B)/oracle/%.o: selftests/oracle/%.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -MMD -MP -c -o $@ $<

$(B)/oracle/oracle: $(ORACLE_OBJ) $(B)/framehop/modules.o $(B)/libshstk.a
	$(call say,LD,$@)$(CC) -o $@ $^ $(ORACLE_LIBS) -Wl,-rpath,'$$ORIGIN/../framehop'

$(B)/unwind/%: selftests/unwind/%.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UNWIND_CFLAGS) -o $@ $< -pthread -lm -Wl,-z,lazy

# These programs are bound at start, and linked with the libraries that exceptions and cancellation
# load, so that the loader's work is not stepped again and again.
$(B)/unwind/except: selftests/unwind/except.cc selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) $(WARN) -O2 -g -o $@ $< -Wl,-z,now

$(B)/unwind/thread: selftests/unwind/thread.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UNWIND_CFLAGS) -o $@ $< -pthread -Wl,--no-as-needed,-lgcc_s,-z,now

$(B)/unwind/frame-fp: selftests/unwind/frame.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UNWIND_CFLAGS) -fno-omit-frame-pointer -o $@ $<

$(B)/unwind/frame-clang: selftests/unwind/frame.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CLANG) $(UNWIND_CFLAGS) -o $@ $<

$(B)/unwind/crypto: selftests/unwind/crypto.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UNWIND_CFLAGS) -o $@ $< $(LIBCRYPTO) -Wl,-z,now

NOINFO := selftests/unwind/noinfo.c selftests/unwind/noinfo_functions.S

$(B)/unwind/noinfo: $(NOINFO) selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UNWIND_CFLAGS) -o $@ $(NOINFO)

$(B)/unwind/noinfo-static: $(NOINFO) selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UNWIND_CFLAGS) -static -o $@ $(NOINFO)

# Builds the same for arm64: the programs are static and run in an emulator that steps them.
UNWIND_ARM64 := frame frame-pac sort jump string noinfo except
UNWIND_ARM64_PROGRAMS := $(UNWIND_ARM64:%=$(B)/unwind/arm64/%)

$(B)/oracle/oracle-arm64: selftests/oracle/arm64/oracle.c selftests/oracle/memory.c \
		selftests/oracle/memory.h $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -o $@ \
		$(filter %.c %.a,$^)

$(B)/unwind/arm64/%: selftests/unwind/%.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(UNWIND_CFLAGS) -static -o $@ $<

$(B)/unwind/arm64/frame-pac: selftests/unwind/frame.c selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(UNWIND_CFLAGS) -mbranch-protection=standard -static -o $@ $<

$(B)/unwind/arm64/noinfo: selftests/unwind/noinfo.c selftests/unwind/noinfo_functions-arm64.S \
		selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(UNWIND_CFLAGS) -static -o $@ $(filter %.c %.S,$^)

$(B)/unwind/arm64/except: selftests/unwind/except.cc selftests/oracle/build.mk
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(ARM64)g++ $(WARN) -O2 -g -static -o $@ $<

$(B)/oracle/arm64_test: $(B)/oracle/oracle-arm64 $(UNWIND_ARM64_PROGRAMS)

$(ORACLE_TESTS): $(B)/oracle/%_test: $(B)/oracle/oracle $(UNWIND_PROGRAMS) \
		selftests/oracle/run selftests/oracle/known
	$(Q)printf '#!/bin/sh\nexec selftests/oracle/run $(B) %s\n' '$*' >$@
	$(Q)chmod +x $@

$(B)/oracle/decode_test: selftests/oracle/decode_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -o $@ $^ -lZydis

ifeq ($(ARCH),x86)
CHECK += $(ORACLE_TESTS) $(B)/oracle/decode_test
endif

oracle: $(B)/oracle/oracle $(UNWIND_PROGRAMS)
	$(Q)selftests/oracle/run $(B) all

oracle-framehop: $(FRAMEHOP_LIB) $(B)/oracle/oracle $(UNWIND_PROGRAMS)
	$(Q)selftests/oracle/run $(B) framehop

.PHONY: oracle oracle-framehop

# A fuzz target: code without unwind information consists of foreign bytes too.
EPILOGUE_FUZZ := $(FUZZ_B)/epilogue_fuzz
EPILOGUE_FUZZ_SRC := selftests/fuzz/epilogue_fuzz.c libshstk/epilogue.c \
	$(foreach a,x86 arm64,libshstk/arch/$(a)/decode.c libshstk/arch/$(a)/machine.c)

# The parts of the library that the search needs beside the decoders of all architectures.
$(EPILOGUE_FUZZ): $(EPILOGUE_FUZZ_SRC) $(B)/lib/fuzz/libshstk.a libshstk/epilogue.h libshstk/machine.h
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(EPILOGUE_FUZZ_SRC) $(B)/lib/fuzz/libshstk.a

fuzz selftests/fuzz/run: | $(EPILOGUE_FUZZ)
