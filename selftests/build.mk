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
#   GUEST_x86-qemu  programs run in the x86 guests that QEMU emulates, without shadow
#                   stacks and with two CPUs; those of GUEST_x86 are not
#   GUEST_MODULES_KEY  modules for one guest, in the order of loading
#   GUEST_KMOD_arm64, GUEST_KMOD_x86, GUEST_KMOD_KEY
#                   programs run once these are loaded; the upstream tests are
#                   then run again
#   GUEST_ADD_arm64, ...  more files for the guest, as SRC:/DST
#   GUEST_OPTIONS_arm64, ..., GUEST_OPTIONS_KEY  options of selftests/guest/run
#   USER_arm64      static arm64 programs, run by qemu-aarch64 user emulation
#
#   make check TEST=NAME  one test, such as copies_test; make list-tests prints their names
#   make check-quick  run the tests without guests that together take CHECK_SECONDS (150)
#   make check-elsewhere  run the tests without guests as on machines that lack something; ELSEWHERE
#                   is the name of such a machine (selftests/elsewhere --list), or a
#                   number (1) by which each test gets one of them
#   make check-guest  run only the tests in guests
#   make check-arm64  run only those in arm64 guests; likewise check-x86, check-riscv

CHECK :=
CHECK_ALONE :=
CHECK_GUEST :=
GUEST_arm64 :=
GUEST_x86 :=
GUEST_riscv :=
USER_arm64 :=

# make check first installs packages and fills the cache, and then starts make again, because the
# targets depend on what is there. What only guests need is fetched while the native tests are
# built.
CHECK_GUESTS := check-guest check-arm64 check-x86 check-riscv
CHECK_ENTRIES := check check-elsewhere $(CHECK_GUESTS)
CHECK_GOALS := $(filter run-check%,$(MAKECMDGOALS))
CHECK_MAKE = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j2)
CHECK_NATIVE_PARTS := trixie source user otlp python

# Prints a line about one of the four stages. $(1) is its number, $(2) what is done, $(3) how long
# it takes on two idle cores when nothing is there yet.
stage = @printf '== $@, %s of 4: %s (%s)\n' '$(1)' '$(2)' '$(3)'
# make -n also executes lines with a +, so GUEST_SETUP does nothing then.
GUEST_SETUP = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),true,selftests/guest/setup)
SKIPPED := echo 'make: what needs that part will be skipped'

ifneq ($(TEST),)
check:
	$(Q)+$(CHECK_MAKE) run-check-test TEST='$(TEST)'
else
check check-elsewhere:
	$(call stage,1,packages of Debian,1 min the first time)
	$(Q).ci/packages-install build check guest
	$(call stage,2,what native tests need,2 min the first time)
	$(Q)selftests/guest/setup $(CHECK_NATIVE_PARTS) || $(SKIPPED)
	$(call stage,3,$(if $(filter check,$@),building; meanwhile what guests need is fetched,building),5 min the first time)
	$(Q)+$(if $(filter check,$@),{ $(GUEST_SETUP) || $(SKIPPED); } &) \
	$(CHECK_MAKE) run-check-programs; status=$$?; wait; exit $$status
	$(call stage,4,tests,they say how long)
	$(Q)+$(CHECK_MAKE) run-$@
endif

$(CHECK_GUESTS):
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup || $(SKIPPED)
	$(Q)+$(CHECK_MAKE) run-$@

# The timeouts of the kernel's test harness are too short for a busy machine; selftests/patience
# makes them longer.
KSELFTEST_FLAGS := -Iselftests/patience -isystem $(KSELFTEST_INC)
KSELFTEST_MISSING := $(if $(wildcard $(KSELFTEST_INC)/kselftest_harness.h),,1)

KSELFTEST_WHY := no kselftest headers in $(KSELFTEST_INC), see selftests/guest/setup

include $(wildcard selftests/*/build.mk)

CHECK_ALL = $(CHECK) $(CHECK_ALONE) $(CHECK_GUEST)

# Most tests cannot be compiled without the kselftest headers of linux-source. If these are missing,
# the other tests are run, and each that could not be built is reported.
ifneq ($(KSELFTEST_MISSING),)
run-check: all
	$(Q)$(MAKE) -k $(CHECK_ALL) >$(B)/check-build.log 2>&1 || :
	$(Q)selftests/run --missing '$(KSELFTEST_WHY)' \
		$(CHECK) --alone $(CHECK_ALONE) --guests $(CHECK_GUEST)
else
run-check: all $(CHECK_ALL)
	$(Q)selftests/run $(CHECK) --alone $(CHECK_ALONE) --guests $(CHECK_GUEST)
endif

# Builds all tests that run on this machine, but does not run them. Programs for user-mode emulation
# are left out, because their compilers may not have been fetched yet.
CHECK_NATIVE = $(filter-out %/check-user-arm64,$(CHECK)) $(CHECK_ALONE)
ifneq ($(KSELFTEST_MISSING),)
run-check-programs: all
	$(Q)$(MAKE) -k $(CHECK_NATIVE) >$(B)/check-build.log 2>&1 || :
else
run-check-programs: all $(CHECK_NATIVE)
endif

CHECK_SECONDS ?= 150
ELSEWHERE ?= 1

# In a fresh clone the kernel's test harness is fetched first.
check-quick:
ifneq ($(KSELFTEST_MISSING),)
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup trixie source || $(SKIPPED)
endif
	$(Q)+$(CHECK_MAKE) run-$@

run-check-quick: all
	$(Q)short=$$(selftests/run --short $(CHECK_SECONDS) $(CHECK)) && \
	$(MAKE) --no-print-directory $(if $(KSELFTEST_MISSING),-k) $$short \
		$(if $(KSELFTEST_MISSING),>$(B)/check-build.log 2>&1 || :; ,&&) \
	selftests/run $(if $(KSELFTEST_MISSING),--missing '$(KSELFTEST_WHY)') $$short

# make check TEST=NAME runs one test. NAME is its name in the output (record/copies_test), the last
# part of that (copies_test), or the name of a guest. Only what this test needs is built.
TEST_FOUND = $(or $(filter $(addprefix %/,$(TEST) $(TEST).py $(TEST).sh),$(CHECK_ALL)),$(error no test is called \
	$(TEST): make list-tests prints the names))
run-check-test: all
	$(Q)$(MAKE) --no-print-directory $(TEST_FOUND) && selftests/run $(TEST_FOUND)

list-tests:
	@printf '%s\n' $(sort $(CHECK_ALL:$(B)/%=%))

run-check-elsewhere: run-check-programs
	$(Q)selftests/run --elsewhere $(ELSEWHERE) --logs $(B)/elsewhere \
		$(filter-out %/check-user-arm64,$(CHECK)) --alone $(CHECK_ALONE)

run-check-guest: $(CHECK_GUEST)
	$(Q)selftests/run --guests $(CHECK_GUEST)

.PHONY: $(CHECK_ENTRIES) check-quick run-check run-check-test list-tests run-check-guest run-check-programs \
	run-check-quick run-check-elsewhere
