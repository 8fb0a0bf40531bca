# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests that are not part of make check, because they take long:
#
#   make debug-kernel  build kernels that watch themselves (KASAN, lockdep, RCU,
#                   kmemleak), once, and race and fuzz the modules on them;
#                   debug-kernel-arm64, debug-kernel-x86: one of them
#   make debug-kernel-x86-clang  the same as debug-kernel-x86 on a kernel that clang builds, in which
#                   each call through a pointer is checked (kCFI, IBT)
#   make debug-fuzz-x86  fuzz calls and tables of unwind rules on such a kernel with two CPUs,
#                   for DEBUG_FUZZ_SECONDS of the guest's clock (3600); likewise
#                   debug-fuzz-arm64
#   make bpftrace-guest  run Debian's bpftrace without and with the modules: by unwind rules
#                   in BPFTRACE_RULES_GUESTS, from shadow stacks in BPFTRACE_GUESTS
#                   (x86-6.12: an hour on a busy machine)
#   make check-kernels  build, load and try the modules on more kernels than make check has, and the BPF
#                   programs
#   make check-machine  test the modules in use while memory runs out at each of their allocations,
#                   the machine sleeps, or another kernel is started (kexec)
#   make check-nmi   take NMI_CHAINS callchains (1000000) in NMIs, in NMI_GUESTS
#   make check-dkms  build the modules by Debian's dkms, and load them in a guest
#   make reload-guest  load and unload the modules under load, RELOAD_ROUNDS times
#                   (100), in guests
#   make check-harm  unmount, use containers, another C library and little memory while all is
#                   sampled by unwind rules, HARM_ROUNDS times (5); then load and unload
#                   RELOAD_ROUNDS times, in HARM_GUESTS
#   make check-systemd  run shstkd.service, the broker, shstk record and shstk crash under Debian's
#                   systemd, in a guest
#   make fuzz-guest    try random ioctls, prctls, mappings and tables of unwind rules in guests,
#                   FUZZ_SECONDS of the guest's clock (60)

DEBUG_SECONDS ?= 30
DEBUG_CHAINS ?= 3000
DEBUG_FUZZ_SECONDS ?= 3600
DEBUG_SEED ?= 1

# The debug kernel for x86: x86, or x86-clang, which clang builds with kCFI.
DEBUG_X86 ?= x86
# The debug kernel for an architecture. $(1) is the architecture.
debug_name = $(if $(filter arm64,$(1)),arm64,$(DEBUG_X86))

debug-kernel: debug-kernel-arm64 debug-kernel-x86

# $(1) architecture
debug_prepare = .ci/packages-install build guest debug \
		$(if $(filter %-clang,$(call debug_name,$(1))),debug-clang) && \
	selftests/guest/setup source kernel-$(1)-7.2 root-$(1) $(if $(filter x86,$(1)),qemu-x86) && \
	selftests/debug/kernel $(call debug_name,$(1)) -j$(shell nproc)
debug-kernel-arm64 debug-kernel-x86: debug-kernel-%:
	$(Q)$(call debug_prepare,$*)
	$(Q)$(MAKE) --no-print-directory run-debug-$*
debug-kernel-x86-clang:
	$(Q)$(MAKE) --no-print-directory DEBUG_X86=x86-clang debug-kernel-x86
debug-fuzz-arm64 debug-fuzz-x86: debug-fuzz-%:
	$(Q)$(call debug_prepare,$*)
	$(Q)$(MAKE) --no-print-directory run-debug-fuzz-$*

# $(1) architecture
debug_test = $(B)/selftests/kmod/$(1)/$(2)_test
debug_modules = $(patsubst %,$(B)/kmod/debug-$(call debug_name,$(1))/%.ko,shstk shstk_perf \
	$(if $(filter x86,$(1)),shstk_prctl))
