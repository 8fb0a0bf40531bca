# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of `shstk crash`: with core files and gdb's gcore on this machine, and as the kernel's handler
# of core files in the guests with shadow stacks.

CRASH_B		:= $(B)/selftests/crash
CRASH_FLAGS	:= $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -fomit-frame-pointer \
	-fno-optimize-sibling-calls -fno-stack-protector -Wno-infinite-recursion -pthread

CRASHER_SRC	:= selftests/crash/crasher.c selftests/crash/crash_ways.c

$(CRASH_B)/crasher: $(CRASHER_SRC) selftests/crash/crash_ways.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CRASH_FLAGS) -fno-omit-frame-pointer -o $@ $(CRASHER_SRC)
# Return addresses are not signed: one that is written over is to be the shadow stack's to find.
$(CRASH_B)/arm64/crasher: $(CRASHER_SRC) selftests/crash/crash_ways.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(arm64_CC) $(CRASH_FLAGS) -fno-omit-frame-pointer \
		-mbranch-protection=bti -o $@ $(CRASHER_SRC)

selftests/crash/crash_test.py: | $(CRASH_B)/crasher $(CRASH_B)/crasher-static all

CHECK	+= selftests/crash/crash_test.py

# Other builds of the same program, for make check-crash: with the ways of crasher.c and
# crash_ways.c these are more than 100 programs.
CRASH_BUILDS	:= plain optimised small static clang
crash_plain	:= $(CC) -O0
crash_optimised	:= $(CC) -O2 -fno-ipa-icf -fno-ipa-cp -fno-ipa-sra -fcf-protection
crash_small	:= $(CC) -Os -fno-ipa-icf -fno-ipa-cp -fno-ipa-sra -no-pie
crash_static	:= $(CC) -O1 -static
crash_clang	:= clang -O2

$(CRASH_BUILDS:%=$(CRASH_B)/crasher-%): $(CRASH_B)/crasher-%: $(CRASHER_SRC) selftests/crash/crash_ways.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(firstword $(crash_$*)) $(CRASH_FLAGS) $(wordlist 2,9,$(crash_$*)) -o $@ $(CRASHER_SRC)

.PHONY: check-crash
check-crash: $(CRASH_BUILDS:%=$(CRASH_B)/crasher-%) selftests/crash/crash_test.py
	$(Q)for build in $(CRASH_BUILDS); do echo "# crasher-$$build"; \
		CRASHER=$(CRASH_B)/crasher-$$build selftests/crash/crash_test.py names_what_crashed || exit 1; done

$(CRASH_B)/catcher: selftests/crash/catcher.c $(B)/libshstk-crash.so
	$(call say,CC,$@)$(CC) $(CRASH_FLAGS) -Ilibshstk -o $@ $< -L$(B) -lshstk-crash \
		-Wl,-rpath,'$$ORIGIN/../..'

selftests/crash/caught_test.py: | $(CRASH_B)/crasher $(CRASH_B)/catcher all

CHECK	+= selftests/crash/caught_test.py

$(CRASH_B)/arm64/libshstk-crash-preload.so: $(CRASH_PRELOAD_SRC) $(wildcard libshstk/crash/*.c) \
		$(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(arm64_CC) $(LIB_CFLAGS) $(arm64_FLAGS) -Ilibshstk/arch/arm64 \
		-DCRASH_COMMAND='"$(BINDIR)/shstk"' -shared -Wl,-z,now -o $@ $^ $(CRASH_PRELOAD_LDFLAGS)

# The whole command for arm64 is there if there are libraries for it, see selftests/offline.
CRASH_ARM64	:= selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk \
	$(CRASH_B)/arm64/crasher $(CRASH_B)/arm64/libshstk-crash-preload.so
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64),)
GUEST_arm64-7.2	+= crash=selftests/crash/guest.sh$(subst $() ,,$(CRASH_ARM64:%=$(comma)%))
$(B)/guest/check-arm64-7.2: $(CRASH_ARM64)
endif
ifeq ($(ARCH),x86)
CRASH_X86	:= selftests/loader/cases.sh $(B)/shstk $(B)/libshstk-start.so $(CRASH_B)/crasher \
	$(B)/libshstk-crash-preload.so
GUEST_x86-7.2	+= crash=selftests/crash/guest.sh$(subst $() ,,$(CRASH_X86:%=$(comma)%))
$(B)/guest/check-x86-7.2: $(CRASH_X86)
endif
