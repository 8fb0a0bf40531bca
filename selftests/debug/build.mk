# SPDX-License-Identifier: GPL-2.0-or-later
#
# Not part of make check, for they take long:
#
#   make debug-kernel  build an arm64 kernel that watches itself (KASAN, lockdep,
#                   RCU, kmemleak), once, and race and fuzz the modules on it
#   make bpftrace-guest  Debian's bpftrace in the guests BPFTRACE_GUESTS, without
#                   and with the modules (x86-6.12: an hour on a busy machine)
#   make check-dkms  Debian's dkms builds the modules, which a guest then loads
#   make reload-guest  load and unload the modules under load, RELOAD_ROUNDS times
#                   (100), in guests
#   make fuzz-guest    random ioctls, prctls and mappings in guests, FUZZ_SECONDS
#                   of the guest's clock (60)

DEBUG_TESTS := $(B)/selftests/kmod/arm64
DEBUG_MODULES := $(B)/kmod/debug-arm64/shstk.ko $(B)/kmod/debug-arm64/shstk_perf.ko
DEBUG_NEEDS := $(addprefix $(DEBUG_TESTS)/,perf_test device_test race_test device_fuzz reload_test)
DEBUG_SECONDS ?= 30

debug-kernel:
	$(Q).ci/packages-install build guest debug
	$(Q)selftests/guest/setup source kernel-arm64-7.2
	$(Q)selftests/debug/kernel -j$(shell nproc)
	$(Q)$(MAKE) --no-print-directory run-debug-kernel

$(B)/guest/leak/leak.ko: selftests/guest/leak.c $(SHSTK_CACHE)/debug-arm64/done
	@mkdir -p $(@D)
	$(Q)cp $< $(@D)/ && echo 'obj-m := leak.o' >$(@D)/Kbuild
	$(call say,KBUILD,$@)$(MAKE) -s -C $(SHSTK_CACHE)/debug-arm64/linux ARCH=arm64 \
		CROSS_COMPILE=$(ARM64) M=$(CURDIR)/$(@D) modules

DEBUG_RUN := selftests/guest/run arm64-7.2 --memory 1500 --timeout 1500 --slack 4 \
	--kernel $(SHSTK_CACHE)/debug-arm64/Image

# Lost memory has to be seen, where it was lost. Last: a scan may miss some of it.
run-debug-leak: $(B)/guest/leak/leak.ko $(B)/kmod/debug-arm64/.built $(DEBUG_TESTS)/device_test
	$(Q)! $(DEBUG_RUN) --out $(B)/guest/debug-leak $(B)/kmod/debug-arm64/shstk.ko \
		device=$(DEBUG_TESTS)/device_test -shstk $< -leak
	$(Q)[ "$$(grep -c '^not ok' $(B)/guest/debug-leak/results.tap)" = 1 ] && \
		grep '^not ok .*unload leak: .*kmemleak: unreferenced' $(B)/guest/debug-leak/results.tap

# Twice: on one CPU, where what is timed is regular, and on two.
run-debug-kernel: run-debug-leak $(B)/kmod/debug-arm64/.built $(DEBUG_NEEDS)
	$(Q)for cpus in 1 2; do $(DEBUG_RUN) --cpus $$cpus --out $(B)/guest/debug-arm64-$$cpus \
		'reload=$(DEBUG_TESTS)/reload_test 10 500 30 $(DEBUG_MODULES)' \
		$(DEBUG_MODULES) perf=$(DEBUG_TESTS)/perf_test device=$(DEBUG_TESTS)/device_test \
		'race=$(DEBUG_TESTS)/race_test 2000' \
		'fuzz=$(DEBUG_TESTS)/device_fuzz $(DEBUG_SECONDS)' || exit 1; done

fuzz-guest:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)$(MAKE) --no-print-directory run-fuzz-guest

FUZZ_GUESTS ?= arm64-7.2 x86-6.12 x86-7.2