debug_shstk_arm64 := $(B)/selftests/record/arm64/shstk
debug_shstk_x86 := $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1
debug_needs = $(B)/kmod/debug-$(call debug_name,$(1))/.built $(B)/selftests/kmod/$(1)/device_fuzz \
	$(B)/selftests/kmod/$(1)/rules_fuzz $(debug_shstk_$(1)) \
	$(foreach t,perf device race hostile reload rules rules_frames rules_hostile rules_miss \
		rules_change rules_hotplug rules_unload stall replaced,\
		$(call debug_test,$(1),$(t)))

# The test of walks for BPF programs, and the other tests of unwind rules, hostile ones last.
debug_bpf_files = $(if $(KMOD_BPF_$(1)),$(call debug_test,$(1),rules_bpf) $(B)/selftests/kmod/rules.bpf.o)
# When make reads the prerequisites it does not know yet whether BPF programs can be built, so they
# are built in the recipe.
debug_build_bpf = $(if $(call debug_bpf_files,$(1)),$(Q)+$(MAKE) --no-print-directory $(call debug_bpf_files,$(1)))
debug_rules = 'rules=$(call debug_test,$(1),rules) $(debug_shstk_$(1))' \
	'miss=$(call debug_test,$(1),rules_miss)' 'change=$(call debug_test,$(1),rules_change)' \
	'rules-fuzz=$(B)/selftests/kmod/$(1)/rules_fuzz $(DEBUG_SECONDS) $(DEBUG_SEED) $(debug_shstk_$(1))' \
	'frames=$(call debug_test,$(1),rules_frames) $(debug_shstk_$(1))' \
	$(if $(KMOD_BPF_$(1)),'bpf=$(call debug_bpf_files,$(1)) $(debug_shstk_$(1))')
debug_hostile = 'rules-hostile=$(call debug_test,$(1),rules_hostile) $(DEBUG_SECONDS) $(DEBUG_SEED) $(debug_shstk_$(1))'

# no5lvl: with page tables of 5 levels KASAN's shadow memory would be too large.
debug_run_arm64 := selftests/guest/run arm64-7.2 --slack 4
debug_run_x86 := selftests/guest/run x86-qemu-7.2 --append "no5lvl nohpet" --slack 4 \
	--sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader
debug_run_bochs := selftests/guest/run x86-7.2 --append no5lvl --slack 50
debug_run = $(debug_run_$(1)) --memory 1500 --timeout 1500 \
	--kernel $(SHSTK_CACHE)/debug-$(call debug_name,$(1))/Image

$(B)/guest/leak/leak.ko: selftests/guest/leak.c $(SHSTK_CACHE)/debug-arm64/done
	@mkdir -p $(@D)
	$(Q)cp $< $(@D)/ && echo 'obj-m := leak.o' >$(@D)/Kbuild
	$(call say,KBUILD,$@)$(MAKE) -s -C $(SHSTK_CACHE)/debug-arm64/linux ARCH=arm64 \
		CROSS_COMPILE=$(ARM64) M=$(CURDIR)/$(@D) modules

# Modules for tests, built for the debug kernel for x86. shstk_fault.c redirects functions by the same
# header as shstk_perf.ko. $(1) is the name.
debug_module = $(B)/selftests/kmod/$(1)/debug-$(DEBUG_X86)/shstk_$(1).ko
define debug_module_rule
$(call debug_module,$(1)): selftests/kmod/$(1)/shstk_$(1).c kmod/hook.h kmod/resolve.h \
		$(SHSTK_CACHE)/debug-$(DEBUG_X86)/done
	@mkdir -p $$(@D)
	$$(Q)cp $$< $$(@D)/ && printf 'obj-m := shstk_$(1).o\nccflags-y := -I$(CURDIR)/kmod\n' >$$(@D)/Kbuild
	$$(call say,KBUILD,$$@)$$(MAKE) -s $$(call kmod_debug,$(DEBUG_X86)) M=$(CURDIR)/$$(@D) modules
endef
DEBUG_MODULES := nmi hold fault
$(foreach m,$(DEBUG_MODULES),$(eval $(call debug_module_rule,$(m))))

