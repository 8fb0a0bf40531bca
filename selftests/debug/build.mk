# SPDX-License-Identifier: GPL-2.0-or-later
#
# Not part of make check, for they take long:
#
#   make debug-kernel  build an arm64 kernel that watches itself (KASAN, lockdep,
#                   RCU, kmemleak), once, and race and fuzz the modules on it
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

DEBUG_RUN := selftests/guest/run arm64-7.2 --memory 1500 --kernel $(SHSTK_CACHE)/debug-arm64/Image

# Lost memory has to be seen, where it was lost. Last: a scan may miss some of it.
run-debug-leak: $(B)/guest/leak/leak.ko $(B)/kmod/debug-arm64/.built $(DEBUG_TESTS)/device_test
	$(Q)! $(DEBUG_RUN) --out $(B)/guest/debug-leak $(B)/kmod/debug-arm64/shstk.ko \
		device=$(DEBUG_TESTS)/device_test -shstk $< -leak
	$(Q)[ "$$(grep -c '^not ok' $(B)/guest/debug-leak/results.tap)" = 1 ] && \
		grep '^not ok .*unload leak: .*kmemleak: unreferenced' $(B)/guest/debug-leak/results.tap

# Twice: on one CPU, where what is timed is regular, and on two.
run-debug-kernel: run-debug-leak $(B)/kmod/debug-arm64/.built $(DEBUG_NEEDS)
	$(Q)for cpus in 1 2; do $(DEBUG_RUN) --cpus $$cpus --out $(B)/guest/debug-arm64-$$cpus \
		'reload=$(DEBUG_TESTS)/reload_test 10 500 $(DEBUG_MODULES)' \
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

.PHONY: debug-kernel run-debug-kernel run-debug-leak fuzz-guest run-fuzz-guest