# $(1) guest
fuzz_guest = selftests/guest/run $(1) $(if $(filter arm64-%,$(1)),--cpus 2) --timeout 7200 \
	--out $(B)/guest/fuzz-$(1) $(KMOD_$(1)) \
	'fuzz=$(B)/selftests/kmod/$(call guest_arch,$(1))/device_fuzz $(or $(FUZZ_SECONDS),60)' || exit 1;
run-fuzz-guest: module $(foreach a,x86 arm64,$(B)/selftests/kmod/$(a)/device_fuzz)
	$(Q)$(foreach g,$(FUZZ_GUESTS),$(call fuzz_guest,$(g)))

BPFTRACE_GUESTS ?= arm64-7.2 x86-6.12
BPFTRACE_arm64 := $(B)/selftests/record/arm64/shstk $(B)/preload/arm64/libshstk-start.so \
	$(B)/selftests/loader/arm64/violate
BPFTRACE_x86 := $(B)/shstk $(B)/libshstk-start.so $(B)/selftests/loader/violate

# Programs of Debian find their libraries in two folders. $(1) guest
bpftrace_arch = $(call guest_arch,$(1))
bpftrace_lib = $(if $(filter arm64,$(1)),aarch64,x86_64)-linux-gnu
bpftrace_guest = selftests/guest/setup bpftrace-$(bpftrace_arch) && \
	selftests/guest/run $(1) --memory 2000 --timeout 3000 --slack 8 --out $(B)/guest/bpftrace-$(1) \
	--sysroot $(SHSTK_CACHE)/root-$(bpftrace_arch) --lib $(B)/selftests/loader \
	--lib $(SHSTK_CACHE)/bpftrace-$(bpftrace_arch)/usr/lib/$(call bpftrace_lib,$(bpftrace_arch)) \
	--prog $(SHSTK_CACHE)/bpftrace-$(bpftrace_arch):/usr/bin/bpftrace \
	--prog root-$(bpftrace_arch):/usr/bin/sqlite3 -v \
	'bpftrace=selftests/kmod/bpftrace.sh $(filter-out %_prctl.ko,$(KMOD_$(1))) \
	selftests/loader/cases.sh $(BPFTRACE_$(bpftrace_arch))' || exit 1;
bpftrace-guest: module all $(B)/selftests/loader/libprotobuf-c.so.1 \
		$(foreach g,$(BPFTRACE_GUESTS),$(BPFTRACE_$(call guest_arch,$(g))))
	$(Q)$(foreach g,$(BPFTRACE_GUESTS),$(call bpftrace_guest,$(g)))

DKMS_TESTS := $(foreach t,prctl map device perf,$(t)=$(B)/selftests/kmod/x86/$(t)_test)
check-dkms: $(foreach t,$(DKMS_TESTS),$(lastword $(subst =, ,$(t))))
	$(Q)selftests/kmod/dkms x86-6.12
	$(Q)selftests/guest/run x86-6.12 --out $(B)/guest/dkms --timeout 600 --slack 8 \
		$(foreach m,shstk shstk_perf shstk_prctl,$(B)/dkms/$(m).ko) $(DKMS_TESTS)

RELOAD_GUESTS ?= arm64-7.2 x86-6.12
RELOAD_ROUNDS ?= 100

# $(1) guest. Period of the samples in microseconds of the guest's clock, and share
# of the time in which the processes work.
reload_guest = selftests/guest/run $(1) --timeout 7200 --slack 20 --out $(B)/guest/reload-$(1) \
	'reload=$(B)/selftests/kmod/$(call guest_arch,$(1))/reload_test $(RELOAD_ROUNDS) \
	$(if $(filter x86-%,$(1)),50 20,100 0) $(KMOD_$(1))' || exit 1;
reload-guest: module $(foreach a,x86 arm64,$(B)/selftests/kmod/$(a)/reload_test)
	$(Q)$(foreach g,$(RELOAD_GUESTS),$(call reload_guest,$(g)))

.PHONY: bpftrace-guest check-dkms reload-guest
.PHONY: debug-kernel run-debug-kernel run-debug-leak fuzz-guest run-fuzz-guest