# Tests that kmemleak reports the memory that the module leak loses, and nothing of shstk.ko. The
# module is unloaded last, because one scan may miss some memory.
run-debug-leak: $(B)/guest/leak/leak.ko $(B)/kmod/debug-arm64/.built $(call debug_test,arm64,device)
	$(Q)! $(call debug_run,arm64) --out $(B)/guest/debug-leak $(B)/kmod/debug-arm64/shstk.ko \
		device=$(call debug_test,arm64,device) -shstk $< -leak
	$(Q)[ "$$(grep -c '^not ok' $(B)/guest/debug-leak/results.tap)" = 1 ] && \
		grep '^not ok .*unload leak: .*kmemleak: unreferenced' $(B)/guest/debug-leak/results.tap

# $(1) is the number of CPUs.
debug_arm64 = $(call debug_run,arm64) --cpus $(1) --out $(B)/guest/debug-arm64-$(1) \
	'reload=$(call debug_test,arm64,reload) 10 500 30 $(call debug_modules,arm64)' \
	$(call debug_modules,arm64) perf=$(call debug_test,arm64,perf) \
	device=$(call debug_test,arm64,device) 'race=$(call debug_test,arm64,race) 2000' \
	'hostile=$(call debug_test,arm64,hostile) $(call debug_modules,arm64)' \
	$(call debug_rules,arm64) $(call debug_hostile,arm64) \
	'fuzz=$(B)/selftests/kmod/arm64/device_fuzz $(DEBUG_SECONDS)' || exit 1;

# Takes callchains in pseudo-NMIs, which Debian's kernels for arm64 do not have.
debug_nmi_arm64 = $(call debug_run,arm64) --cpus 2 --out $(B)/guest/debug-arm64-nmi \
	--board gic-version=3 --append irqchip.gicv3_pseudo_nmi=1 $(call debug_modules,arm64) \
	'nmi=$(call debug_test,arm64,nmi) $(DEBUG_CHAINS) 2000'

# The tests run twice: with one CPU, where timing is regular, and with two.
run-debug-arm64: run-debug-leak $(call debug_needs,arm64) $(call debug_test,arm64,nmi)
	$(call debug_build_bpf,arm64)
	$(Q)$(debug_nmi_arm64)
	$(Q)$(call debug_arm64,1) $(call debug_arm64,2)

# Unwind rules, NMIs, reloading and allocations that fail are tested with two CPUs in QEMU, and all
# that needs shadow stacks in Bochs. In QEMU allocations fail by the test's own module, and then by the
# kernel's means; in Bochs by the kernel's means.
debug_perf_x86 = $(B)/kmod/debug-$(DEBUG_X86)/shstk_perf.ko
debug_fault_x86 = $(call debug_test,x86,fault) calls $(debug_perf_x86)
debug_x86 = $(call debug_run,x86) --cpus 2 --out $(B)/guest/debug-$(DEBUG_X86)-2 \
	'unload=$(call debug_test,x86,rules_unload) $(debug_perf_x86) $(debug_shstk_x86) $(call debug_module,hold)' \
	$(call debug_module,fault) 'fault=$(debug_fault_x86)' -shstk_fault 'failslab=$(debug_fault_x86)' \
	$(debug_perf_x86) $(call debug_module,nmi) \
	'nmi=$(call debug_test,x86,nmi) $(DEBUG_CHAINS) 2000 $(debug_shstk_x86)' \
	$(call debug_hostile,x86) -shstk_nmi $(call debug_rules,x86) \
	'hotplug=$(call debug_test,x86,rules_hotplug) 50 $(debug_shstk_x86)' -shstk_perf \
	'reload=$(call debug_test,x86,reload) 3 2000 30 $(debug_shstk_x86) $(debug_perf_x86)'
