# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests. A fragment in a subfolder adds its programs to one of these lists;
# each program prints KTAP and ends with 0, or 4 for a skip (kselftest's
# convention):
#
#   CHECK           run on this machine, two at a time
#   CHECK_ALONE     run at the end with nothing beside them (timing)
#   GUEST_arm64, GUEST_x86, GUEST_riscv
#                   programs run in every guest of that architecture, as
#                   [NAME=]PROGRAM[,ARGUMENT...]; GUEST_KEY (such as
#                   GUEST_x86-7.2) for one guest only
#   GUEST_MODULES_KEY  modules for one guest, in the order of loading
#   GUEST_KMOD_arm64, GUEST_KMOD_x86, GUEST_KMOD_KEY
#                   programs run once these are loaded; the upstream tests are
#                   then run again
#   GUEST_ADD_arm64, ...  more files for the guest, as SRC:/DST
#   GUEST_OPTIONS_arm64, ..., GUEST_OPTIONS_KEY  options of selftests/guest/run
#   USER_arm64      static arm64 programs, run by qemu-aarch64 user emulation
#
#   make debug-kernel  build an arm64 kernel that watches itself, once, and
#                   race and fuzz the modules on it
#   make fuzz-guest  random calls to the modules in guests, FUZZ_SECONDS each
#   make check-guest  only the tests in guests
#   make check-arm64  only those in arm64 guests, likewise check-x86, check-riscv

CHECK :=
CHECK_ALONE :=
CHECK_GUEST :=
GUEST_arm64 :=
GUEST_x86 :=
GUEST_riscv :=
USER_arm64 :=

# make check first installs packages and fills the cache, then starts make
# again: what is built depends on what is there now.
CHECK_ENTRIES := check check-guest check-arm64 check-x86 check-riscv
CHECK_GOALS := $(filter run-check%,$(MAKECMDGOALS))

$(CHECK_ENTRIES):
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup || echo 'make: what needs that part will be skipped'
	$(Q)$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j2) run-$@

# The kernel's harness has too little patience for a busy machine.
KSELFTEST_FLAGS := -Iselftests/patience -isystem $(KSELFTEST_INC)
KSELFTEST_MISSING := $(if $(wildcard $(KSELFTEST_INC)/kselftest_harness.h),,1)

include $(wildcard selftests/*/build.mk)

CHECK_ALL = $(CHECK) $(CHECK_ALONE) $(CHECK_GUEST)

# Most tests can not be compiled without the kselftest headers of linux-source:
# then run what there is and say so for each of the others.
ifneq ($(KSELFTEST_MISSING),)
run-check: all
	$(Q)$(MAKE) -k $(CHECK_ALL) >$(B)/check-build.log 2>&1 || :
	$(Q)selftests/run --missing 'no kselftest headers in $(KSELFTEST_INC), see selftests/guest/setup' \
		$(CHECK) --alone $(CHECK_ALONE) --guests $(CHECK_GUEST)
else
run-check: all $(CHECK_ALL)
	$(Q)selftests/run $(CHECK) --alone $(CHECK_ALONE) --guests $(CHECK_GUEST)
endif

run-check-guest: $(CHECK_GUEST)
	$(Q)selftests/run --guests $(CHECK_GUEST)

.PHONY: $(CHECK_ENTRIES) run-check run-check-guest