debug_bochs = $(call debug_run,bochs) --out $(B)/guest/debug-$(DEBUG_X86)-bochs \
	'failslab=$(call debug_test,x86,fault) calls $(filter-out %_perf.ko,$(call debug_modules,x86))' \
	$(call debug_modules,x86) $(foreach t,perf device prctl map stall replaced,\
	$(t)=$(call debug_test,x86,$(t))) 'race=$(call debug_test,x86,race) 15' \
	'fuzz=$(B)/selftests/kmod/x86/device_fuzz 0.2' \
	'hostile=$(call debug_test,x86,hostile) $(call debug_modules,x86)'
run-debug-x86: run-debug-x86-qemu run-debug-x86-bochs
run-debug-x86-qemu: $(call debug_needs,x86) $(foreach m,$(DEBUG_MODULES),$(call debug_module,$(m))) \
		$(foreach t,nmi fault,$(call debug_test,x86,$(t)))
	$(call debug_build_bpf,x86)
	$(Q)$(debug_x86)
run-debug-x86-bochs: $(call debug_needs,x86) $(foreach t,fault prctl map,$(call debug_test,x86,$(t)))
	$(Q)$(debug_bochs)

# $(1) architecture
debug_fuzz = $(call debug_run,$(1)) --timeout 14400 --cpus 2 --out $(B)/guest/debug-fuzz-$(1) \
	$(B)/kmod/debug-$(call debug_name,$(1))/shstk_perf.ko \
	'rules-fuzz=$(B)/selftests/kmod/$(1)/rules_fuzz $(DEBUG_FUZZ_SECONDS) $(DEBUG_SEED) $(debug_shstk_$(1))'
run-debug-fuzz-arm64: $(call debug_needs,arm64)
run-debug-fuzz-x86: $(call debug_needs,x86)
run-debug-fuzz-arm64 run-debug-fuzz-x86: run-debug-fuzz-%:
	$(Q)$(call debug_fuzz,$*)

fuzz-guest:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)$(MAKE) --no-print-directory run-fuzz-guest

FUZZ_GUESTS ?= arm64-7.2 x86-6.12 x86-7.2
# In these guests, calls of /dev/shstk_rules and tables are fuzzed.
FUZZ_RULES_GUESTS ?= arm64-7.2 x86-qemu-7.2
FUZZ_SEED ?= 1

# $(1) guest
fuzz_guest = selftests/guest/run $(1) $(if $(filter arm64-%,$(1)),--cpus 2) --timeout 7200 \
	--out $(B)/guest/fuzz-$(1) $(KMOD_$(1)) \
	'fuzz=$(B)/selftests/kmod/$(call guest_arch,$(1))/device_fuzz $(or $(FUZZ_SECONDS),60)' || exit 1;
fuzz_rules_guest = selftests/guest/run $(1) --cpus 2 --timeout 7200 --out $(B)/guest/fuzz-rules-$(1) \
	$(if $(filter x86-%,$(1)),--append nohpet --sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader) \
	$(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(1)))) \
	'fuzz=$(B)/selftests/kmod/$(call guest_arch,$(1))/rules_fuzz $(or $(FUZZ_SECONDS),60) $(FUZZ_SEED) \
	$(debug_shstk_$(call guest_arch,$(1)))' || exit 1;
run-fuzz-guest: module $(foreach a,x86 arm64,$(foreach f,device rules,\
		$(B)/selftests/kmod/$(a)/$(f)_fuzz) $(debug_shstk_$(a)))
	$(Q)$(foreach g,$(FUZZ_GUESTS),$(call fuzz_guest,$(g)))
	$(Q)$(foreach g,$(FUZZ_RULES_GUESTS),$(call fuzz_rules_guest,$(g)))

BPFTRACE_GUESTS ?= arm64-7.2 x86-6.12
BPFTRACE_arm64 := $(B)/selftests/record/arm64/shstk $(B)/preload/arm64/libshstk-start.so \
	$(B)/selftests/loader/arm64/violate
BPFTRACE_x86 := $(B)/shstk $(B)/libshstk-start.so $(B)/selftests/loader/violate

# The libraries of Debian's programs are in two folders of the cache. $(1) is the guest.
bpftrace_arch = $(call guest_arch,$(1))
bpftrace_lib = $(if $(filter arm64,$(1)),aarch64,x86_64)-linux-gnu
bpftrace_guest = selftests/guest/setup bpftrace-$(bpftrace_arch) && \
	selftests/guest/run $(1) --memory 2000 --timeout 3000 --slack 8 --out $(B)/guest/bpftrace-$(1) \
	--sysroot $(SHSTK_CACHE)/root-$(bpftrace_arch) --lib $(B)/selftests/loader \
	--lib $(SHSTK_CACHE)/bpftrace-$(bpftrace_arch)/usr/lib/$(call bpftrace_lib,$(bpftrace_arch)) \
	--prog $(SHSTK_CACHE)/bpftrace-$(bpftrace_arch):/usr/bin/bpftrace \
	--prog root-$(bpftrace_arch):/usr/bin/sqlite3 -v \
	'bpftrace=selftests/kmod/bpftrace.sh shadow $(filter-out %_prctl.ko,$(KMOD_$(1))) \
	selftests/loader/cases.sh $(BPFTRACE_$(bpftrace_arch))' || exit 1;

# The same test by unwind rules, in a guest without shadow stacks.
BPFTRACE_RULES_GUESTS ?= x86-qemu-7.2
bpftrace_rules_guest = selftests/guest/setup programs-x86 && \
	selftests/guest/run $(1) --cpus 2 --append nohpet --memory 2000 --timeout 3000 --slack 8 \
	--out $(B)/guest/bpftrace-$(1) --sysroot $(SHSTK_CACHE)/programs-x86 \
	--lib $(B)/selftests/loader --prog programs-x86:/usr/bin/bpftrace \
	--prog programs-x86:/usr/bin/sqlite3 -v \
	'bpftrace=selftests/kmod/bpftrace.sh rules \
	$(filter %_perf.ko,$(KMOD_$(subst -qemu-,-,$(1)))) \
	selftests/loader/cases.sh $(B)/shstk' || exit 1;
bpftrace-guest: module all $(B)/selftests/loader/libprotobuf-c.so.1 \
		$(foreach g,$(BPFTRACE_GUESTS),$(BPFTRACE_$(call guest_arch,$(g))))
	$(Q)$(foreach g,$(BPFTRACE_RULES_GUESTS),$(call bpftrace_rules_guest,$(g)))
	$(Q)$(foreach g,$(BPFTRACE_GUESTS),$(call bpftrace_guest,$(g)))

DKMS_TESTS := $(foreach t,prctl map device perf,$(t)=$(B)/selftests/kmod/x86/$(t)_test)
check-dkms: $(foreach t,$(DKMS_TESTS),$(lastword $(subst =, ,$(t))))
	$(Q)selftests/kmod/dkms x86-6.12
	$(Q)selftests/guest/run x86-6.12 --out $(B)/guest/dkms --timeout 600 --slack 8 \
		$(foreach m,shstk shstk_perf shstk_prctl,$(B)/dkms/$(m).ko) $(DKMS_TESTS)

# nmi_test needs its module and, in QEMU, the command, which compiles unwind rules.
NMI_RULES := $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1
nmi_module = $(B)/selftests/kmod/nmi/$(subst -qemu-,-,$(1))/shstk_nmi.ko
nmi_qemu = --cpus 2 --append nohpet --sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader

# On these kernels no other test runs. The modules are built with W=1, loaded, and the most
# important tests run.
KERNELS_MORE := arm64-7.3 x86-7.3 arm64-6.18 x86-6.18 x86-6.12-rt
# The PREEMPT_RT kernel exists only as Debian's kernel for all machines, which is too large for
# Bochs.
KERNELS_GUESTS := $(filter-out %-rt,$(KERNELS_MORE)) x86-qemu-7.3 x86-qemu-6.18 x86-qemu-6.12-rt
# Their verifiers load the BPF programs, too, which walk a few programs of Debian there.
KERNELS_BPF := $(filter arm64-%,$(KERNELS_MORE)) $(filter x86-qemu-%,$(KERNELS_GUESTS))
check-kernels:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup source libbpf-arm64 qemu-x86 root-x86 root-arm64 programs-x86 programs-arm64 python-arm64 \
		$(KERNELS_MORE:%=kernel-%)
	$(Q)$(MAKE) --no-print-directory run-check-kernels
	$(Q)+$(CHECK_MAKE) run-check-bpf BPF_GUESTS='$(KERNELS_BPF)'

# $(1) is the guest, $(2) the test. This does not use guest_arch and KMOD_*, which are not defined
# yet when make reads the prerequisites.
kernels_test = $(B)/selftests/kmod/$(firstword $(subst -, ,$(1)))/$(2)_test
kernels_tests = $(KMOD_$(1)) $(foreach t,device perf map hostile,\
	'$(t)=$(call kernels_test,$(1),$(t)) $(if $(filter hostile,$(t)),$(KMOD_$(1)))')
kernels_tests_qemu = $(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(1)))) \
	'rules=$(call kernels_test,$(1),rules) $(NMI_RULES)' \
	'change=$(call kernels_test,$(1),rules_change)' 'miss=$(call kernels_test,$(1),rules_miss)' \
	'hotplug=$(call kernels_test,$(1),rules_hotplug) 5 $(NMI_RULES)' $(call nmi_module,$(1)) \
	'nmi=$(call kernels_test,$(1),nmi) 10000 200 $(NMI_RULES)'
kernels_guest = selftests/guest/run $(1) --timeout 1200 --slack 20 --out $(B)/guest/$(1) \
	$(if $(filter x86-qemu-%,$(1)),$(nmi_qemu) $(call kernels_tests_qemu,$(1)),$(call kernels_tests,$(1))) || exit 1;
run-check-kernels: module $(foreach g,$(KERNELS_MORE),\
		$(foreach t,device perf map hostile,$(call kernels_test,$(g),$(t)))) \
		$(foreach t,rules rules_change rules_miss rules_hotplug nmi,\
			$(B)/selftests/kmod/x86/$(t)_test) $(NMI_RULES) \
		$(foreach g,$(filter x86-qemu-%,$(KERNELS_GUESTS)),$(call nmi_module,$(g)))
	$(Q)KERNELS='$(KERNELS_MORE)' selftests/kmod/source_test.sh
	$(Q)$(foreach g,$(KERNELS_GUESTS),$(call kernels_guest,$(g)))

# The sleep test needs /sys/power/pm_test, which Debian's PREEMPT_RT kernel has and its cloud
# kernels do not.
MACHINE_KERNELS := x86-7.2 x86-6.12 x86-6.12-rt
check-machine:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup qemu-x86 root-x86 $(MACHINE_KERNELS:%=kernel-%)
	$(Q)$(MAKE) --no-print-directory run-check-machine

# $(1) is the guest, $(2) the name of the output folder.
machine_run = selftests/guest/run $(1) --timeout 600 --slack 8 --out $(B)/guest/machine-$(2)
machine_test = $(B)/selftests/kmod/x86/$(1)_test
machine_fault = $(B)/selftests/kmod/fault/$(1)/shstk_fault.ko
machine_perf = $(filter %/shstk_perf.ko,$(KMOD_$(1)))
# The modules that need shadow stacks are tested in Bochs, the others in QEMU.
run-check-machine: module $(foreach t,fault kexec suspend,$(call machine_test,$(t))) $(NMI_RULES) \
		$(foreach k,x86-7.2 x86-6.12,$(call machine_fault,$(k)))
	$(Q)$(call machine_run,x86-qemu-7.2,fault) $(nmi_qemu) $(call machine_fault,x86-7.2) \
		'fault=$(call machine_test,fault) $(call machine_perf,x86-7.2)' -shstk_fault
	$(Q)$(call machine_run,x86-qemu-6.12-rt,sleep) $(nmi_qemu) --memory 1000 \
		$(call machine_perf,x86-6.12-rt) 'suspend=$(call machine_test,suspend) $(NMI_RULES)'
	$(Q)$(call machine_run,x86-qemu-7.2,kexec) $(nmi_qemu) --memory 1000 \
		--add $(SHSTK_CACHE)/kernels/x86-7.2/vmlinuz:/t/kernel \
		'kexec=$(call machine_test,kexec) $(call machine_perf,x86-7.2) /t/kernel $(NMI_RULES)'
	$(Q)$(call machine_run,x86-6.12,fault-bochs) $(call machine_fault,x86-6.12) \
		'fault=$(call machine_test,fault) $(filter %/shstk.ko %/shstk_prctl.ko,$(KMOD_x86-6.12))' \
		-shstk_fault

# Takes many callchains in NMIs: by unwind rules with two CPUs in QEMU, and from shadow stacks in
# Bochs, which is slow, so that a hundredth of the number has to do there.
NMI_GUESTS ?= x86-qemu-6.12 x86-qemu-7.2 x86-6.12 x86-7.2
NMI_CHAINS ?= 1000000
nmi_chains = $(if $(filter x86-qemu-%,$(1)),$(NMI_CHAINS) 120 $(NMI_RULES),$(NMI_CHAINS:00=) 1000)
nmi_guest = selftests/guest/run $(1) $(if $(filter x86-qemu-%,$(1)),$(nmi_qemu)) \
	--timeout 36000 --slack 50 --out $(B)/guest/nmi-$(1) \
	$(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(1)))) $(nmi_module) \
	'nmi=$(B)/selftests/kmod/x86/nmi_test $(nmi_chains)' || exit 1;
check-nmi: module $(B)/selftests/kmod/x86/nmi_test $(NMI_RULES) \
		$(foreach g,$(NMI_GUESTS),$(call nmi_module,$(g)))
	$(Q)$(foreach g,$(NMI_GUESTS),$(call nmi_guest,$(g)))

RELOAD_GUESTS ?= arm64-7.2 x86-6.12
RELOAD_ROUNDS ?= 100

# Runs reload_test in the guest $(1). The two numbers are the period of the samples, in microseconds
# of the guest's clock, and the percentage of the time in which the processes work.
reload_guest = selftests/guest/run $(1) --timeout 7200 --slack 20 --out $(B)/guest/reload-$(1) \
	'reload=$(B)/selftests/kmod/$(call guest_arch,$(1))/reload_test $(RELOAD_ROUNDS) \
	$(if $(filter x86-%,$(1)),50 20,100 0) $(KMOD_$(1))' || exit 1;
reload-guest: module $(foreach a,x86 arm64,$(B)/selftests/kmod/$(a)/reload_test)
	$(Q)$(foreach g,$(RELOAD_GUESTS),$(call reload_guest,$(g)))

HARM_GUESTS ?= x86-qemu-7.2 arm64-7.2
HARM_ROUNDS ?= 5
HARM_x86 := selftests/loader/cases.sh $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1 \
	$(B)/selftests/record/target
HARM_arm64 := selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk \
	$(B)/selftests/record/arm64/target

# $(1) guest
harm_arch = $(call guest_arch,$(1))
harm_perf = $(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(1))))
harm_guest = selftests/guest/run $(1) --cpus 2 $(if $(filter x86-%,$(1)),--append nohpet) \
	--memory 1024 --timeout 7200 --slack 20 --out $(B)/guest/harm-$(1) \
	--sysroot $(SHSTK_CACHE)/programs-$(harm_arch) --lib $(B)/selftests/loader \
	--prog programs-$(harm_arch):/usr/bin/perf $(harm_perf) \
	'harm=selftests/kmod/harm.sh $(HARM_ROUNDS) $(HARM_$(harm_arch))' -shstk_perf \
	'reload=$(B)/selftests/kmod/$(harm_arch)/reload_test $(RELOAD_ROUNDS) 2000 30 \
	$(filter %/shstk,$(HARM_$(harm_arch))) $(harm_perf)' || exit 1;
check-harm: module $(HARM_x86) $(HARM_arm64) \
		$(foreach a,x86 arm64,$(B)/selftests/kmod/$(a)/reload_test)
	$(Q)$(foreach g,$(HARM_GUESTS),$(call harm_guest,$(g)))

# The files are where a package would install them, and the module where dkms would.
SYSTEMD_B := $(B)/guest/systemd-root
systemd_version = $(notdir $(patsubst %/,%,$(dir $(filter %/shstk_perf.ko,$(KMOD_x86-7.2)))))
systemd_added = --add $(SYSTEMD_B)/usr/bin/shstk:/usr/bin/shstk \
	$(foreach a,agent heap,\
		--add $(SYSTEMD_B)/usr/lib/shstk/libshstk-$(a).so:/usr/lib/shstk/libshstk-$(a).so) \
	$(foreach o,walk lend,\
		--add $(SYSTEMD_B)/usr/lib/shstk/shstk-$(o).bpf.o:/usr/lib/shstk/shstk-$(o).bpf.o) \
	$(foreach u,shstkd.service shstkd-profile.service shstk-broker.service shstk-broker.socket,\
		--add $(SYSTEMD_B)/usr/lib/systemd/system/$(u):/usr/lib/systemd/system/$(u)) \
	--add $(SYSTEMD_B)/usr/lib/shstk/shstk-push:/usr/lib/shstk/shstk-push \
	--add $(SYSTEMD_B)/etc/shstk/profile.conf:/etc/shstk/profile.conf \
	--add $(filter %/shstk_perf.ko,$(KMOD_x86-7.2)):/lib/modules/$(systemd_version)/updates/shstk_perf.ko
systemd_cases = selftests/loader/cases.sh selftests/rules/in_systemd.sh
check-systemd: module all $(B)/selftests/record/target $(B)/selftests/crash/crasher
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup qemu-x86 kernel-x86-7.2 systemd-x86
	$(Q)rm -rf $(SYSTEMD_B)
	$(Q)$(MAKE) --no-print-directory -s install DESTDIR=$(CURDIR)/$(SYSTEMD_B) PREFIX=/usr >/dev/null
	$(Q)selftests/guest/run x86-qemu-7.2 --cpus 2 --append nohpet --memory 2000 --timeout 900 \
		--slack 10 --out $(B)/guest/systemd --root $(SHSTK_CACHE)/systemd-x86 \
		--sysroot $(SHSTK_CACHE)/systemd-x86 $(systemd_added) \
		'systemd=selftests/rules/systemd.sh $(B)/selftests/record/target $(systemd_cases)'
	$(Q)selftests/guest/run x86-qemu-7.2 --cpus 2 --append nohpet --memory 1500 --timeout 600 \
		--slack 10 --out $(B)/guest/coredump --root $(SHSTK_CACHE)/systemd-x86 \
		--sysroot $(SHSTK_CACHE)/systemd-x86 --add $(SYSTEMD_B)/usr/bin/shstk:/usr/bin/shstk \
		'coredump=selftests/crash/coredump.sh $(B)/selftests/crash/crasher $(systemd_cases)'

.PHONY: check-kernels run-check-kernels check-machine run-check-machine check-nmi check-harm check-systemd
.PHONY: bpftrace-guest check-dkms reload-guest
.PHONY: debug-kernel debug-kernel-arm64 debug-kernel-x86 debug-kernel-x86-clang run-debug-arm64 \
	run-debug-x86 run-debug-x86-qemu run-debug-x86-bochs run-debug-leak \
	debug-fuzz-arm64 debug-fuzz-x86 run-debug-fuzz-arm64 run-debug-fuzz-x86 fuzz-guest run-fuzz-guest
